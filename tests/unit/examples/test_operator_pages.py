"""docs/operators has every operator as it is in the code; `python -m tests.unit.examples.operator_pages` writes it anew."""

import inspect

import pytest
from tests.unit.examples.operator_pages import DIRECTORY, FAMILIES, pages

import streamfleet as sf


def test_the_pages_are_those_of_the_code():
    assert {path.name: path.read_text("utf-8") for path in DIRECTORY.iterdir()} == pages()


def operators():
    """Every public method of what a developer calls in the language."""
    kinds = [kind for name in sf.__all__ if inspect.isclass(kind := getattr(sf, name))]
    for kind in kinds:
        if kind.__module__.startswith("streamfleet.dsl."):
            for name, value in vars(kind).items():
                if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, staticmethod)):
                    yield kind, name


OF_THE_ENGINE = {
    (sf.KTable, "view"),
    (sf.KTable, "enable_sending_old_values"),
    (sf.GlobalKTable, "view"),
    (sf.TimeWindows, "windows_for"),
    (sf.UnlimitedWindows, "windows_for"),
    (sf.JoinWindows, "size_ms"),
}


@pytest.mark.parametrize(
    ("kind", "name"), [pytest.param(*found, id=f"{found[0].__name__}.{found[1]}") for found in operators()]
)
def test_every_operator_has_its_place(kind, name):
    if (kind, name) in OF_THE_ENGINE:
        return
    placed = [title for title, text in pages().items() if f"## {kind.__name__}\n" in text and f"\n### {name}\n" in text]
    assert placed


def test_every_page_is_linked_from_the_page_that_tells_how_operators_are_used():
    page = (DIRECTORY.parent / "language.md").read_text("utf-8")
    assert [name for name in FAMILIES if f"(operators/{name}.md)" not in page] == []
