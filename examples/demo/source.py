"""The definitions and the code that `make up` runs: a copy of the examples to play with, with the broker's real address.

A copy that is there is kept, with what was changed in it; only the address is brought up to date.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1]
FLEET = Path("examples") / "fleet"


def prepared_source(directory: Path, bootstrap_servers: str) -> Path:
    """A directory with examples/apps and examples/fleet in it."""
    for part in ("apps", "fleet"):
        if not (directory / "examples" / part).exists():
            unwanted = shutil.ignore_patterns("__pycache__")
            shutil.copytree(EXAMPLES / part, directory / "examples" / part, ignore=unwanted)
    fleet = directory / FLEET / "fleet.yaml"
    text = fleet.read_text("utf-8")
    fleet.write_text(re.sub(r'bootstrap: "[^"]*"', f'bootstrap: "{bootstrap_servers}"', text), "utf-8")
    return directory
