"""Runs a directory of recorded scenarios against the engine: `python tests/conformance/run.py [DIR]`.

Every scenario is run as generated code and by the interpreter, each with both settings of `changelog.deduplicate`. Exits
with 1 if one failed, with 2 if there was nothing to run.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

import structlog

HERE = Path(__file__).resolve().parent
SCENARIOS = HERE / "scenarios"
if __name__ == "__main__":
    # As a script this file knows its own directory only; its siblings are found from the root of the repository.
    sys.path.insert(0, str(HERE.parents[1]))

from tests.conformance import deviations, report, results, scenario  # noqa: E402  (needs the path above)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    # Scenarios with bad records make the engine warn about each; the report is all that should be read here.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    files = scenario.files_in(options.directory)
    if not files:
        print(f"there are no scenario files in {options.directory}; give a directory that holds some", file=sys.stderr)
        return 2
    selection = results.Selection(options.family, options.name)
    judged = report.collect(results.judge_all(files, selection, deviations.load()), sys.stdout)
    if not judged:
        print("no scenario has that family and name; the table without --family and --name lists them", file=sys.stderr)
        return 2
    report.write(judged, sys.stdout, verbose=options.verbose)
    return 1 if any(result.verdict is results.Verdict.FAILED for result in judged) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Compare the engine with recorded behaviour of Java Kafka Streams.")
    parser.add_argument(
        "directory",
        nargs="?",
        type=Path,
        default=SCENARIOS,
        metavar="DIR",
        help="directory of scenario files (default: the project's own)",
    )
    parser.add_argument("--family", help="only scenarios of this family, such as `window`")
    parser.add_argument("--name", help="only the scenario of this name")
    parser.add_argument("--verbose", action="store_true", help="all differences, in full")
    return parser


if __name__ == "__main__":
    sys.exit(main())
