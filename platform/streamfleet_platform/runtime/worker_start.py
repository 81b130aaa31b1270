"""The first lines of a worker process: tells who it is, ends with its keeper, and becomes `streamfleet run`.

Started by keeper.py as a script, in Python's isolated mode, so neither the environment nor the current directory decide what is
imported: the revision's code and the engine are put first here. Imports nothing but the standard library before that.

    worker_start.py SLOT_DIRECTORY KEEPER_PID IMPORT_PATH... -- MODULE:FUNCTION ARGUMENT...
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    at = arguments.index("--")
    slot, keeper, import_path = Path(arguments[0]), int(arguments[1]), arguments[2:at]
    reference, *rest = arguments[at + 1 :]
    _end_with(keeper)
    _tell(slot)
    sys.path[:0] = import_path
    module, _, function = reference.partition(":")
    sys.argv = ["streamfleet", *rest]
    getattr(importlib.import_module(module), function)()


def _end_with(keeper: int) -> None:
    """Without its keeper nobody would start it again or take its output: it stops in good order, and the slot is seen as lost."""
    prctl = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != keeper:
        sys.exit("the keeper ended before its worker began")


def _tell(slot: Path) -> None:
    """Before anything else, so that it is found even if the keeper is killed before it has noted whom it started."""
    partial = slot / ".worker.json.partial"
    partial.write_text(json.dumps({"pid": os.getpid()}))
    partial.replace(slot / "worker.json")


if __name__ == "__main__":
    main(sys.argv[1:])
