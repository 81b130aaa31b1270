"""Topics that are not what they were: truncated, made anew, grown, gone."""

import shutil
import threading
import time
from datetime import timedelta
from types import SimpleNamespace

import pytest
from confluent_kafka.admin import NewPartitions, NewTopic
from tests.integration.faults.conftest import (
    COLOURS,
    KEYS,
    CountingApp,
    delete_records,
    delete_topic,
    failure_of,
    is_one_sentence,
    offsets_of,
    read_topic,
    set_topic,
    wait_for,
)

import streamfleet as sf
from streamfleet.changelog.progress import UpdateKind
from streamfleet.changelog.state_updater import StateUpdater
from streamfleet.failpoints import NoFailpoints
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.kafka.client_errors import (
    InputGapError,
    InternalTopicLostError,
    MissingSourceTopicError,
    PartitionCountError,
    SourceTopicChangedError,
    TopicSettingsError,
)
from streamfleet.kafka.patience import MonotonicClock
from streamfleet.kafka_streams import ClientState, KafkaStreams
from streamfleet.ports import OffsetKind

ALL = len(KEYS) * len(COLOURS)
"""So many records have every key with every colour."""


def corrupted_tasks(streams):
    return sum(counts.corrupted_tasks for counts in streams.metrics().threads.values())


def lost_rows(streams):
    return sum(counts.lost_rows for counts in streams.metrics().threads.values())


def stale_state(app):
    """Local state that is behind its changelogs; returns the first offset that it does not know, by changelog and partition."""
    app.write(ALL)
    app.run_until_counted()
    directory, kept = app.bench.directory / "w", app.bench.directory / "kept"
    shutil.copytree(directory, kept)
    changelogs = [app.changelog(store) for store in ("keys", "windows", "colours")]
    ends = {place: end for place, (end, _) in offsets_of(app.bench, changelogs).items()}
    app.write(ALL)
    app.run_until_counted()
    shutil.rmtree(directory)
    kept.rename(directory)
    return ends


def test_F34_a_changelog_truncated_past_the_state_is_restored_from_its_start(app, logged):
    for (topic, partition), end in stale_state(app).items():
        delete_records(app.bench, topic, {partition: end})
    with app.running() as streams:
        app.write(ALL)
        app.wait_until_counted()
        assert corrupted_tasks(streams) == 4
        assert lost_rows(streams) == 0
    said = [line["error"] for line in logged if line["event"] == "task corrupted, its state is wiped and restored"]
    assert len(said) == 4 and all("goes on from" in text and "wiped and restored" in text for text in said)


def test_F34_what_a_truncated_changelog_no_longer_has_is_reported_not_kept_half(app, logged):
    stale_state(app)
    delete_records(app.bench, app.changelog("keys"), {0: -1, 1: -1})
    with app.running() as streams:
        app.keys.clear()  # the counts by key are gone, and begin anew
        app.write(ALL)
        expected = {key.encode(): count.to_bytes(8, "big") for key, count in app.keys.items()}
        app.bench.read(app.outputs["by-key"], lambda got: dict(got) == expected)
        assert corrupted_tasks(streams) == 2
        assert lost_rows(streams) == len(KEYS)
    assert sum(line["event"].startswith("task corrupted") for line in logged) == 2
    assert sum(line["rows"] for line in logged if line["event"].startswith("rows of local state are lost")) == len(KEYS)
    assert not list(app.bench.directory.rglob("*.former"))


def test_F34_state_ahead_of_its_changelog_is_corrupted_too():
    changelog = TopicPartition("changelog", 0)
    admin = SimpleNamespace(list_offsets=lambda asked, kind: {changelog: 0 if kind is OffsetKind.EARLIEST else 10})
    updater = StateUpdater(None, admin, NoFailpoints(), MonotonicClock())
    task = SimpleNamespace(
        task_id=TaskId(0, 0), source_changelogs=frozenset(), restore_positions=lambda: {changelog: 11}
    )
    updater.add(task, UpdateKind.ACTIVE, {})
    updater.run_once()
    failed = updater.take_failed()
    assert failed is not None and not updater.take_restored()
    assert isinstance(failed[1], sf.TaskCorruptedError)
    assert "has offsets 0 to 10, but the state of task 0_0 goes on from 11" in str(failed[1])


def test_F35_a_changelog_deleted_and_created_again_is_refused_and_the_state_is_kept(app):
    app.write(ALL)
    app.run_until_counted()
    delete_topic(app.bench, app.changelog("keys"))
    files = {path: path.stat().st_size for path in app.bench.directory.rglob("*.sst")}
    with app.started() as streams:
        error = failure_of(streams)
    assert isinstance(error, sf.StateStoreError) and is_one_sentence(error)
    assert app.changelog("keys") in str(error) and "deleted and created again" in str(error)
    assert files and {path for path in files if path.exists()} == files.keys()


INTERNAL = {"changelog": "keys-changelog", "repartition": "colour-repartition"}


def make_anew(app, kind):
    """Delete an internal topic and create it again, as somebody would who wants to empty it."""
    topic = f"{app.bench.app}-{INTERNAL[kind]}"
    delete_topic(app.bench, topic)
    wait_for(lambda: created_again(app.bench, topic))
    return topic


def stored_keys(app):
    """How many keys are in the database of each task."""
    return sum(len(app.stored_rows("keys", directory)) for directory in app.task_directories())


def assert_is_refused(error, topic):
    assert isinstance(error, InternalTopicLostError) and is_one_sentence(error), repr(error)
    assert f"deleted and created again while the app was running: {topic};" in str(error)


@pytest.mark.parametrize("kind", INTERNAL)
def test_F35_an_internal_topic_made_anew_while_the_app_runs_ends_it_and_the_state_is_kept(app, kind):
    with app.started(source_check_interval_ms=300) as streams:
        app.write(ALL)
        app.wait_until_counted()
        app.wait_for_no_lag()
        topic = make_anew(app, kind)
        error = failure_of(streams)
        assert corrupted_tasks(streams) == 0
    assert_is_refused(error, topic)
    assert stored_keys(app) == len(KEYS)


@pytest.mark.parametrize("kind", INTERNAL)
def test_F35_an_internal_topic_made_anew_is_refused_when_tasks_move(app, kind):
    """Before anybody has looked by the clock."""
    with app.started(source_check_interval_ms=600_000) as streams:
        app.write(ALL)
        app.wait_until_counted()
        app.wait_for_no_lag()
        topic = make_anew(app, kind)
        streams.add_stream_thread()
        error = failure_of(streams)
        assert corrupted_tasks(streams) == 0
    assert_is_refused(error, topic)
    assert stored_keys(app) == len(KEYS)


def test_F35_a_copy_is_not_wiped_for_a_changelog_made_anew(bench):
    app = CountingApp(bench, partitions=1)
    settings = {"num_standby_replicas": 1, "source_check_interval_ms": 600_000}
    with app.running(worker="first", **settings) as first, app.started(worker="second", **settings) as second:
        app.write(ALL)
        app.wait_until_counted()
        app.wait_for_no_lag()
        wait_for(lambda: sum(len(each.threads()[0].standbys) for each in (first, second)) == 2)
        wait_for(lambda: all(not copy.lag_records for each in (first, second) for copy in each.threads()[0].standbys))
        topic = make_anew(app, "changelog")
        wait_for(lambda: any(each.state is ClientState.ERROR for each in (first, second)))
        failed = [each for each in (first, second) if each.state is ClientState.ERROR]
        assert corrupted_tasks(first) == corrupted_tasks(second) == 0
    assert_is_refused(failed[0].failure, topic)
    rows = [len(app.stored_rows("keys", path)) for w in ("first", "second") for path in app.task_directories(w)]
    assert sorted(rows)[-2:] == [len(KEYS)] * 2


def test_F36_a_changelog_that_would_be_deleted_by_age_is_refused_at_the_start_and_said_once(app, logged):
    app.write(ALL)
    app.run_until_counted()
    topic = app.changelog("keys")
    set_topic(app.bench, topic, "cleanup.policy", "delete")
    with KafkaStreams(app.topology, app.config()) as streams:
        with pytest.raises(TopicSettingsError) as caught:
            streams.start()
        assert dict(streams.metrics().failures) == {"TopicSettingsError": 1}
    assert is_one_sentence(caught.value)
    assert (caught.value.topic, caught.value.setting, caught.value.actual) == (topic, "cleanup.policy", "delete")
    said = [line for line in logged if line["event"].startswith("internal topic has another setting")]
    assert [(line["topic"], line["setting"]) for line in said] == [(topic, "cleanup.policy")]
    set_topic(app.bench, topic, "cleanup.policy", "compact")
    app.write(ALL)
    app.run_until_counted()


def test_F37_a_source_that_grows_while_the_app_runs_ends_it_with_both_numbers(bench):
    app = CountingApp(bench, partitions=4)
    with app.started(source_check_interval_ms=200) as streams:
        app.write(ALL)
        app.wait_until_counted()
        for future in bench.admin.create_partitions([NewPartitions(app.source, 6)]).values():
            future.result(10)
        error = failure_of(streams)
        assert not any(driver.thread.tasks.tasks for driver in streams._threads.drivers)
        assert dict(streams.metrics().failures) == {"SourceTopicChangedError": 1}
    assert isinstance(error, SourceTopicChangedError) and is_one_sentence(error)
    assert f"{app.source} has 6 partitions, it had 4" in str(error)
    with (
        KafkaStreams(app.topology, app.config()) as streams,
        pytest.raises(PartitionCountError, match="has 4 partitions, but the app needs 6"),
    ):
        streams.start()
    assert dict(streams.metrics().failures) == {"PartitionCountError": 1}


def test_F38_a_missing_source_is_waited_for_and_then_named(bench):
    topic = f"{bench.app}-nowhere"
    builder = sf.StreamsBuilder()
    builder.stream(topic).group_by_key().count(store="counts")
    config = bench.config(missing_source_timeout_ms=1500)
    began = time.monotonic()
    with (
        KafkaStreams(builder.build(), config) as streams,
        pytest.raises(MissingSourceTopicError, match=topic) as caught,
    ):
        streams.start()
    assert dict(streams.metrics().failures) == {"MissingSourceTopicError": 1}
    assert 1.0 < time.monotonic() - began < 10
    assert is_one_sentence(caught.value)


def test_F38_a_source_that_is_created_meanwhile_is_found(bench, logged):
    topic = f"{bench.app}-late"
    builder = sf.StreamsBuilder()
    builder.stream(topic).group_by_key().count(store="counts")
    creation = threading.Timer(0.7, lambda: bench.admin.create_topics([NewTopic(topic, 1, 1)]))
    creation.start()
    with KafkaStreams(builder.build(), bench.config(missing_source_timeout_ms=10_000)) as streams:
        streams.start()
        streams.wait_until_running(20)
    creation.join()
    assert [line["missing"] for line in logged if line["event"] == "waiting for source topics"] == [[topic]]


def test_F38_a_source_deleted_while_the_app_runs_ends_it_by_name(app):
    with app.started(source_check_interval_ms=200, missing_source_timeout_ms=500) as streams:
        app.write(ALL)
        app.wait_until_counted()
        delete_topic(app.bench, app.source)
        error = failure_of(streams, timeout_seconds=20)
    assert isinstance(error, MissingSourceTopicError) and is_one_sentence(error)
    assert error.topics == (app.source,)


def test_F38_a_source_made_anew_while_the_app_runs_is_not_taken_for_the_old_one(app):
    with app.started(source_check_interval_ms=300, missing_source_timeout_ms=20_000) as streams:
        app.write(ALL)
        app.wait_until_counted()
        delete_topic(app.bench, app.source)
        wait_for(lambda: created_again(app.bench, app.source))
        error = failure_of(streams)
    assert isinstance(error, SourceTopicChangedError) and is_one_sentence(error)
    assert f"{app.source} was deleted and created again" in str(error)


def created_again(bench, topic):
    (future,) = bench.admin.create_topics([NewTopic(topic, 2, 1)]).values()
    return future.exception(10) is None


def input_behind_a_gap(app):
    """Input that was deleted in part before it was processed; returns first and last lost offset by partition, what is lost, and
    all that was to be processed.
    """
    app.write(ALL)
    app.run_until_counted()
    written = app.write(ALL)
    gaps, cuts = {}, {}
    for (_, partition), (end, committed) in offsets_of(app.bench, [app.source]).items():
        cuts[partition] = (committed + end) // 2
        gaps[partition] = (committed, cuts[partition] - 1)
    lost = [
        (message.key().decode(), message.value().decode())
        for message in read_topic(app.bench, app.source, 2 * ALL)
        if gaps[message.partition()][0] <= message.offset() <= gaps[message.partition()][1]
    ]
    assert lost and len(lost) < len(written)
    delete_records(app.bench, app.source, cuts)
    return gaps, lost, written


def test_F39_lost_input_ends_the_app_with_the_gap(app):
    gaps, _, _ = input_behind_a_gap(app)
    with app.started() as streams:
        error = failure_of(streams)
    assert isinstance(error, InputGapError) and is_one_sentence(error)
    assert error.partition.topic == app.source
    assert gaps[error.partition.partition] == (error.first, error.behind - 1)
    assert f"has lost the offsets {error.first} to {error.behind - 1}" in str(error)


def test_F39_a_source_with_a_policy_goes_on_behind_the_gap_which_is_counted_once(app, logged):
    gaps, lost, _ = input_behind_a_gap(app)
    app.expect(lost, sign=-1)
    app.with_offset_reset("earliest")
    with app.running() as streams:
        app.wait_until_counted()
        dropped = {(d.reason): count for d, count in streams.metrics().dropped_records.items()}
        assert dropped == {"deleted before it was processed": len(lost)}
        assert streams.state is ClientState.RUNNING
    said = [line["reason"] for line in logged if line["event"] == "input goes on behind a gap"]
    assert len(said) == len(gaps) and all("has lost the offsets" in text for text in said)
    with app.running() as streams:  # although nothing was written meanwhile, the gap is behind us
        app.wait_until_counted()
        assert not streams.metrics().dropped_records


@pytest.mark.parametrize("policy", ["latest", timedelta(0)], ids=["latest", "duration"])
def test_F39_a_gap_is_committed_as_passed_even_if_nothing_follows(app, policy):
    _, lost, written = input_behind_a_gap(app)
    app.expect(written, sign=-1)
    app.with_offset_reset(policy)
    ends = {place: end for place, (end, _) in offsets_of(app.bench, [app.source]).items()}
    with app.running() as streams:
        wait_for(lambda: {p: at for p, (_, at) in offsets_of(app.bench, [app.source]).items()} == ends)
        counted = {dropped.reason: count for dropped, count in streams.metrics().dropped_records.items()}
    assert counted == {"deleted before it was processed": len(lost), "skipped behind a gap": ALL - len(lost)}
    with app.running() as streams:
        app.write(ALL)
        app.wait_until_counted()
        assert not streams.metrics().dropped_records


def test_a_source_begins_with_the_first_record_of_a_duration_before_now(bench):
    source, out = bench.topic("in", 1), bench.topic("out", 1)
    now_ms = time.time_ns() // 1_000_000
    for minutes_ago in (180, 150, 30, 10, 1):
        bench.producer.produce(source, str(minutes_ago), "k", timestamp=now_ms - minutes_ago * 60_000)
    assert bench.producer.flush(10) == 0
    builder = sf.StreamsBuilder()
    builder.stream(source, offset_reset=timedelta(hours=1)).to(out)
    with bench.running(builder.build()):
        assert bench.read(out, lambda got: len(got) >= 3) == [(b"k", b"30"), (b"k", b"10"), (b"k", b"1")]
