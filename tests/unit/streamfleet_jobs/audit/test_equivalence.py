"""A store is compared with its changelog while the app goes on writing and the broker goes on compacting. The worker and the
topic are played here, since no real ones can be made to commit and compact at a chosen moment.
"""

import base64

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.audit_lab.logs import land

from streamfleet_jobs.audit import equivalence
from streamfleet_jobs.audit.doors import DoorDigest
from streamfleet_jobs.audit.equivalence import Comparison, StoreDigests, collect
from streamfleet_jobs.audit.local_engine import LocalEngine
from streamfleet_jobs.audit.spec import AuditSpec, StoreSpec
from streamfleet_jobs.columns.row_digest import bucket_of, digest_of_rows, row_hash, row_hashes
from streamfleet_jobs.errors import UnavailableError
from streamfleet_jobs.kafka.topics import PartitionPin, TopicPin

STORE = StoreSpec("s", "t", 1)
SPEC = AuditSpec("run", "shop", "shop", "127.0.0.1:9", "out", (STORE,), mode="deep", clear_keys=True)
KEYS = st.sampled_from([b"a", b"b", b"c"])
VALUES = st.one_of(st.none(), st.sampled_from([b"1", b"2", b"3"]))
MOMENTS = st.tuples(*[st.integers(0, 10)] * 4).map(sorted)


class Played:
    """A log, a worker that commits it, and a broker that compacts it."""

    def __init__(self, records, moments, removed, tampered=None):
        self.records = [(0, n, 0, key, value) for n, (key, value) in enumerate(records)]
        size = len(self.records)
        self.first, self.end, self.second, self.now = (min(moment, size) for moment in self._order(moments))
        self.removed, self.tampered = removed, tampered or {}

    @staticmethod
    def _order(moments):
        """The first digest is of a commit before the pinned end; the second one may be before or after it."""
        first, one, other, now = moments
        return (first, one, other, now) if (one + other) % 2 else (first, other, one, now)

    def rows(self, until):
        """What the store holds when it contains the records before that offset."""
        state = {}
        for _, _, _, key, value in self.records[:until]:
            state.pop(key, None) if value is None else state.__setitem__(key, value)
        return {**state, **{key: value for key, value in self.tampered.items() if value is not None}}

    def log(self, start, end):
        """What a reader gets of [start, end): superseded records may be gone."""
        last = {key: offset for _, offset, _, key, _ in self.records[:end]}
        kept = [r for r in self.records[:end] if r[1] == last[r[3]] or r[1] not in self.removed]
        return [record for record in kept if record[1] >= start]

    def ask(self, _doors, _store, _partition, buckets=()):
        rows = self.rows(self.second if buckets else self.first)
        digest = {bucket: (d.rows, f"{d.xor:x}", f"{d.sum:x}") for bucket, d in digest_of_rows(rows.items()).items()}
        listed = [
            (base64.b64encode(key).decode(), row_hash(key, value).to_bytes(8, "big", signed=True).hex())
            for key, value in rows.items()
            if bucket_of(key) in buckets
        ]
        until = self.second if buckets else self.first
        return DoorDigest(until - 1 if until else None, False, None, True, digest, listed)

    def pin_topics(self, *_):
        return {"t": TopicPin("t", {0: PartitionPin(0, self.now)})}

    def read_slim(self, _servers, _config, _place, offsets, *, timestamps):
        rows = self.log(*offsets)
        keys, values = [row[3] for row in rows], [row[4] for row in rows]
        found = {"offset": pa.array([row[1] for row in rows], pa.int64()), "key": pa.array(keys, pa.binary())}
        yield pa.record_batch(found | {"h": pa.array(row_hashes(keys, values, None), pa.int64())})


def compared(played, directory, monkeypatch):
    for name in ("ask", "pin_topics", "read_slim"):
        monkeypatch.setattr(equivalence, name, getattr(played, name))
    land(directory, {0: played.log(0, played.end)})
    pin = TopicPin("t", {0: PartitionPin(0, played.end)})
    comparison = Comparison(SPEC, STORE, pin, LocalEngine(SPEC, lambda _: None), directory)
    comparison.run(collect(SPEC, STORE))
    return comparison


def test_a_healthy_store_is_equal_whenever_it_commits_and_whatever_is_compacted(tmp_path_factory):
    @settings(max_examples=150)
    @given(st.lists(st.tuples(KEYS, VALUES), min_size=6, max_size=10), MOMENTS, st.sets(st.integers(0, 9), min_size=3))
    def search(records, moments, removed):
        with pytest.MonkeyPatch.context() as monkeypatch:
            directory = tmp_path_factory.mktemp("log") / "landed"
            comparison = compared(Played(records, moments, removed), directory, monkeypatch)
        assert (comparison.outcomes, comparison.findings) == ({0: "equal"}, [])

    search()


@pytest.mark.parametrize(("tampered", "kind"), [({b"a": b"!"}, "changed"), ({b"new": b"!"}, "missing_in_changelog")])
def test_a_key_that_differs_is_named_even_while_others_move(tmp_path, monkeypatch, tampered, kind):
    records = [(b"a", b"1"), (b"b", b"1"), (b"c", b"1"), (b"b", b"2"), (b"c", b"2"), (b"c", None)]
    comparison = compared(Played(records, [3, 4, 5, 6], {1, 2}, tampered), tmp_path / "landed", monkeypatch)
    (finding,) = comparison.findings
    named = {name: finding.evidence[name] for name in ("changed", "missing_in_store", "missing_in_changelog")}
    assert named == {name: [key.decode() for key in tampered] if name == kind else [] for name in named}
    assert finding.summary.startswith("1 key of the store is not what its changelog says")


def test_a_key_that_was_written_again_since_is_left_to_the_next_audit(tmp_path, monkeypatch):
    records = [(b"a", b"1"), (b"b", b"1"), (b"a", b"2")]
    comparison = compared(Played(records, [2, 2, 2, 3], set(), {b"a": b"!"}), tmp_path / "landed", monkeypatch)
    assert comparison.outcomes == {0: "equal"}


def test_rows_that_cannot_be_had_are_unknown(tmp_path, monkeypatch):
    played = Played([(b"a", b"1")], [1, 1, 1, 1], set(), {b"a": b"!"})
    first = played.ask

    def away(doors, store, partition, buckets=()):
        if buckets:
            raise UnavailableError("the worker is gone", hint="wait")
        return first(doors, store, partition)

    played.ask = away
    comparison = compared(played, tmp_path / "landed", monkeypatch)
    assert comparison.outcomes == {0: "unknown"} and comparison.findings[0].is_unknown
    assert "their rows could not be had: the worker is gone" in comparison.findings[0].summary


def test_a_worker_with_other_timestamps_than_the_spec_says_is_not_compared(monkeypatch):
    stamped = DoorDigest(1, True, None, True)
    monkeypatch.setattr(equivalence, "ask", lambda *_: stamped)
    assert collect(SPEC, STORE) == StoreDigests({}, {0: "the spec says timestamps: False, the worker True"})
