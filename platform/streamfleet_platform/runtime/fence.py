"""The newest fencing token a local runtime has seen: kept on disk, so that it holds for every server that uses the directory.

The lock is held for the whole of a change: a server that was stopped between the check and the act would otherwise go on with
an old token.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamfleet_platform.errors import StaleError
from streamfleet_platform.runtime.keeper import read_json, write_json


class Fence:
    def __init__(self, root: Path) -> None:
        self._root = root

    @contextmanager
    def passed(self, token: int) -> Iterator[None]:
        """The block is carried out by the newest leader, and by one at a time."""
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._root / "fence.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            self._check(token)
            yield
        finally:
            os.close(descriptor)

    def newest(self) -> int:
        return int((read_json(self._root / "fence.json") or {"token": 0})["token"])

    def _check(self, token: int) -> None:
        newest = self.newest()
        if token < newest:
            raise StaleError(
                f"the runtime was told what to do with fencing token {newest}, and this is {token}",
                hint="another server leads now",
            )
        if token > newest:
            write_json(self._root / "fence.json", {"token": token})
