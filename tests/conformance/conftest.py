"""Lets the tests import the runner's modules as `tests.conformance`, however pytest was started."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
