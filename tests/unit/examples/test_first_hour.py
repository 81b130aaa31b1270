"""What docs/first-hour.md shows works as it stands there: its apps pass its tests."""

import re
from pathlib import Path

import pytest

import streamfleet as sf

PAGE = (Path(__file__).resolve().parents[3] / "docs/first-hour.md").read_text("utf-8")


@pytest.fixture(scope="module")
def page():
    names: dict = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(code, names)
    return names


@pytest.mark.parametrize("name", re.findall(r"^def (test_\w+)", PAGE, re.MULTILINE))
def test_a_test_of_the_page_passes(page, name):
    page[name]()


@pytest.mark.parametrize("app", re.findall(r"^def (\w+)\(\) -> sf.Topology", PAGE, re.MULTILINE))
def test_an_app_of_the_page_keeps_its_state_when_it_is_edited(page, app):
    topology = page[app]()
    assert isinstance(topology, sf.Topology)
    assert not re.findall(r"(?:STATE-STORE|repartition)-\d{10}|-\d{10}-repartition", topology.to_json())


def test_every_app_of_the_page_has_a_test():
    assert len(re.findall(r"-> sf.Topology", PAGE)) == len(re.findall(r"^def test_", PAGE, re.MULTILINE)) == 3
