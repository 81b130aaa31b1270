"""Does a store hold what its changelog says? Digests first; keys are compared only in buckets that differ, and then named.

A store's digest is of one commit: it contains the changelog up to an offset X, so it is compared with the changelog up to X. If
buckets differ, the worker is asked for their rows; by then it may have committed more, so these come with an X of their own, and
the records since the pinned end are read for them. A key that was written again after that is left out: compaction may have taken
the record that the store has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from streamfleet_jobs.audit.doors import DoorDigest, ask
from streamfleet_jobs.audit.engine import AuditEngine, Moment
from streamfleet_jobs.audit.findings import Finding, counted, key_name
from streamfleet_jobs.audit.spec import SUFFIXES, AuditSpec, StoreSpec
from streamfleet_jobs.columns.binary import binary_values
from streamfleet_jobs.columns.key_times import key_times
from streamfleet_jobs.columns.row_digest import bucket_of, differing_buckets
from streamfleet_jobs.errors import UnavailableError
from streamfleet_jobs.kafka.records import read_slim
from streamfleet_jobs.kafka.topics import TopicPin, pin_topics

MAX_NAMED = 100
NOTHING = -1
"""The offset of a moment before all records."""

Outcome = Literal["equal", "differs", "unknown"]


class StoreDigests(msgspec.Struct, frozen=True):
    """Of one store, by partition: what its workers said, or why they did not."""

    found: dict[int, DoorDigest] = {}
    unknown: dict[int, str] = {}


def collect(spec: AuditSpec, store: StoreSpec) -> StoreDigests:
    """Ask all partitions; before the ends are pinned, so that the changelog reaches at least as far."""
    found: dict[int, DoorDigest] = {}
    unknown: dict[int, str] = {}
    for number in range(store.partitions):
        try:
            digest = ask(spec.doors, store.name, number)
        except UnavailableError as error:
            unknown[number] = str(error)
            continue
        if digest.timestamps != store.timestamps:
            unknown[number] = f"the spec says timestamps: {store.timestamps}, the worker {digest.timestamps}"
        else:
            found[number] = digest
    return StoreDigests(found, unknown)


class Comparison:
    """One store of one run."""

    def __init__(self, spec: AuditSpec, store: StoreSpec, pin: TopicPin, engine: AuditEngine, landed: Path) -> None:
        self._spec = spec
        self._store = store
        self._pin = pin
        self._engine = engine
        self._landed = landed
        self.outcomes: dict[int, Outcome] = {}
        self.findings: list[Finding] = []

    def run(self, digests: StoreDigests) -> None:
        """Fills `outcomes` and `findings`."""
        for number, why in digests.unknown.items():
            self._unknown(number, why)
        moments = {
            number: _moment(digest) for number, digest in digests.found.items() if number in self._pin.partitions
        }
        expected = self._engine.digests(self._landed, self._store, moments) if moments else {}
        for number, content in expected.items():
            buckets = differing_buckets(digests.found[number].digest, content)
            if not buckets:
                self.outcomes[number] = "equal"
                continue
            try:
                self._name(number, buckets)
            except UnavailableError as error:
                self._unknown(number, f"{len(buckets)} of 256 buckets differ, and their rows could not be had: {error}")

    def _name(self, number: int, buckets: Sequence[int]) -> None:
        listed = ask(self._spec.doors, self._store.name, number, buckets)
        moment, rows = _moment(listed), listed.hashed_rows
        expected, moving = self._changelog_rows(number, buckets, moment)
        differing = {key for key in rows.keys() | expected.keys() if rows.get(key) != expected.get(key)} - moving
        if not differing:
            self.outcomes[number] = "equal"
            return
        self.outcomes[number] = "differs"
        self.findings.append(self._finding(number, sorted(differing), rows, expected, moment.offset))

    def _changelog_rows(
        self, number: int, buckets: Sequence[int], moment: Moment
    ) -> tuple[dict[bytes, int], set[bytes]]:
        """What the changelog says of these buckets as of a moment that may be after the pinned end, and which keys moved since."""
        end = self._pin.partitions[number].end
        pinned = Moment(min(moment.offset, end - 1), moment.oldest_ms)
        rows = self._engine.rows(self._landed, self._store, number, buckets, pinned)
        now = pin_topics(self._spec.bootstrap_servers, self._spec.client_config, [self._pin.name])[self._pin.name]
        wanted, moving = frozenset(buckets), set[bytes]()
        for offset, key, hashed in self._tail(number, pinned.offset + 1, now.partitions[number].end):
            if offset > moment.offset:
                moving.add(key)
            elif bucket_of(key) in wanted and self._is_kept(key, moment):
                if hashed is None:
                    rows.pop(key, None)
                else:
                    rows[key] = hashed
        return rows, moving

    def _tail(self, number: int, start: int, end: int) -> list[tuple[int, bytes, int | None]]:
        pieces = read_slim(
            self._spec.bootstrap_servers,
            self._spec.client_config,
            (self._pin.name, number),
            (max(start, self._pin.partitions[number].start), end),
            timestamps=self._store.timestamps,
        )
        return [
            (row["offset"], row["key"], row["h"])
            for piece in pieces
            for row in piece.to_pylist()
            if row["key"] is not None
        ]

    def _is_kept(self, key: bytes, moment: Moment) -> bool:
        suffix = SUFFIXES[self._store.key_format]
        if not suffix or moment.oldest_ms is None:
            return True
        import pyarrow as pa

        return bool(key_times(binary_values(pa.array([key], pa.binary())), suffix)[0] >= moment.oldest_ms)

    def _finding(
        self, number: int, keys: Sequence[bytes], rows: Mapping[bytes, int], expected: Mapping[bytes, int], offset: int
    ) -> Finding:
        named: dict[str, list[str]] = {"changed": [], "missing_in_store": [], "missing_in_changelog": []}
        for key in keys[:MAX_NAMED]:
            kind = (
                "missing_in_store" if key not in rows else "missing_in_changelog" if key not in expected else "changed"
            )
            named[kind].append(key_name(key, clear=self._spec.clear_keys))
        told = "; ".join(f"{kind.replace('_', ' ')}: {', '.join(names[:5])}" for kind, names in named.items() if names)
        return Finding(
            self._spec.app,
            self._pin.name,
            "equivalence",
            "error",
            f"{counted(len(keys), 'key of the store is', 'keys of the store are')} not what its changelog says ({told})",
            "a restore would give the changelog's side: find the other writer of the topic, or restore the task from it",
            store=self._store.name,
            partition=number,
            evidence={"keys": len(keys), "offset": offset, **named},
        )

    def _unknown(self, number: int, why: str) -> None:
        self.outcomes[number] = "unknown"
        finding = Finding(
            self._spec.app,
            self._pin.name,
            "equivalence",
            "info",
            f"not compared: {why}",
            "run the audit again while the app runs",
            store=self._store.name,
            partition=number,
            is_unknown=True,
        )
        self.findings.append(finding)


def _moment(digest: DoorDigest) -> Moment:
    return Moment(NOTHING if digest.offset is None else digest.offset, digest.oldest_ms)
