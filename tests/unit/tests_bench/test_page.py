"""A measured table takes the place of the former one, and nothing else of the page changes."""

import pytest
from tests.bench import page


def test_a_section_is_replaced_and_all_else_stays(tmp_path):
    file = tmp_path / "page.md"
    file.write_text("# A\n\n<!-- begin x -->\nold\n<!-- end x -->\n\n<!-- begin y -->\n<!-- end y -->\nB\n")
    page.put("x", ["| new |"], file)
    page.put("x", ["| newer |"], file)
    assert file.read_text() == (
        "# A\n\n<!-- begin x -->\n\n| newer |\n\n<!-- end x -->\n\n<!-- begin y -->\n<!-- end y -->\nB\n"
    )


def test_a_page_without_the_section_is_left_alone(tmp_path):
    file = tmp_path / "page.md"
    file.write_text("<!-- end x --> <!-- begin x -->")
    with pytest.raises(ValueError, match="no section x"):
        page.put("x", [], file)
    assert file.read_text() == "<!-- end x --> <!-- begin x -->"


def test_the_real_page_has_the_sections_that_are_written():
    text = page.PAGE.read_text("utf-8")
    assert [name for name in ("micro", "peers") if f"<!-- begin {name} -->" not in text] == []


def test_the_machine_is_told_with_what_ran_on_it():
    assert "Python 3." in page.machine()
    assert "confluent-kafka" in page.machine()
