"""docs/README.md leads to every page and every decision."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"


def test_every_page_is_linked_from_the_index():
    linked = set(re.findall(r"\]\(([\w./-]+\.md)\)", (DOCS / "README.md").read_text()))
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    assert linked == pages - {"README.md"}
