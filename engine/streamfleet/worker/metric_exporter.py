"""The metrics of a worker in Prometheus' text format, collected when somebody asks.

The engine's counters and the threads' statuses come in, families of metric_catalogue.py go out; nothing is kept here.
Standard process metrics (memory, CPU, open files, garbage collection) come from prometheus-client itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from streamfleet.changelog.progress import UpdateKind
from streamfleet.kafka_streams.states import ClientState
from streamfleet.metrics import LatencyHistogram, Sample
from streamfleet.task.phases import TaskPhase
from streamfleet.thread.thread_phases import ThreadPhase
from streamfleet.thread.thread_status import ThreadStatus
from streamfleet.worker.metric_catalogue import METRICS, MetricSpec
from streamfleet.worker.observed_app import ObservedApp

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class MetricExporter(Collector):
    def __init__(self, app: ObservedApp) -> None:
        self._app = app
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    def text(self) -> bytes:
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        by_name: dict[str, list[Sample]] = {}
        for sample in self._samples():
            by_name.setdefault(sample.name, []).append(sample)
        latencies = {"commit_seconds": self._app.commit_latencies(), "query_seconds": self._app.query_latencies()}
        for spec in METRICS:
            if spec.kind == "histogram":
                yield _histogram(spec, latencies[spec.name])
            else:
                yield _plain(spec, by_name.get(spec.name, ()))

    def _samples(self) -> Iterator[Sample]:
        app = self._app
        yield from app.counters()
        yield Sample("info", {**app.identity(), "version": app.version}, 1)
        for state in ClientState:
            yield Sample("state", {"state": state.value}, int(state is app.state))
        threads = app.threads()
        phases = Counter(thread.phase for thread in threads)
        task_phases = Counter(task.phase for thread in threads for task in thread.tasks)
        for thread_phase in ThreadPhase:
            yield Sample("threads", {"phase": thread_phase.value}, phases[thread_phase.value])
        for task_phase in TaskPhase:
            yield Sample("tasks", {"phase": task_phase.value}, task_phases[task_phase.value])
        kinds = Counter(standby.kind for thread in threads for standby in thread.standbys)
        for kind in (UpdateKind.STANDBY, UpdateKind.WARMUP):
            yield Sample("standby_tasks", {"kind": kind.value}, kinds[kind.value])
        for thread in threads:
            yield Sample("last_step_age_seconds", {"thread": thread.name}, app.step_age_ms(thread) / 1000)
            yield from _of_tasks(thread)


def _of_tasks(thread: ThreadStatus) -> Iterator[Sample]:
    uncommitted = sum(task.uncommitted_bytes for task in thread.tasks)
    yield Sample("uncommitted_bytes", {"thread": thread.name}, uncommitted)
    for standby in thread.standbys:
        if standby.lag_records is not None:
            yield Sample("standby_lag_records", {"task": standby.id, "kind": standby.kind}, standby.lag_records)
    for task in thread.tasks:
        if task.restore is not None:
            yield Sample("restore_remaining_records", {"task": task.id}, task.restore.remaining_records)
            if task.restore.remaining_bytes is not None:
                yield Sample("restore_remaining_bytes", {"task": task.id}, task.restore.remaining_bytes)
            if task.restore.eta_seconds is not None:
                yield Sample("restore_eta_seconds", {"task": task.id}, task.restore.eta_seconds)
        for each in task.inputs:
            if each.lag_records is not None:
                labels = {"topic": each.topic, "partition": str(each.partition)}
                yield Sample("input_lag_records", labels, each.lag_records)


def _plain(spec: MetricSpec, samples: Iterable[Sample]) -> Metric:
    kind = CounterMetricFamily if spec.kind == "counter" else GaugeMetricFamily
    family = kind(spec.full_name.removesuffix("_total"), spec.meaning, labels=spec.labels)
    for sample in samples:
        family.add_metric([sample.labels[label] for label in spec.labels], sample.value)
    return family


def _histogram(spec: MetricSpec, latencies: Mapping[str, LatencyHistogram]) -> Metric:
    family = HistogramMetricFamily(spec.full_name, spec.meaning, labels=spec.labels)
    for label, latency in latencies.items():
        counts, total = list(latency.counts), 0
        buckets = []
        for bound, count in zip([*map(str, latency.bounds_seconds), "+Inf"], counts, strict=True):
            total += count
            buckets.append((bound, total))
        family.add_metric([label], buckets, latency.sum_seconds)
    return family
