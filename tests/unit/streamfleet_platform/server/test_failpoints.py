"""A test names the moment at which a server ends, down to the slot."""

import signal
import subprocess
import sys

import pytest

COMES_THERE = """
import sys
from streamfleet_platform.server.failpoints import VARIABLE, failpoint_of
failpoint = failpoint_of({VARIABLE: sys.argv[1]})
for step in ("write-number", "start-slot 0", "start-slot 1"):
    failpoint("scale", step, "act")
    print(step, flush=True)
"""


@pytest.mark.parametrize(
    ("wanted", "passed"),
    [
        ("scale/start-slot 1/act", ["write-number", "start-slot 0"]),
        ("scale/start-slot/act", ["write-number"]),
        ("scale/start-slot 1/done", None),
        ("reset/start-slot 1/act", None),
    ],
)
def test_a_step_is_named_with_its_slot_or_is_the_first_of_its_name(wanted, passed):
    ended = subprocess.run([sys.executable, "-c", COMES_THERE, wanted], capture_output=True, text=True, timeout=60)
    everything = ["write-number", "start-slot 0", "start-slot 1"]
    assert ended.stdout.splitlines() == (everything if passed is None else passed)
    assert ended.returncode == (0 if passed is None else -signal.SIGKILL)
