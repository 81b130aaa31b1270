"""Code of revisions on disk, while it is recorded, and when nobody names it any more. By server/changing.py and removal.py.

An apply exports code first, compiles it, and writes down last that a revision needs it. Whoever deletes code that no revision names
must not do so in between: an apply holds the directory's lock, shared, and who deletes waits for all of them. The lock is a file
beside the directory, so it also holds between a server that leads and one that has just led, and ends with its process.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from streamfleet_platform.runtime.api import Runtime


@contextmanager
def being_recorded(code: Path) -> Iterator[None]:
    """What lies there, or comes meanwhile, stays as long as the block lasts."""
    with _lock_file(code) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield


def delete_unused(code: Path, used: Callable[[], Collection[str]], runtime: Runtime) -> bool:
    """`used` is asked when nobody can record more. What a worker was started with stays too, although the registry may not know of
    it: one that was restored from a backup does not. False: somebody records now, and nothing was deleted.
    """
    with _lock_file(code) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        named = used()
        unnamed = [directory for directory in code.glob("sha256-*") if directory.name not in named]
        running = {worker.code.name for worker in runtime.list() if worker.code is not None} if unnamed else set()
        for directory in unnamed:
            if directory.name not in running:
                shutil.rmtree(directory, ignore_errors=True)
        return True


@contextmanager
def _lock_file(code: Path) -> Iterator[int]:
    code.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(code.with_name(f".{code.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
