"""A state many times larger than the memory that was given for it: the process stays small."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
GIVEN_MIB = 32
BESIDE_BYTES = 96 * 2**20
"""Uncommitted changes and decoded values, as Python objects; indexes and filters of the tables, some 1.5 % of the state."""


def test_a_process_stays_small_whose_state_is_many_times_larger_than_its_memory():
    command = [sys.executable, "-m", "tests.bench.state_memory", "--json", "--keys", "2000000"]
    command += ["--value-bytes", "200", "--given-mib", str(GIVEN_MIB)]
    figures = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    print(figures)
    assert figures["growth_bytes"] <= GIVEN_MIB * 2**20 + BESIDE_BYTES
    assert figures["state_bytes"] > 4 * (GIVEN_MIB * 2**20 + BESIDE_BYTES), "it has to be too large for any of it"
