"""Where a test ends the server: `STREAMFLEET_FAILPOINT=kind/step/moment` kills the process the first time it comes there. A step
that is there once per slot is named with it (`scale/start-slot 1/done`), or without: then it is the first of them.

Read by process.py. Moments are those of operations/journal.py: before a step is written down, before it acts, after it acted.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping

from streamfleet_platform.operations.journal import Failpoint, no_failpoint

VARIABLE = "STREAMFLEET_FAILPOINT"


def failpoint_of(environment: Mapping[str, str]) -> Failpoint:
    wanted = environment.get(VARIABLE)
    if wanted is None:
        return no_failpoint

    def fail(kind: str, step: str, moment: str) -> None:
        if wanted in (f"{kind}/{step}/{moment}", f"{kind}/{step.partition(' ')[0]}/{moment}"):
            os.kill(os.getpid(), signal.SIGKILL)

    return fail
