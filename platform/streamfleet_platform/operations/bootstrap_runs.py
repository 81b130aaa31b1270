"""Runs of bootstraps where something else is done to their app: ended by a reset or a removal, and what they leave on disk deleted.
By reset.py, removal.py, start_stop.py and bootstrap.py.

A run leaves rows and keys of users: what was computed, in its directory, and table files, in the snapshots of its changelog. Both
are known by the recorded run, and deleted with the state they belong to; what a dead run leaves goes with the next start. A file
with the highest token stays for KEEP_DAYS, so that a job which is still somewhere is refused and sets no offsets.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from streamfleet_platform.operations.bootstrap_adoption import move_run
from streamfleet_platform.operations.steps import Done, Outcome, Waiting
from streamfleet_platform.operations.work import Work
from streamfleet_platform.registry import audits
from streamfleet_platform.registry.database import touch
from streamfleet_platform.registry.tables import BootstrapRun

OVER = ("adopted", "aborted")
"""Nothing becomes of a run any more. One that is only published waits for the start that takes it over."""
KEEP_DAYS = 7
"""How long the files of a former epoch stay, for whoever wants to go back, and the token of a run that is over."""
_FENCE, _FENCE_LOCK, _LOCK = "fence.json", "fence.lock", "lock"
"""Of a run's directory, as the job has them: the highest token, who may change it, who works there."""
_DELETED = "deleted"
"""Of a run's detail: what of it is gone."""


def changelog_of(spec: Mapping[str, Any]) -> str:
    """As the engine names it."""
    return f"{spec['app']['application_id']}-{spec['store']['name']}-e{spec['epoch']}-changelog"


def fence_attempts(run: BootstrapRun) -> bool:
    """A job that still runs must not set the group's offsets once more; it looks here before each step, and refuses to begin.
    False: somebody begins in this moment.
    """
    directory = _directory(run)
    directory.mkdir(parents=True, exist_ok=True)
    with _locked(directory / _FENCE_LOCK) as is_ours:
        if is_ours:
            draft = directory / f".{_FENCE}.ended"
            draft.write_text(json.dumps({"run_id": run.id, "token": run.token + 1}))
            draft.replace(directory / _FENCE)
        return is_ours


def end_runs(work: Work) -> Outcome:
    """The state they are about is to be deleted: none of them goes on, puts offsets back, or is taken over. Whoever still works on
    one is waited for, because it may be setting offsets.
    """
    ended = [run for run in _runs(work) if run.state not in OVER]
    for run in ended:
        if not fence_attempts(run) or not _is_idle(run):
            return Waiting(
                f"an attempt of bootstrap {run.name} has not ended; it does at its next step, or end its job"
            )
        work.write(partial(_end, work=work, run=run))
    return Done(f"{len(ended)} bootstraps ended" if ended else "")


def _end(session: Session, work: Work, run: BootstrapRun) -> None:
    if audits.get_bootstrap(session, run.app, run.id).state not in OVER:
        move_run(session, work, run, "aborted", told=f"ended by {work.operation.id}")


def delete_bootstrap_files(work: Work) -> Outcome:
    """Of all runs of the app: its state is gone, and they are no use for another one."""
    return _delete(work, {run.id: {"computed", "snapshots"} | _left_by_dead(work, run) for run in _runs(work)})


def has_dead_files(work: Work) -> bool:
    return any(_left_by_dead(work, run) for run in _runs(work))


def delete_dead_files(work: Work) -> Outcome:
    """What was computed for runs that are over; table files of those that were aborted, and of epochs that are long past."""
    return _delete(work, {run.id: _left_by_dead(work, run) for run in _runs(work)})


def _left_by_dead(work: Work, run: BootstrapRun) -> set[str]:
    """What is still there and no use any more."""
    if run.state not in OVER:
        return set()
    is_old = work.now - run.updated_at > timedelta(days=KEEP_DAYS)
    is_current = work.app.epochs.get(run.spec["store"]["name"]) == run.epoch  # a slot that is new begins with its files
    left = {"computed"}
    if run.state == "aborted" or (is_old and not is_current):
        left.add("snapshots")
    if is_old:
        left.add("token")
    return left - set(run.detail.get(_DELETED, ()))


def _delete(work: Work, left: Mapping[str, set[str]]) -> Outcome:
    runs = [run for run in _runs(work) if left.get(run.id, set()) - set(run.detail.get(_DELETED, ()))]
    for run in runs:
        directory, what = _directory(run), left[run.id]
        if directory.is_dir():
            with _locked(directory / _LOCK) as is_ours:
                if not is_ours:
                    return Waiting(f"an attempt of bootstrap {run.name} has not ended")
                _empty(directory)
        if "token" in what:
            shutil.rmtree(directory, ignore_errors=True)
        if "snapshots" in what:
            shutil.rmtree(_snapshots(run), ignore_errors=True)
        work.write(partial(_note, run=run, what=what))
    return Done(f"files of {len(runs)} bootstraps" if runs else "no bootstrap has left any")


def _note(session: Session, run: BootstrapRun, what: set[str]) -> None:
    row = audits.get_bootstrap(session, run.app, run.id)
    touch(session, row, detail={**row.detail, _DELETED: sorted({*row.detail.get(_DELETED, ()), *what})})


def _runs(work: Work) -> list[BootstrapRun]:
    with work.world.database.read() as session:
        return list(audits.bootstraps_of(session, work.app.name))


def _directory(run: BootstrapRun) -> Path:
    directory = Path(run.spec["directory"])
    assert directory.name == run.id, "a run has a directory of its own"
    return directory


def _snapshots(run: BootstrapRun) -> Path:
    return Path(run.spec["snapshot_directory"]) / changelog_of(run.spec)


def _empty(directory: Path) -> None:
    for path in directory.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name not in (_FENCE, _FENCE_LOCK, _LOCK):
            path.unlink()


def _is_idle(run: BootstrapRun) -> bool:
    with _locked(_directory(run) / _LOCK) as is_ours:
        return is_ours


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Whether it was free. As the job takes it; it waits for those that hold it for a moment."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(descriptor)
