import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from streamfleet.ids import TaskId
from streamfleet.kafka_streams.states import ClientState
from streamfleet.thread.thread_status import InputStatus, RestoreStatus, StandbyStatus, TaskStatus, ThreadStatus
from streamfleet.worker.metric_catalogue import METRICS, PREFIX
from streamfleet.worker.metric_exporter import MetricExporter

NOW_MS = 1_000_000

DOCUMENT = Path(__file__).parents[4] / "docs" / "metrics.md"


def shown(app):
    """{(name, labels as pairs): value} of everything that is ours."""
    families = text_string_to_metric_families(MetricExporter(app).text().decode())
    samples = [sample for family in families for sample in family.samples if sample.name.startswith(PREFIX)]
    return {(each.name.removeprefix(PREFIX), frozenset(each.labels.items())): each.value for each in samples}


def value(app, name, **labels):
    return shown(app)[name, frozenset(labels.items())]


def busy(streams):
    streams.state = ClientState.RUNNING
    restoring = TaskStatus("1_0", "restoring", 0, (), RestoreStatus(40, 2, 4.0, 10.0, 800))
    running = TaskStatus("0_0", "running", 30, (InputStatus("words", 0, 5, 7), InputStatus("more", 0, 5, None)), None)
    copy = StandbyStatus("1_1", "warmup", 12, 3, None, None)
    streams.statuses = [ThreadStatus("shop-0", "running", NOW_MS, (running, restoring), (copy,))]
    counts = streams.metrics().thread("shop-0")
    counts.add_processed(TaskId(0, 0), 100)
    counts.add_processed(TaskId(0, 1), 20)
    with counts.timed("poll"):
        pass
    counts.commit_latency.observe(0.03)
    counts.commit_latency.observe(99)
    streams.metrics().record_dropped("join", "null key")
    streams.metrics().queries.add("key", 200, 0.002)
    streams.metrics().queries.add("key", 503, 3.0)
    streams.metrics().record_read_stall("words", "_BAD_MSG")
    streams.metrics().record_empty_changelog("shop-counts-changelog")
    streams.metrics().record_failure(ValueError("of a thread that was replaced"))


def test_every_counter_and_gauge_is_shown(app, streams, clock):
    busy(streams)
    clock.advance(2000)
    assert value(app, "processed_records_total", thread="shop-0", sub_topology="0") == 120
    assert value(app, "dropped_records_total", operator="join", reason="null key") == 1
    assert value(app, "failures_total", kind="ValueError") == 1
    assert value(app, "broker_outages_total") == value(app, "broker_away_seconds") == 0
    assert value(app, "state", state="running") == 1
    assert value(app, "state", state="error") == 0
    assert value(app, "tasks", phase="running") == 1
    assert value(app, "tasks", phase="restoring") == 1
    assert value(app, "threads", phase="running") == 1
    assert value(app, "input_lag_records", topic="words", partition="0") == 7
    assert value(app, "uncommitted_bytes", thread="shop-0") == 30
    assert value(app, "restore_remaining_records", task="1_0") == 40
    assert value(app, "restore_remaining_bytes", task="1_0") == 800
    assert value(app, "restore_eta_seconds", task="1_0") == 10
    assert value(app, "last_step_age_seconds", thread="shop-0") == 2


def test_a_lag_that_is_not_known_is_not_shown_as_zero(app, streams):
    busy(streams)
    assert not [labels for name, labels in shown(app) if name == "input_lag_records" and ("topic", "more") in labels]


def test_commit_latencies_are_a_cumulative_histogram(app, streams):
    busy(streams)
    assert value(app, "commit_seconds_bucket", thread="shop-0", le="0.025") == 0
    assert value(app, "commit_seconds_bucket", thread="shop-0", le="0.05") == 1
    assert value(app, "commit_seconds_bucket", thread="shop-0", le="+Inf") == 2
    assert value(app, "commit_seconds_count", thread="shop-0") == 2
    assert value(app, "commit_seconds_sum", thread="shop-0") == 99.03


def test_queries_are_counted_by_what_was_asked_and_answered(app, streams):
    busy(streams)
    assert value(app, "queries_total", kind="key", status="503") == 1
    assert value(app, "query_seconds_bucket", kind="key", le="0.0025") == 1
    assert value(app, "query_seconds_count", kind="key") == 2


def test_every_metric_of_the_catalogue_has_samples_in_a_busy_app(app, streams):
    busy(streams)
    names = {name for name, _ in shown(app)}
    for spec in METRICS:
        assert spec.name in names or f"{spec.name}_count" in names, spec.name


def test_every_counter_of_the_engine_is_in_the_catalogue(app, streams):
    busy(streams)
    known = {spec.name: set(spec.labels) for spec in METRICS}
    for sample in streams.metrics().samples():
        assert known[sample.name] == set(sample.labels)


def test_no_number_of_a_thread_is_counted_in_vain(app, streams):
    """Whatever ThreadCounts has, the exporter shows under its own name."""
    counts = streams.metrics().thread("shop-0")
    numbers = {name: 1000 + n for n, name in enumerate(n for n, value in vars(counts).items() if value == 0)}
    for name, number in numbers.items():
        setattr(counts, name, number)
    others = {"processed_records", "activity_seconds", "commit_latency", "tasks"}  # those of tasks are in /status
    assert others | numbers.keys() == vars(counts).keys(), "a new kind of number: show it, and test that it is shown"
    for name, number in numbers.items():
        assert value(app, f"{name}_total", thread="shop-0") == number


def test_an_app_that_has_not_started_has_metrics_too(app):
    assert value(app, "state", state="created") == 1


def test_the_documented_table_is_the_catalogue():
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*?) \|$", DOCUMENT.read_text(), re.MULTILINE)
    documented = [(name, kind, tuple(re.findall(r"`(\w+)`", labels)), meaning) for name, kind, labels, meaning in rows]
    assert documented == [(spec.full_name, spec.kind, spec.labels, spec.meaning) for spec in METRICS]
