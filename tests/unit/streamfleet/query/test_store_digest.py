"""Digests of real stores: equal to what their changelog records would give, of one commit, and beside the thread that writes."""

import pytest

import streamfleet as sf
from streamfleet.errors import ScanTooLargeError, StoreUnavailableError
from streamfleet.ids import TopicPartition
from streamfleet.query import store_digest
from streamfleet.records import RawRecord
from streamfleet_jobs.columns.row_digest import BucketDigest, bucket_of, digest_of_rows, row_hash

MINUTE = 60_000
LONG = lambda number: number.to_bytes(8, "big")


@pytest.fixture
def app(new_app):
    app = new_app()
    app.open(app.place("counts").task(0))
    yield app
    app.close_all()


def say(app, key, timestamp=0):
    app.work("counts", 0, "words", key, "x", timestamp)


def commit(app, store="counts"):
    app.commit(app.place(store).task(0))


def hashed(app, store):
    return dict(app.queries.rows_of(store, 0, range(256)).rows)


def unsigned(number):
    return number & (2**64 - 1)


def test_rows_weigh_what_their_changelog_records_do(app):
    for key, at in [("a", 5), ("b", 7), ("a", 9)]:
        say(app, key, at)
    commit(app)
    assert hashed(app, "counts") == {
        b"a": unsigned(row_hash(b"a", LONG(2), 9)),
        b"b": unsigned(row_hash(b"b", LONG(1), 7)),
    }
    assert hashed(app, "cached") == hashed(app, "counts")


def test_windows_and_sessions_have_the_keys_of_their_changelogs(app):
    say(app, "a", 5)
    say(app, "a", MINUTE + 3)
    commit(app)
    assert hashed(app, "windows") == {
        b"a" + LONG(0) + bytes(4): unsigned(row_hash(b"a" + LONG(0) + bytes(4), LONG(1), 5)),
        b"a" + LONG(MINUTE) + bytes(4): unsigned(row_hash(b"a" + LONG(MINUTE) + bytes(4), LONG(1), MINUTE + 3)),
    }
    session = b"a" + LONG(MINUTE + 3) + LONG(5)
    assert hashed(app, "sessions") == {session: unsigned(row_hash(session, LONG(2)))}, "sessions have no timestamps"
    moment = app.queries.digest("windows", 0).moment
    assert moment.timestamps and moment.oldest_ms < 0
    assert app.queries.digest("sessions", 0).moment.oldest_ms > -(2**40)


def test_a_plain_store_has_no_timestamps(new_app):
    app = new_app()
    app.open(app.place("plain").task(0))
    app.work("plain", 0, "puts", "k", "v", 3)
    commit(app, "plain")
    found = app.queries.digest("plain", 0)
    assert not found.moment.timestamps
    assert {b: BucketDigest(*d) for b, d in found.buckets.items()} == digest_of_rows([(b"k", b"v")])
    app.close_all()


def test_only_what_is_committed_counts_and_the_offset_says_up_to_where(app):
    say(app, "a")
    assert app.queries.digest("counts", 0).moment.offset is None
    assert app.queries.digest("counts", 0).buckets == {}
    commit(app)
    say(app, "b")
    found = app.queries.digest("counts", 0)
    assert found.moment.offset == 0, "as the commit of the test says"
    assert found.moment.changelog == "app-counts-changelog" and found.moment.is_active
    assert sum(rows for rows, _, _ in found.buckets.values()) == 1


def test_a_digest_under_way_stays_of_its_moment(app, monkeypatch):
    monkeypatch.setattr(store_digest, "PIECE_ROWS", 2)
    for n in range(7):
        say(app, f"k{n}")
    commit(app)
    moment, rows = store_digest._hashed_rows(app.place("counts"), 0, app.tasks[app.place("counts").task(0)])
    seen = [next(rows)]
    for n in range(7):
        say(app, f"k{n}")
        say(app, f"later{n}")
    commit(app)
    seen += list(rows)
    assert [key for key, _ in seen] == [b"k%d" % n for n in range(7)]
    assert [found for _, found in seen] == [unsigned(row_hash(b"k%d" % n, LONG(1), 0)) for n in range(7)]


def test_a_task_that_is_closed_meanwhile_ends_the_digest(app, monkeypatch):
    monkeypatch.setattr(store_digest, "PIECE_ROWS", 2)
    for n in range(7):
        say(app, f"k{n}")
    commit(app)
    _, rows = store_digest._hashed_rows(app.place("counts"), 0, app.tasks[app.place("counts").task(0)])
    next(rows)
    app.close(app.place("counts").task(0))
    with pytest.raises(StoreUnavailableError, match="closed meanwhile"):
        list(rows)


def test_the_rows_of_a_bucket_are_those_that_its_digest_counts(app):
    for n in range(20):
        say(app, f"k{n}")
    commit(app)
    for bucket, (count, _, _) in app.queries.digest("counts", 0).buckets.items():
        rows = app.queries.rows_of("counts", 0, [bucket]).rows
        assert len(rows) == count and all(bucket_of(key) == bucket for key, _ in rows)


def test_more_rows_than_fit_are_refused(app, monkeypatch):
    monkeypatch.setattr(store_digest, "MAX_LISTED_ROWS", 3)
    for n in range(4):
        say(app, f"k{n}")
    commit(app)
    with pytest.raises(ScanTooLargeError, match="fewer buckets"):
        app.queries.rows_of("counts", 0, range(256))


def test_a_standby_says_that_it_is_none_of_the_owner(new_app):
    app = new_app()
    copy = app.open_standby(app.place("counts").task(0))
    changelog = TopicPartition("app-counts-changelog", 0)
    copy.restore(changelog, [RawRecord(changelog.topic, 0, 3, 7, b"a", LONG(5))], 3)
    found = app.queries.digest("counts", 0)
    assert not found.moment.is_active
    assert found.buckets == {bucket_of(b"a"): (1, *[unsigned(row_hash(b"a", LONG(5), 7))] * 2)}
    app.close_all()


def test_what_is_not_here_or_cannot_be_compared_is_said(app, new_app):
    with pytest.raises(StoreUnavailableError, match="task 0_1 is not here"):
        app.queries.digest("counts", 1)
    with pytest.raises(StoreUnavailableError, match="there is no store nothing"):
        app.queries.digest("nothing", 0)


@pytest.mark.parametrize("engine", ["rocksdb", "in_memory"])
@pytest.mark.parametrize("time_first", [False, True])
def test_expired_windows_and_indexes_are_left_out(new_app, engine, time_first):
    text = {"key_serde": sf.serdes.string(), "value_serde": sf.serdes.string()}
    builder = sf.StreamsBuilder()
    windows = sf.TimeWindows(MINUTE, 0)
    store = sf.Stores.window("counts", 3 * MINUTE, MINUTE, kind=engine).with_time_first(time_first)
    counted = builder.stream("words", **text).group_by_key(**text).windowed_by(windows)
    counted.count(materialized=sf.Materialized(store, caching=False))
    app = new_app(topology=builder.build(), inputs={"words": 1})
    app.open(app.place("counts").task(0))
    for at in (0, MINUTE, 2 * MINUTE, 10 * MINUTE, 11 * MINUTE):
        say(app, "a", at)
    commit(app)
    starts = sorted(int.from_bytes(key[1:9], "big") for key in hashed(app, "counts"))
    assert starts == [10 * MINUTE, 11 * MINUTE]
    assert 8 * MINUTE <= app.queries.digest("counts", 0).moment.oldest_ms <= 8 * MINUTE + 1
    app.close_all()
