"""The running app as the outside sees it: read-only, and safe to read from any thread. Stands between KafkaStreams and
the HTTP door.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version

from streamfleet.clock import Clock
from streamfleet.config import StreamsConfig
from streamfleet.kafka_streams.client import KafkaStreams
from streamfleet.kafka_streams.states import ClientState
from streamfleet.metrics import LatencyHistogram, Sample, ThreadCounts
from streamfleet.thread.thread_status import ThreadStatus
from streamfleet.topology.topology import Topology


def installed_version() -> str:
    try:
        return version("streamfleet")
    except PackageNotFoundError:
        return "unknown"


class ObservedApp:
    def __init__(self, streams: KafkaStreams, topology: Topology, clock: Clock) -> None:
        self._streams = streams
        self._clock = clock
        self._topology_hash = topology.short_hash()
        self._lock = threading.Lock()
        self._state = streams.state
        self._state_since_ms = clock.monotonic_ms()
        self._start_failure: Exception | None = None
        self.version = installed_version()
        self.started_at_ms = clock.now_ms()

    @property
    def config(self) -> StreamsConfig:
        return self._streams.config

    def identity(self) -> dict[str, str]:
        return {"application_id": self.config.application_id, "topology_hash": self._topology_hash}

    # state

    @property
    def state(self) -> ClientState:
        return self._streams.state

    def on_state(self, state: ClientState) -> None:
        """Remember since when; called when the state changes."""
        with self._lock:
            self._state, self._state_since_ms = state, self._clock.monotonic_ms()

    @property
    def state_age_ms(self) -> int:
        with self._lock:
            return self._clock.monotonic_ms() - self._state_since_ms

    @property
    def waits_for_broker(self) -> str | None:
        return self._streams.waits_for_broker

    @property
    def is_paused(self) -> bool:
        return self._streams.is_paused

    @property
    def restore_rate_bytes_per_second(self) -> int:
        return self._streams.restore_rate_bytes_per_second

    def on_start_failure(self, error: Exception) -> None:
        self._start_failure = error

    @property
    def failure(self) -> Exception | None:
        """What ended the app, or kept it from starting."""
        return self._streams.failure or self._start_failure

    # threads

    def threads(self) -> list[ThreadStatus]:
        return self._streams.threads()

    def step_age_ms(self, thread: ThreadStatus) -> int:
        return max(0, self._clock.monotonic_ms() - thread.written_at_ms)

    # numbers

    def counters(self) -> Iterable[Sample]:
        return self._streams.metrics().samples()

    def thread_counts(self) -> list[ThreadCounts]:
        return list(self._streams.metrics().threads.values())

    def dropped_records(self) -> dict[str, int]:
        """By reason, since the process began."""
        found: dict[str, int] = {}
        for (_, reason), count in list(self._streams.metrics().dropped_records.items()):
            found[reason] = found.get(reason, 0) + count
        return found

    def query_latencies(self) -> Mapping[str, LatencyHistogram]:
        """By kind of query."""
        return self._streams.metrics().queries.latencies

    def commit_latencies(self) -> Mapping[str, LatencyHistogram]:
        """By thread."""
        return {name: counts.commit_latency for name, counts in self._streams.metrics().threads.items()}
