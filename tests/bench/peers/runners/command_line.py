"""What every runner is called with:

    RUNNER WORKLOAD --bootstrap B --app-id ID --input TOPIC --output TOPIC --partner TOPIC --state-dir DIRECTORY

It reads the input from the beginning as group ID and writes the output, until SIGTERM or, without a group, to the input's end.
Commits every second, every 100 ms for W7. Topics of its own carry ID in their names, so that they are found and deleted.
"""

import argparse
from pathlib import Path


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload")
    for name in ("bootstrap", "app-id", "input", "output", "partner", "state-dir"):
        parser.add_argument(f"--{name}", required=True)
    given = parser.parse_args()
    Path(given.state_dir).mkdir(parents=True, exist_ok=True)
    return given
