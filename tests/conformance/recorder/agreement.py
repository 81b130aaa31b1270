"""Compares two directories of recordings: `python tests/conformance/recorder/agreement.py EXPECTED ACTUAL`.

Used to prove the recorder: it has to reproduce recordings that were made by other means. The rules are those by which
the engine is judged, so whatever Java leaves to chance (hash orders, stack traces) does not count.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

if __name__ == "__main__":
    # As a script this file knows its own directory only; its siblings are found from the root of the repository.
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.conformance import scenario
from tests.conformance.kit import Json, by_topic, matches, normalized_description, row_differences

_PLAIN = ("branches", "subtopologies", "internal_topics", "dropped")


def differences(expected: scenario.Scenario, actual: scenario.Scenario) -> Iterator[str]:
    """What differs between two recordings of one scenario, one line each."""
    yield from _error_differences("before any step", expected.error, actual.error)
    described = [normalized_description(found.data.get("describe", [])) for found in (expected, actual)]
    if described[0] != described[1]:
        yield f"describe: {described[0]} and {described[1]}"
    for field in _PLAIN:
        if field in expected.data and expected.data[field] != actual.data.get(field):
            yield f"{field}: {expected.data[field]} and {actual.data.get(field)}"
    if len(expected.steps) != len(actual.steps):
        yield f"{len(expected.steps)} and {len(actual.steps)} steps"
    for index, (want, got) in enumerate(zip(expected.steps, actual.steps, strict=False)):
        yield from _step_differences(f"step {index}", want, got)
    stores = [found.data.get("stores", {}) for found in (expected, actual)]
    for name in sorted(stores[0].keys() | stores[1].keys()):
        pair = [found.get(name, {}).get("rows", []) for found in stores]
        if any(row_differences(*pair)) or name not in stores[0] or name not in stores[1]:
            yield f"store {name}: {pair[0]} and {pair[1]}"


def _step_differences(where: str, want: Json, got: Json) -> Iterator[str]:
    yield from _error_differences(where, want.get("error"), got.get("error"))
    if want.get("dropped", 0) != got.get("dropped", 0):
        yield f"{where}: {want.get('dropped', 0)} and {got.get('dropped', 0)} dropped"
    left, right = by_topic(want["out"]), by_topic(got["out"])
    for topic in sorted(left.keys() | right.keys()):
        if not matches(_comparable(topic, left), _comparable(topic, right)):
            yield f"{where}, topic {topic}: {left.get(topic)} and {right.get(topic)}"


def _comparable(topic: str, records: dict[str, list[list[Json]]]) -> list[list[Json]]:
    """Java writes the changelog of a suppress buffer in the order of a hash set."""
    found = records.get(topic, [])
    return sorted(found, key=repr) if topic.endswith("-changelog") else found


def _error_differences(where: str, want: Json, got: Json) -> Iterator[str]:
    shown = [None if error is None else f"{error['class']} at {error['at']}" for error in (want, got)]
    if shown[0] != shown[1]:
        yield f"{where}: error {shown[0]} and {shown[1]}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare two directories of recordings.")
    parser.add_argument("expected", type=Path)
    parser.add_argument("actual", type=Path)
    options = parser.parse_args()
    differing = 0
    files = scenario.files_in(options.expected)
    for path in files:
        other = options.actual / path.name
        found = list(differences(scenario.load(path), scenario.load(other))) if other.exists() else ["was not recorded"]
        differing += bool(found)
        for line in found:
            print(f"{path.stem}: {line}")
    print(f"{len(files) - differing} of {len(files)} recordings agree")
    return 1 if differing or not files else 0


if __name__ == "__main__":
    sys.exit(main())
