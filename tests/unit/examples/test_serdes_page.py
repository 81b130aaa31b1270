"""What docs/serdes.md shows works as it stands there, and its table has every serde."""

import re
from pathlib import Path

from streamfleet import serdes

PAGE = (Path(__file__).resolve().parents[3] / "docs/serdes.md").read_text("utf-8")


def test_the_app_of_the_page_passes_the_test_of_the_page():
    names: dict = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(code, names)
    names["test_only_large_orders_pass"]()


def test_every_serde_is_on_the_page():
    made = [name for name in serdes.__all__ if name[0].islower()]
    assert [name for name in made if f"`{name}(" not in PAGE] == []
