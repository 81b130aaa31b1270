"""The list of scenarios in which the engine differs from Java on purpose, read from deviations.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance.scenario import Level

DEVIATIONS_FILE = Path(__file__).parent / "deviations.toml"


@dataclass(frozen=True)
class Deviation:
    scenario: str
    levels: frozenset[Level]
    reason: str


def load(path: Path = DEVIATIONS_FILE) -> dict[str, Deviation]:
    """Deviations by the name of their scenario."""
    entries = [_entry(path, raw) for raw in tomllib.loads(path.read_text(encoding="utf-8")).get("deviation", [])]
    found = {entry.scenario: entry for entry in entries}
    if len(found) != len(entries):
        raise ValueError(f"a scenario stands twice in {path.name}; join its entries into one")
    return found


def _entry(path: Path, raw: dict[str, Any]) -> Deviation:
    if raw.keys() != {"scenario", "levels", "reason"} or not raw["levels"] or not str(raw["reason"]).strip():
        raise ValueError(f"an entry of {path.name} is incomplete: {raw}; give scenario, levels and reason")
    return Deviation(raw["scenario"], frozenset(Level(level) for level in raw["levels"]), raw["reason"].strip())
