"""`streamfleet worker reset` on the real broker: what it deletes, what it leaves alone, when it refuses."""

import msgspec
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import NewTopic

from streamfleet.worker.app_record import AppRecordFile


def run_once(shop, *words, state="state", expected=None):
    """Run the app until it has counted, and stop it."""
    shop.write(*words)
    worker = shop.run(state=state)
    worker.until_ready()
    counts = expected or {word: words.count(word) for word in words}
    shop.counts(lambda found: found == counts)
    worker.send()
    assert worker.wait() == 0


def offsets(shop):
    [future] = shop.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(shop.app)]).values()
    return {(each.topic, each.partition): each.offset for each in future.result(10).topic_partitions}


def processed(worker):
    """Records of the input topics."""
    threads = worker.door().json("/status")["threads"]
    return sum(
        task["processed_records"] for thread in threads for task in thread["tasks"] if task["id"].startswith("0_")
    )


def internal(shop):
    return {f"{shop.app}-by-word-repartition", f"{shop.app}-counts-changelog"}


def task_directories(shop):
    return [entry.name for entry in (shop.directory / "state" / shop.app).iterdir() if entry.is_dir()]


def test_after_a_reset_the_app_counts_everything_again_from_nothing(shop):
    shop.create_topics()
    run_once(shop, "to", "be", "to")
    result = shop.reset("--yes")
    assert result.returncode == 0, result.stderr
    assert not internal(shop) & shop.topics()
    assert task_directories(shop) == []
    assert offsets(shop) == {(f"{shop.app}-lines", 0): 0, (f"{shop.app}-lines", 1): 0}
    run_once(shop, "be", expected={"to": 2, "be": 2})


def test_latest_begins_behind_the_last_record(shop):
    shop.create_topics()
    run_once(shop, "a", "b", "c")
    assert shop.reset("--yes", "--input-topics", "latest").returncode == 0
    assert sum(offsets(shop).values()) == 3


def test_a_reset_begins_where_it_is_told(shop):
    shop.create_topics()
    run_once(shop, *"abcdefgh")
    lines = f"{shop.app}-lines"
    ends = {partition: offset for (topic, partition), offset in offsets(shop).items() if topic == lines}
    assert min(ends.values()) > 1 and sum(ends.values()) == 8, "both partitions have more than one record"

    def begins_at(*options):
        result = shop.reset("--yes", *options)
        assert result.returncode == 0, result.stderr
        return {partition: offset for (_, partition), offset in offsets(shop).items()}

    assert begins_at("--shift-by", "-1") == {0: ends[0] - 1, 1: ends[1] - 1}
    assert begins_at("--shift-by", "+1000") == ends
    assert begins_at("--to-offset", "1") == {0: 1, 1: 1}
    assert begins_at("--to-datetime", "2100-01-01T00:00:00Z") == ends
    assert begins_at("--by-duration", "PT1H") == {0: 0, 1: 0}
    chosen = {0: ends[0] - 1, 1: ends[1] - 2}
    file = shop.directory / "offsets.csv"
    file.write_text("".join(f"{lines},{partition},{offset}\n" for partition, offset in chosen.items()))
    assert begins_at("--from-file", str(file)) == chosen

    file.write_text(f"{lines},0,1\n")
    for wrong, reason in [
        (("--from-file", str(file)), f"says nothing about {lines}-1"),
        (("--to-offset", "1", "--shift-by", "1"), "contradict each other"),
        (("--by-duration", "soon"), "is no duration"),
    ]:
        refused = shop.reset("--yes", *wrong)
        assert refused.returncode == 2 and reason in refused.stderr.splitlines()[-1]
    assert {partition: offset for (_, partition), offset in offsets(shop).items()} == chosen

    worker = shop.run()
    worker.until_ready()
    worker.until(lambda: {partition: at for (topic, partition), at in offsets(shop).items() if topic == lines} == ends)
    assert processed(worker) == 3
    worker.send()
    assert worker.wait() == 0


def test_a_dry_run_says_everything_and_changes_nothing(shop):
    shop.create_topics()
    run_once(shop, "a")
    before = (shop.topics(), offsets(shop), task_directories(shop))
    result = shop.reset("--dry-run")
    assert result.returncode == 0
    for name in [f"{shop.app}-lines", *internal(shop), str(shop.app)]:
        assert name in result.stdout
    assert (shop.topics(), offsets(shop), task_directories(shop)) == before


def test_topics_of_another_app_with_a_longer_name_stay(shop):
    """`<app>` + store `x-y` and `<app>-x` + store `y` would have the same changelog name: prefixes say nothing."""
    shop.create_topics()
    others = f"{shop.app}-x-counts-changelog"
    for future in shop.admin.create_topics([NewTopic(others, 1, 1)]).values():
        future.result(10)
    run_once(shop, "a")
    assert shop.reset("--yes").returncode == 0
    assert others in shop.topics()
    assert {f"{shop.app}-lines", f"{shop.app}-counts"} <= shop.topics()


def test_a_reset_is_refused_while_a_worker_runs(shop):
    shop.create_topics()
    shop.write("a")
    worker = shop.run()
    worker.until_ready()
    shop.counts(lambda found: found == {"a": 1})
    result = shop.reset("--yes")
    assert result.returncode == 1
    assert "error: " in result.stderr
    assert "stop all its workers" in result.stderr
    assert internal(shop) <= shop.topics()
    worker.send()
    assert worker.wait() == 0


def test_a_reset_may_be_repeated(shop):
    shop.create_topics()
    run_once(shop, "a", "b")
    assert shop.reset("--yes").returncode == 0
    again = shop.reset("--yes")
    assert again.returncode == 0, again.stderr
    assert "internal topics: none to delete" in again.stdout
    assert offsets(shop) == {(f"{shop.app}-lines", 0): 0, (f"{shop.app}-lines", 1): 0}


def test_nobody_to_ask_is_a_refusal(shop):
    shop.create_topics()
    run_once(shop, "a")
    result = shop.reset()
    assert result.returncode == 1
    assert "pass --yes" in result.stderr
    assert internal(shop) <= shop.topics()


def test_an_app_that_never_ran_here_needs_its_topology_named_and_its_state_elsewhere_is_refused_then(shop):
    shop.create_topics()
    run_once(shop, "a", state="elsewhere")
    refused = shop.reset("--yes")
    assert refused.returncode == 1
    assert "MODULE:FUNCTION" in refused.stderr
    done = shop.reset("shop_app:topology", "--yes")
    assert done.returncode == 0, done.stderr
    assert not internal(shop) & shop.topics()
    stale = shop.run(state="elsewhere")
    assert stale.wait() == 1
    assert f"{shop.app}-counts-changelog was deleted and created again" in stale.log().splitlines()[-1]


def test_a_reset_that_was_cut_short_keeps_the_app_from_running_until_it_is_done(shop):
    shop.create_topics()
    run_once(shop, "a")
    file = AppRecordFile(shop.directory / "state" / shop.app)
    file.save(msgspec.structs.replace(file.load(), is_reset_pending=True))
    refused = shop.run()
    assert refused.wait() == 1
    assert "was begun and not finished" in refused.log().splitlines()[-1]
    assert shop.reset("--yes").returncode == 0
    run_once(shop, "a", expected={"a": 2})
