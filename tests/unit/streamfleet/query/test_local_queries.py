"""Requests on real tasks: what they find, how fresh it is, and when they are refused."""

import re
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamfleet as sf
from streamfleet.changelog.progress import UpdateKind
from streamfleet.errors import OptionError, StoreDamagedError, StoreUnavailableError
from streamfleet.ids import TopicPartition
from streamfleet.records import RawRecord, SessionWindow, TimeWindow, ValueAndTimestamp, Windowed

COMMITTED, UNCOMMITTED = sf.IsolationLevel.READ_COMMITTED, sf.IsolationLevel.READ_UNCOMMITTED
MINUTE = 60_000


def ask(app, store, query, **options):
    return app.queries.run(sf.StateQueryRequest(store, query, **options))


def one(app, store, query, partition=0, **options):
    return ask(app, store, query, partitions=[partition], **options).partitions[partition]


@pytest.fixture
def app(new_app):
    app = new_app()
    app.open(app.place("counts").task(0))
    yield app
    app.close_all()


TEXT = {"key_serde": sf.serdes.string(), "value_serde": sf.serdes.string()}


@pytest.fixture
def joins(new_app):
    """Two joined streams, a versioned table, and what holds records back."""
    builder = sf.StreamsBuilder()
    left, right = builder.stream("left", **TEXT), builder.stream("right", **TEXT)
    near = sf.JoinWindows(MINUTE, MINUTE, MINUTE)
    left.join(right, "{}{}".format, window=near, name="both", store_name="both")
    history = sf.Materialized(sf.Stores.versioned_key_value("prices", MINUTE))
    prices = builder.table("prices", materialized=history, **TEXT)
    left.join(prices, "{}{}".format, name="priced", grace=5)
    counts = left.group_by_key(**TEXT).windowed_by(sf.TimeWindows(MINUTE, 0)).count(store="counts")
    counts.suppress(sf.Suppressed.until_window_closes(sf.BufferConfig.unbounded(), name="closed"))
    app = new_app(topology=builder.build(), inputs={"left": 1, "right": 1, "prices": 1})
    app.open(app.place("counts").task(0))
    yield app
    app.close_all()


def test_a_store_of_joined_streams_gives_every_record_by_its_time(joins):
    for value, timestamp in [("x", 1), ("y", 1), ("z", 2)]:
        joins.work("counts", 0, "left", "a", value, timestamp)
    query = sf.WindowKeyQuery("a", time_to=1)
    assert one(joins, "both-this-join-store", query, isolation=UNCOMMITTED).result == [(1, "x"), (1, "y")]
    assert one(joins, "both-other-join-store", query, isolation=UNCOMMITTED).result == []


@pytest.mark.parametrize(
    ("store", "query"),
    [
        ("closed-store", sf.KeyQuery("a")),
        ("priced-Buffer", sf.KeyQuery("a")),
        ("prices", sf.KeyQuery("a")),
        ("prices", sf.RangeQuery()),
        ("counts", sf.VersionedKeyQuery("a")),
        ("counts", sf.MultiVersionedKeyQuery("a")),
    ],
)
@pytest.mark.parametrize("isolation", [COMMITTED, UNCOMMITTED])
def test_buffers_answer_no_queries_and_versioned_stores_those_of_versions_alone(joins, store, query, isolation):
    assert one(joins, store, query, isolation=isolation).failure is sf.FailureReason.UNKNOWN_QUERY_TYPE


def test_versions_are_found_by_time_now_and_as_of_the_last_commit(joins):
    def price(value, timestamp):
        joins.work("prices", 0, "prices", "a", value, timestamp)

    def ask_both(query):
        return [one(joins, "prices", query, isolation=isolation).result for isolation in (COMMITTED, UNCOMMITTED)]

    def versions(**options):
        return [[v.value for v in found] for found in ask_both(sf.MultiVersionedKeyQuery("a", **options))]

    price("1", 10)
    price("2", 20)
    joins.commit(joins.place("prices").task(0))
    price("3", 30)
    first, second, third = sf.VersionedRecord("1", 10, 20), sf.VersionedRecord("2", 20), sf.VersionedRecord("3", 30)
    assert ask_both(sf.VersionedKeyQuery("a")) == [second, third]
    assert ask_both(sf.VersionedKeyQuery("a", as_of=19)) == [first, first]
    assert ask_both(sf.VersionedKeyQuery("a", as_of=25)) == [second, sf.VersionedRecord("2", 20, 30)]
    assert ask_both(sf.VersionedKeyQuery("a", as_of=9)) == [None, None]
    assert versions() == [["1", "2"], ["1", "2", "3"]]
    assert versions(descending=True) == [["2", "1"], ["3", "2", "1"]]
    assert versions(time_from=20, time_to=29) == [["2"], ["2"]], "the first ends where the second begins"
    assert versions(time_from=19, time_to=20) == [["1", "2"], ["1", "2"]]


def test_a_view_of_committed_versions_follows_the_commits(joins):
    task = joins.place("prices").task(0)
    query = sf.VersionedKeyQuery("a", as_of=15)
    found = []
    for number, timestamp in enumerate([10, 20, 200_000]):
        joins.work("prices", 0, "prices", "a", str(number), timestamp)
        joins.commit(task)
        found.append(one(joins, "prices", query, isolation=COMMITTED).result)
    expected = [sf.VersionedRecord("0", 10), sf.VersionedRecord("0", 10, 20), None]
    assert found == expected, "the last is older than the history"


def test_versions_that_are_too_many_to_look_at_are_refused(joins):
    for timestamp in range(20):
        joins.work("prices", 0, "prices", "a", "x", timestamp)
    with pytest.raises(sf.ScanTooLargeError):
        one(joins, "prices", sf.MultiVersionedKeyQuery("a"), max_scanned=5, isolation=UNCOMMITTED)
    assert not one(joins, "prices", sf.MultiVersionedKeyQuery("a"), limit=3, isolation=UNCOMMITTED).is_complete


def say(app, key, timestamp=0, value="x"):
    return app.work("counts", 0, "words", key, value, timestamp)


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("say"), st.integers(0, 1), st.sampled_from("abc"), st.sampled_from([0, 5, MINUTE, 3 * MINUTE])
        ),
        st.tuples(st.just("commit"), st.integers(0, 1)),
        st.tuples(st.just("abort"), st.integers(0, 1)),
    ),
    max_size=20,
)


class Model:
    """What one partition has seen: now, and at its last commit."""

    def __init__(self):
        self.now, self.last = [], []

    @staticmethod
    def counts(said):
        return {key: sum(k == key for k, _ in said) for key, _ in said}

    @staticmethod
    def windows(said):
        starts = [(key, at - at % MINUTE) for key, at in said]
        return {window: starts.count(window) for window in starts}


def test_results_equal_a_dict_of_what_was_said_now_and_at_the_last_commit(new_app):
    @settings(max_examples=100)
    @given(STEPS)
    def search(steps):
        app = new_app()
        tasks = {partition: app.place("counts").task(partition) for partition in (0, 1)}
        models = {partition: Model() for partition in (0, 1)}
        for task_id in tasks.values():
            app.open(task_id)
        for what, partition, *of in steps:
            model = models[partition]
            if what == "say":
                key, at = of
                app.work("counts", partition, "words", key, "x", at)
                model.now.append((key, at))
            elif what == "commit":
                app.commit(tasks[partition])
                model.last = list(model.now)
            else:
                app.abort(tasks[partition])
                model.now = list(model.last)
            for isolation, said in ((UNCOMMITTED, model.now), (COMMITTED, model.last)):
                check(app, partition, isolation, said)
        app.close_all()

    def check(app, partition, isolation, said):
        counts = Model.counts(said)
        for store in ("counts", "cached"):
            for key in "abc":
                assert one(app, store, sf.KeyQuery(key), partition, isolation=isolation).result == counts.get(key)
            whole = one(app, store, sf.RangeQuery(), partition, isolation=isolation)
            assert whole.result == sorted(counts.items())
            down = one(app, store, sf.RangeQuery("a", "b", descending=True), partition, isolation=isolation)
            assert down.result == sorted(((k, n) for k, n in counts.items() if k <= "b"), reverse=True)
            position = {"words": {partition: len(said) - 1}} if said else {}
            assert whole.position == sf.Position(position)
            assert whole.is_active
        windows = Model.windows(said)
        for key in "abc":
            found = one(app, "windows", sf.WindowKeyQuery(key), partition, isolation=isolation).result
            assert {start: held.value for start, held in found} == {
                start: n for (k, start), n in windows.items() if k == key
            }
        everything = one(
            app, "windows", sf.WindowRangeQuery(time_from=0, time_to=10**9), partition, isolation=isolation
        )
        assert {(w.key, w.window.start): held.value for w, held in everything.result} == windows

    search()


def test_a_timestamped_query_tells_when_the_value_was_last_updated(app):
    say(app, "a", 5)
    say(app, "a", 7)
    assert one(app, "counts", sf.TimestampedKeyQuery("a")).result == ValueAndTimestamp(2, 7)
    assert one(app, "counts", sf.TimestampedRangeQuery("a", "b")).result == [("a", ValueAndTimestamp(2, 7))]
    assert one(app, "counts", sf.KeyQuery("a")).result == 2


def test_windows_are_found_by_start_and_sessions_by_key(app):
    for at in (0, 10, MINUTE + 5):
        say(app, "a", at)
    assert [start for start, _ in one(app, "windows", sf.WindowKeyQuery("a", 0, MINUTE - 1)).result] == [0]
    windows = one(app, "windows", sf.WindowRangeQuery(time_from=MINUTE)).result
    assert windows == [(Windowed("a", TimeWindow(MINUTE, 2 * MINUTE)), ValueAndTimestamp(1, MINUTE + 5))]
    sessions = one(app, "sessions", sf.WindowRangeQuery("a")).result
    assert sessions == [(Windowed("a", SessionWindow(0, MINUTE + 5)), 3)]


@pytest.mark.parametrize(
    ("store", "query"),
    [
        ("counts", sf.WindowKeyQuery("a")),
        ("counts", sf.WindowRangeQuery("a")),
        ("windows", sf.KeyQuery("a")),
        ("windows", sf.RangeQuery()),
        ("windows", sf.WindowRangeQuery("a")),
        ("windows", sf.TimestampedKeyQuery("a")),
        ("sessions", sf.WindowKeyQuery("a")),
        ("sessions", sf.WindowRangeQuery(time_from=0)),
        ("counts", object()),
    ],
)
def test_a_store_says_what_it_cannot_answer(app, store, query):
    assert one(app, store, query).failure is sf.FailureReason.UNKNOWN_QUERY_TYPE


def test_a_plain_store_has_no_timestamps(new_app):
    app = new_app()
    app.open(app.place("plain").task(0))
    app.work("plain", 0, "puts", "a", "1", 5)
    assert one(app, "plain", sf.KeyQuery("a")).result == "1"
    assert one(app, "plain", sf.TimestampedKeyQuery("a")).failure is sf.FailureReason.UNKNOWN_QUERY_TYPE
    app.close_all()


def test_a_window_range_has_a_key_or_times_but_not_both():
    for wrong in ({}, {"key": "a", "time_from": 1}):
        with pytest.raises(OptionError):
            sf.WindowRangeQuery(**wrong)


def test_a_limit_says_whether_there_is_more(app):
    for key in "abc":
        say(app, key)
    some = one(app, "counts", sf.RangeQuery(), limit=2)
    assert (some.result, some.is_complete) == ([("a", 1), ("b", 1)], False)
    assert one(app, "counts", sf.RangeQuery(), limit=3).is_complete


@pytest.mark.parametrize("isolation", [COMMITTED, UNCOMMITTED])
def test_no_more_rows_are_looked_at_than_a_budget_allows(app, isolation):
    for number in range(30):
        say(app, f"k{number:02}", 5 if number < 25 else 100 * MINUTE)
    app.commit(app.place("counts").task(0))
    say(app, "k99")
    options = {"isolation": isolation, "max_scanned": 20}
    assert len(one(app, "counts", sf.RangeQuery(), limit=10, **options).result) == 10
    late = sf.WindowRangeQuery(time_from=MINUTE, time_to=2 * MINUTE)
    for store, query in (("counts", sf.RangeQuery()), ("windows", late), ("windows", sf.WindowRangeQuery(time_from=0))):
        with pytest.raises(sf.ScanTooLargeError):
            one(app, store, query, **options)
    assert len(one(app, "counts", sf.RangeQuery(), isolation=isolation).result) >= 30, (
        "the budget is gone with its question"
    )


def test_partitions_that_are_not_here_are_left_out_or_said_to_be_missing(app):
    assert list(ask(app, "counts", sf.KeyQuery("a")).partitions) == [0]
    asked = ask(app, "counts", sf.KeyQuery("a"), partitions=[0, 1, 7]).partitions
    assert asked[1].failure is sf.FailureReason.NOT_PRESENT
    assert asked[7].failure is sf.FailureReason.DOES_NOT_EXIST
    with pytest.raises(StoreUnavailableError, match="there is no store nowhere"):
        ask(app, "nowhere", sf.KeyQuery("a"))


def test_a_bound_is_met_by_what_was_processed_or_committed(app):
    offset = say(app, "a")
    bound = sf.Position({"words": {0: offset, 1: 99}})
    assert one(app, "counts", sf.KeyQuery("a"), position_bound=bound).result == 1
    late = one(app, "counts", sf.KeyQuery("a"), position_bound=bound, isolation=COMMITTED)
    assert late.failure is sf.FailureReason.NOT_UP_TO_BOUND
    app.commit(app.place("counts").task(0))
    assert one(app, "counts", sf.KeyQuery("a"), position_bound=bound, isolation=COMMITTED).result == 1


def test_a_store_behind_the_cache_of_another_does_not_claim_what_is_held_back(new_app):
    text = {"key_serde": sf.serdes.string(), "value_serde": sf.serdes.string()}
    builder = sf.StreamsBuilder()
    table = builder.table("puts", materialized=sf.Materialized("first", caching=True), **text)
    table.filter(lambda key, value: True, materialized=sf.Materialized("second", caching=False, **text))
    app = new_app(topology=builder.build(), inputs={"puts": 1})
    task_id = app.place("second").task(0)
    app.open(task_id)
    offset = app.work("second", 0, "puts", "a", "1", 5)
    bound = sf.Position({"puts": {0: offset}})
    assert one(app, "first", sf.KeyQuery("a"), position_bound=bound).result == "1"
    assert one(app, "second", sf.KeyQuery("a")).result is None
    assert one(app, "second", sf.KeyQuery("a"), position_bound=bound).failure is sf.FailureReason.NOT_UP_TO_BOUND
    app.commit(task_id)
    assert one(app, "second", sf.KeyQuery("a"), position_bound=bound).result == "1"
    app.close_all()


def test_the_position_of_an_answer_is_a_bound_for_the_next(app):
    say(app, "a")
    first = ask(app, "counts", sf.KeyQuery("a"))
    assert ask(app, "counts", sf.KeyQuery("a"), position_bound=first.position).only().result == 1


def test_what_was_committed_before_a_restart_is_known_after_it(app):
    task_id = app.place("counts").task(0)
    offset = say(app, "a")
    app.commit(task_id)
    app.abort(task_id)
    assert one(app, "counts", sf.KeyQuery("a")).position == sf.Position({"words": {0: offset}})


def test_a_key_that_cannot_be_one_is_a_failure_of_the_query_alone(app):
    assert one(app, "counts", sf.KeyQuery(3)).failure is sf.FailureReason.STORE_EXCEPTION
    assert one(app, "counts", sf.KeyQuery("a")).is_success


@pytest.mark.parametrize("isolation", [COMMITTED, UNCOMMITTED])
def test_F50_a_query_that_meets_a_damaged_block_says_so_and_tells_the_owner_of_the_task(new_app, isolation):
    app = damaged_app(new_app)
    result = one(app, "counts", sf.RangeQuery(), isolation=isolation)
    assert result.failure is sf.FailureReason.STORE_DAMAGED and "Corruption" in result.message
    assert app.damaged == [app.tasks[app.place("counts").task(0)]]


def test_F50_a_digest_that_meets_a_damaged_block_tells_the_owner_of_the_task(new_app):
    app = damaged_app(new_app)
    with pytest.raises(StoreDamagedError):
        app.queries.digest("counts", 0)
    with pytest.raises(StoreDamagedError):
        app.queries.rows_of("counts", 0, [1])
    assert len(app.damaged) == 2


def damaged_app(new_app):
    """With rows in several blocks of a file, of which none can be read any more."""
    app = new_app(statestore_object_cache_max_bytes=0)
    task_id = app.place("counts").task(0)
    app.open(task_id)
    for n in range(2000):
        say(app, f"word-{n:040}")
    app.commit(task_id)
    app.damage(task_id)
    return app


def test_a_task_that_restores_answers_only_who_can_do_with_less(new_app):
    app = new_app()
    task_id = app.place("counts").task(0)
    app.open(task_id, run=False)
    app.tell_progress(task_id, 17, UpdateKind.ACTIVE)
    assert one(app, "counts", sf.KeyQuery("a"), require_active=True).failure is sf.FailureReason.NOT_ACTIVE
    stale = one(app, "counts", sf.KeyQuery("a"))
    assert (stale.result, stale.is_active, stale.lag_records) == (None, False, 17)
    bound = sf.Position({"words": {0: 0}})
    unknown = one(app, "counts", sf.KeyQuery("a"), position_bound=bound)
    assert unknown.failure is sf.FailureReason.NOT_UP_TO_BOUND
    app.close_all()


def test_who_may_have_lost_its_place_in_the_group_is_not_active(app):
    say(app, "a")
    app.thread.is_surely_member = False
    for isolation in (COMMITTED, UNCOMMITTED):
        refused = one(app, "counts", sf.KeyQuery("a"), isolation=isolation, require_active=True)
        assert refused.failure is sf.FailureReason.NOT_ACTIVE
        assert not one(app, "counts", sf.KeyQuery("a"), isolation=isolation).is_active


def test_a_busy_thread_is_waited_for_but_not_for_ever(app):
    say(app, "a")
    with app.thread.gate.step():
        late = one(app, "counts", sf.KeyQuery("a"), timeout_ms=10)
        assert late.failure is sf.FailureReason.NOT_PRESENT
        assert "no step" in late.message
        assert one(app, "counts", sf.KeyQuery("a"), isolation=COMMITTED).is_success, "this needs no thread"


def test_the_default_isolation_goes_with_the_guarantee(new_app):
    for expected, chosen in (
        (1, {}),
        (None, {"processing_guarantee": "exactly_once_v2"}),
        (None, {"default_query_isolation_level": "read_committed"}),
        (1, {"processing_guarantee": "exactly_once_v2", "default_query_isolation_level": "read_uncommitted"}),
    ):
        app = new_app(**chosen)
        app.open(app.place("counts").task(0))
        say(app, "a")
        assert one(app, "counts", sf.KeyQuery("a")).result == expected
        app.close_all()


def test_askers_never_meet_a_closed_store(app):
    task_id = app.place("counts").task(0)
    failures, answers = [], []
    stop = threading.Event()

    def hammer(isolation):
        while not stop.is_set():
            result = one(app, "counts", sf.RangeQuery(), isolation=isolation)
            answers.append(result)
            if not result.is_success and result.failure is not sf.FailureReason.NOT_PRESENT:
                failures.append(result)

    threads = [threading.Thread(target=hammer, args=(level,)) for level in (COMMITTED, UNCOMMITTED, COMMITTED)]
    for thread in threads:
        thread.start()
    for n in range(40):
        for key in "abc":
            say(app, key)
        app.commit(task_id)
        if n % 4 == 3:
            app.abort(task_id)
    stop.set()
    for thread in threads:
        thread.join(30)
    assert failures == []
    for answer in answers:
        if answer.is_success and answer.result and (answer.is_active or answer.position.offsets):
            processed = answer.position.offsets["words"][0] + 1
            assert sum(count for _, count in answer.result) == processed, "the rows are those of the position"


def test_lags_are_zero_for_the_owner_and_counted_for_who_restores(new_app):
    app = new_app()
    place = app.place("counts")
    app.open(place.task(0))
    app.open(place.task(1), run=False)
    app.ends = {TopicPartition("app-counts-changelog", 0): 9, TopicPartition("app-counts-changelog", 1): 4}
    lags = app.queries.local_store_lags()["counts"]
    assert {partition: (lag.current_offset, lag.lag_records) for partition, lag in lags.items()} == {
        0: (9, 0),
        1: (0, 4),
    }
    app.close_all()


@pytest.mark.parametrize("kind", [UpdateKind.STANDBY, UpdateKind.WARMUP])
def test_a_copy_answers_with_its_lag_and_the_time_of_the_last_record_it_has(new_app, kind):
    app = new_app()
    task_id = app.place("counts").task(0)
    copy = app.open_standby(task_id)
    changelog = TopicPartition("app-counts-changelog", 0)
    app.tell_progress(app.place("counts").task(1), 99, kind)
    app.tell_progress(task_id, 2, kind)
    app.ends = {changelog: 6}
    before = one(app, "counts", sf.KeyQuery("a"))
    assert (before.result, before.lag_records, before.as_of_ms) == (None, 2, None), "nothing was read yet"
    restore(copy, changelog, (2, 8), (3, 7))
    stale = one(app, "counts", sf.KeyQuery("a"), isolation=UNCOMMITTED)
    assert (stale.result, stale.is_active, stale.lag_records, stale.as_of_ms) == (5, False, 2, 7)
    assert one(app, "windows", sf.WindowKeyQuery("a")).as_of_ms is None, "each store has a changelog of its own"
    assert stale.position == sf.Position()
    assert one(app, "counts", sf.KeyQuery("a"), require_active=True).failure is sf.FailureReason.NOT_ACTIVE
    lag = app.queries.local_store_lags()["counts"][0]
    assert (lag.current_offset, lag.end_offset, lag.lag_records) == (4, 6, 2)
    app.close_all()
    assert one(app, "counts", sf.KeyQuery("a")).failure is sf.FailureReason.NOT_PRESENT


def restore(task, changelog, *stamps):
    """Records of key a with these (offset, timestamp)."""
    count = (5).to_bytes(8, "big")
    task.restore(
        changelog, [RawRecord(changelog.topic, 0, at, time, b"a", count) for at, time in stamps], stamps[-1][0]
    )


def test_a_task_that_restores_tells_the_time_of_the_last_record_it_has_too(new_app):
    app = new_app()
    task_id = app.place("counts").task(0)
    task = app.open(task_id, run=False)
    app.tell_progress(task_id, 17, UpdateKind.ACTIVE)
    restore(task, TopicPartition("app-counts-changelog", 0), (0, 40))
    assert one(app, "counts", sf.KeyQuery("a")).as_of_ms == 40
    restore(task, TopicPartition("app-counts-changelog", 0), (1, -1))
    assert one(app, "counts", sf.KeyQuery("a")).as_of_ms == 40, "a record may have no time"
    task.complete_restoration({})
    owned = one(app, "counts", sf.KeyQuery("a"))
    assert (owned.result, owned.is_active, owned.lag_records, owned.as_of_ms) == (5, True, 0, None)
    app.close_all()


def test_a_copy_that_does_not_know_how_late_it_is_does_not_answer(new_app):
    app = new_app()
    copied, restored = app.place("counts").task(0), app.place("counts").task(1)
    app.open_standby(copied)
    app.open(restored, run=False)
    # What the updater knew of them when they were something else.
    app.tell_progress(copied, 0, UpdateKind.ACTIVE)
    app.tell_progress(restored, 0, UpdateKind.STANDBY)
    for partition in (0, 1):
        unknown = one(app, "counts", sf.KeyQuery("a"), partition)
        assert unknown.failure is sf.FailureReason.NOT_PRESENT
        assert "not known" in unknown.message
    app.close_all()


def test_a_refusal_says_whether_it_is_the_owners(app):
    bound = sf.Position({"words": {0: 99}})
    refused = one(app, "counts", sf.KeyQuery("a"), position_bound=bound)
    assert (refused.failure, refused.is_active) == (sf.FailureReason.NOT_UP_TO_BOUND, True)
    app.thread.is_surely_member = False
    assert not one(app, "counts", sf.KeyQuery("a"), position_bound=bound).is_active


def test_execution_info_says_who_answered_and_how_long_it_took_if_it_is_asked_for(app):
    say(app, "a")
    assert one(app, "counts", sf.KeyQuery("a")).execution_info == ()
    read, ran = one(app, "counts", sf.KeyQuery("a"), execution_info=True).execution_info
    assert re.fullmatch(r"KeyQuery of store counts was read: \d+ us", read)
    assert re.fullmatch(r"task 0_0 runs here, read_uncommitted: \d+ us", ran)
    standby = app.place("counts").task(1)
    app.open_standby(standby)
    app.tell_progress(standby, 3)
    read, ran = one(app, "counts", sf.RangeQuery(), 1, execution_info=True).execution_info
    assert read.startswith("RangeQuery of store counts was read: ")
    assert ran.startswith("task 0_1 is a copy here, 3 offsets behind: ")
