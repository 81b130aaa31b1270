"""What becomes of a published bootstrap: workers start on the new epoch, and say whether they took its files over. By bootstrap.py
where the start is part of it, and by start_stop.py where it comes later.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from streamfleet_platform.operations.steps import Done
from streamfleet_platform.operations.work import Work
from streamfleet_platform.registry import audits, history
from streamfleet_platform.registry.database import touch
from streamfleet_platform.registry.tables import BootstrapRun

_LOG_LINES = 2000


def move_run(session: Session, work: Work, run: BootstrapRun, state: str, **detail: Any) -> None:
    row = audits.get_bootstrap(session, run.app, run.id)
    touch(session, row, state=state, detail={**row.detail, state: detail}, updated_at=work.now)
    told = f"{run.name}: {state}" + (f", {detail['told']}" if "told" in detail else "")
    history.add_event(session, work.now, "bootstrap", told, actor=work.operation.actor, app=run.app, run=run.id)


def waits_for_adoption(work: Work) -> list[BootstrapRun]:
    """Published, and no worker has started since."""
    with work.world.database.read() as session:
        return [run for run in audits.bootstraps_of(session, work.app.name) if run.state == "published"]


def note_adopted(work: Work) -> Done:
    """Workers run on the new epoch: with its files, by replay where they say why not, or nobody knows which any more."""
    told = []
    for run in waits_for_adoption(work):
        said = _said_by_workers(work, run)
        replayed = [f"partition {number}: {line.get('why')}" for number, line in sorted(said.items()) if "why" in line]
        by_files, unknown = len(said) - len(replayed), int(run.spec["store"]["partitions"]) - len(said)
        word = _in_words(by_files, replayed, unknown)
        details = {"told": word, "by_files": by_files, "replayed": replayed, "unknown": unknown}
        _write_adopted(work, run, details)
        told.append(word)
    return Done("; ".join(told))


def _in_words(by_files: int, replayed: Sequence[str], unknown: int) -> str:
    parts = [
        f"{by_files} partitions by files" if by_files else "",
        f"{len(replayed)} by replay ({replayed[0]})" if replayed else "",
        f"of {unknown} it is unknown: their workers' logs do not say" if unknown > 0 else "",
    ]
    return ", ".join(part for part in parts if part)


def _said_by_workers(work: Work, run: BootstrapRun) -> dict[int, dict[str, Any]]:
    """By partition, the last that was said of its snapshot since the run was published: what is older is of another epoch. Doors do
    not tell it, and logs are shortened one day.
    """
    store, since = run.spec["store"]["name"], run.updated_at
    said: dict[int, dict[str, Any]] = {}
    for slot in work.workers():
        for text in work.runtime.logs(work.app.name, slot, _LOG_LINES).splitlines():
            if not text.startswith("{") or '"snapshot ' not in text:
                continue
            try:
                line = json.loads(text)
            except ValueError:
                continue
            number, at = line.get("partition"), audits.parse_time(str(line.get("timestamp")), since)
            if line.get("store") == store and isinstance(number, int) and at >= since:
                said[number] = line
    return said


def _write_adopted(work: Work, run: BootstrapRun, details: dict[str, Any]) -> None:
    work.write(lambda session: move_run(session, work, run, "adopted", **details))
