"""Writes random scenarios without results, for the recorder: `generate.py OUT --family window --count 100 --seed 7`.

The name of a scenario holds its family and seed, so the file can be made again from its name alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import zlib
from pathlib import Path

if __name__ == "__main__":
    # As a script this file knows its own directory only; its siblings are found from the root of the repository.
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.conformance.recorder.generator.draws import Draw, Json
from tests.conformance.recorder.generator.families import FAMILIES


def scenario(family: str, seed: int) -> Json:
    draw = Draw(zlib.crc32(f"{family}-{seed}".encode()))
    return {"format": 1, "name": f"{family}-fuzz-{seed}", "family": family, **FAMILIES[family](draw)}


def main() -> int:
    parser = argparse.ArgumentParser(description="Write random scenarios for the recorder.")
    parser.add_argument("directory", type=Path, metavar="OUT")
    parser.add_argument("--family", choices=sorted(FAMILIES), action="append", help="default: every family")
    parser.add_argument("--count", type=int, default=100, help="scenarios per family")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    for family in options.family or FAMILIES:
        for seed in range(options.seed, options.seed + options.count):
            found = scenario(family, seed)
            (options.directory / f"{found['name']}.json").write_text(json.dumps(found) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
