"""The identity of a process over its restarts: kept in its state directory, made at the first start.

It names the process in the group and in its transactional ids, so that a restarted process is known again: its tasks come back to
it, and the transactions it left open are aborted at once instead of after their time-out.
"""

from __future__ import annotations

import uuid
from pathlib import Path

from streamfleet.errors import StateStoreError

FILE_NAME = "process-id"


def load_process_id(directory: Path) -> str:
    """The id in the directory; a new one is made and kept if there is none."""
    path = directory / FILE_NAME
    try:
        known = path.read_text().strip() if path.exists() else ""
        if known:
            return str(uuid.UUID(known))
        made = str(uuid.uuid4())
        path.write_text(made + "\n")
    except ValueError as error:
        raise StateStoreError(
            f"{path} does not hold a process id", hint="delete the file; a new identity is made then"
        ) from error
    except OSError as error:
        raise StateStoreError(
            f"the process id cannot be kept in {path} ({error.strerror})",
            hint="set state.dir to a directory this user may write to",
        ) from error
    return made
