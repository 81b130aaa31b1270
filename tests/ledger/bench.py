"""One run's broker, topics, input and workers, and the check at its end.

Used by run.py (seeded schedules) and scenarios.py (one fault, aimed). Owns a broker of its own: faults include its death.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, Producer
from tests.ledger import topics
from tests.ledger.app import ACCOUNTS, INPUT, LIMITS, LONG, OUTPUTS, STORES, TEXT, output_topic
from tests.ledger.decoding import (
    has_record_id,
    input_bytes,
    input_record,
    kept_row,
    output_record,
    record_id,
    source_offset,
    text_key,
)
from tests.ledger.fleet import Fleet
from tests.ledger.fold import OutputRecord
from tests.ledger.forwarded import Forwarded, check_complete, check_forwarded
from tests.ledger.log_batches import (
    COORDINATOR_LOG,
    WrittenBatch,
    batches_in,
    check_owners,
    committed_transactions,
    completed_transactions,
    open_transactions,
    partition_batches,
    partition_records,
)
from tests.ledger.oracle import PER_RECORD, Anomaly, check_at_least_once, check_exactly_once, check_kept
from tests.ledger.result_logs import GROUP_OFFSETS, OUTPUT_SETTINGS, appended_results, commit_history
from tests.ledger.state_check import changelog_topic, check_dump, check_newest, dump_worker
from tests.ledger.stints import Appended, Commit, Disturbance, Repeats, check_all_processed, check_repeats
from tests.ledger.workload import (
    LedgerRecord,
    LedgerSpec,
    account_number,
    account_updates,
    all_keys,
    generate,
    limit_of,
)

from streamfleet.ids import TopicPartition
from streamfleet.records import RawRecord
from streamfleet_devbroker.cluster import Cluster, ClusterSpec

APPLICATION = "ledger"
REPARTITION = f"{APPLICATION}-by-count-repartition"
REGISTRATION = f"{APPLICATION}-by-account-subscription-registration-topic"
RESPONSE = f"{APPLICATION}-by-account-subscription-response-topic"
FORWARDING = {REPARTITION: "tagg", RESPONSE: "owned"}
"""Topics between the sub-topologies that carry what follows from the input, with the output that follows from them."""
ALL_INPUTS = (INPUT, LIMITS, ACCOUNTS, REGISTRATION, REPARTITION, RESPONSE)
KEPT_STORES = ("min", "max", "sum", "count", "window-min", "window-sum")
EXACTLY_ONCE = "exactly_once_v2"
AT_LEAST_ONCE = "at_least_once"
NODE = 1
CATCH_UP_SECONDS = 90.0
ACCOUNTS_SECONDS = 60.0


@dataclass
class Bench:
    directory: Path
    broker: Cluster
    spec: LedgerSpec
    guarantee: str
    fleet: Fleet
    disturbances: list[Disturbance] = field(default_factory=list)
    """What happened to workers and broker so far: it may explain repeated records."""
    repeats: Repeats | None = None
    """At least once: what was repeated."""
    compared_stores: int = 0
    """Exactly once: stores on the disks of all workers that were compared with their changelogs."""
    written: list[LedgerRecord] = field(default_factory=list)
    has_all_accounts: bool = False
    """Whether the app knew them before the first record was written."""
    _writer: threading.Thread | None = None
    _writer_error: Exception | None = None

    @property
    def bootstrap(self) -> str:
        return self.broker.bootstrap_servers

    # input

    def prepare(self) -> None:
        """Create the topics, and fill the tables of the joins: rows must be there before the first record that is joined."""
        topics.create_topics(self.bootstrap, [INPUT, LIMITS, ACCOUNTS], self.spec.partitions)
        settings = {} if self.guarantee == EXACTLY_ONCE else OUTPUT_SETTINGS
        topics.create_topics(self.bootstrap, map(output_topic, OUTPUTS), self.spec.partitions, settings)
        if self.guarantee != EXACTLY_ONCE:
            topics.create_topics(self.bootstrap, FORWARDING, self.spec.partitions, OUTPUT_SETTINGS)
        producer = self._producer()
        before = self.spec.base_timestamp - 60_000
        for key in all_keys(self.spec):
            producer.produce(LIMITS, LONG.serialize("", limit_of(key)), key.encode(), timestamp=before)
        for account, owner in account_updates(self.spec):
            producer.produce(ACCOUNTS, TEXT.serialize("", owner), account.encode(), timestamp=before)
        assert producer.flush(30) == 0

    def wait_for_accounts(self, seconds: float = ACCOUNTS_SECONDS) -> None:
        """Until the app knows who points to which key: then every count of a key is told to all of them, from the first on."""
        self._wait_until_processed((ACCOUNTS, REGISTRATION), seconds)
        assert not self.written
        self.has_all_accounts = True

    def write(self, records: Sequence[LedgerRecord], seconds: float = 0.0) -> None:
        """Spread over that time; an absent broker delays it."""
        producer = self._producer()
        started = time.monotonic()
        for number, record in enumerate(records):
            due = started + seconds * number / len(records)
            while (left := due - time.monotonic()) > 0:
                producer.poll(min(left, 0.1))
            key, value, headers = input_bytes(record)
            producer.produce(
                INPUT, value, key, partition=record.partition, timestamp=record.timestamp, headers=list(headers)
            )
        if producer.flush(120) != 0:
            raise TimeoutError("the input could not be written in two minutes")
        self.written += records

    def write_in_background(self, seconds: float) -> None:
        def run() -> None:
            try:
                self.write(list(generate(self.spec)), seconds)
            except Exception as error:
                self._writer_error = error

        self._writer = threading.Thread(target=run, name="ledger-writer", daemon=True)
        self._writer.start()

    def _producer(self) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.timeout.ms": 300_000,
                "partitioner": "murmur2_random",
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )

    # the end

    def wait_until_caught_up(self, seconds: float = CATCH_UP_SECONDS) -> float:
        """All input written, and nothing of any input topic left to process; returns how long it took, raises TimeoutError."""
        started = time.monotonic()
        if self._writer is not None:
            self._writer.join(120)
            if self._writer_error is not None:
                raise self._writer_error
        self._wait_until_processed(ALL_INPUTS, seconds)
        return time.monotonic() - started

    def _wait_until_processed(self, names: Sequence[str], seconds: float) -> None:
        """`names` in the order in which records pass through them."""
        deadline = time.monotonic() + seconds
        left: int | str = "unknown"
        while time.monotonic() < deadline:
            try:
                left = topics.unprocessed_records(self.bootstrap, APPLICATION, names, self.spec.partitions)
            except (KafkaException, TimeoutError) as error:
                left = str(error)
            if left == 0:
                return
            time.sleep(0.3)
        raise TimeoutError(f"not caught up after {seconds:g} s; left to process: {left}")

    def finish(self) -> list[Anomaly]:
        """Wait, close the workers, check everything."""
        anomalies = []
        try:
            self.wait_until_caught_up()
        except TimeoutError as error:
            anomalies.append(Anomaly("stuck", "the app", str(error)))
        anomalies += [Anomaly("no clean end", name, "see its log") for name in self.fleet.close()]
        anomalies += [Anomaly("worker died", "the app", death) for death in self.fleet.deaths]
        return anomalies + self.check()

    def check(self) -> list[Anomaly]:
        """Everything that can be read when the workers are gone."""
        raw_inputs = self._read(INPUT)
        inputs = [input_record(raw) for raw in raw_inputs]
        anomalies = self._check_input(inputs)
        results = {name: self._read(output_topic(name)) for name in OUTPUTS}
        outputs = decoded(results)
        keys = self._complete(inputs)
        if self.guarantee != EXACTLY_ONCE:
            self.repeats = self._check_repeats(results, {record_id(raw): raw for raw in raw_inputs})
            anomalies += check_at_least_once(inputs, outputs, keys) + self.repeats.anomalies
            return anomalies + check_kept(inputs, self._kept())
        anomalies += check_exactly_once(inputs, outputs, keys, accounts_first=self.has_all_accounts)
        return anomalies + self._check_state() + self._check_owners()

    def _kept(self) -> dict[str, dict[Hashable, Any]]:
        """The changelogs folded, of the stores that at-least-once runs look at."""
        topics = {store: self._read(changelog_topic(APPLICATION, store)) for store in KEPT_STORES}
        return {store: dict(kept_row(store, raw) for raw in records) for store, records in topics.items()}

    def outputs(self) -> dict[str, list[OutputRecord]]:
        return decoded({name: self._read(output_topic(name)) for name in OUTPUTS})

    def _check_repeats(self, results: Mapping[str, Sequence[RawRecord]], inputs: Mapping[int, RawRecord]) -> Repeats:
        """`inputs` by record id."""
        commits = commit_history(topics.read_topic(self.bootstrap, GROUP_OFFSETS, 1), APPLICATION)
        repeats = Repeats()
        sources = dict.fromkeys(PER_RECORD, INPUT) | {output: topic for topic, output in FORWARDING.items()}
        for output, source in sources.items():
            offset = source_offset if source in FORWARDING else lambda raw: inputs[record_id(raw)].offset
            for number in range(self.spec.partitions):
                batches = partition_batches(self._data, output_topic(output), number)
                mine = [raw for raw in results[output] if raw.partition == number]
                history = commits.get(TopicPartition(source, number), [])
                appended = appended_results(mine, batches, offset)
                repeats += check_repeats(f"{output}-{number}", appended, history, self.disturbances)
                if source in FORWARDING:
                    left = len(partition_records(self._data, source, number))
                    repeats += Repeats(anomalies=check_all_processed(f"{output}-{number}", appended, left))
        for topic in FORWARDING:
            repeats += self._check_forwarded(topic, inputs, commits)
        return repeats

    def _check_forwarded(
        self, topic: str, inputs: Mapping[int, RawRecord], commits: Mapping[TopicPartition, Sequence[Commit]]
    ) -> Repeats:
        repeats = Repeats()
        everything: list[Forwarded] = []
        number_of = int if topic == REPARTITION else account_number
        for number in range(self.spec.partitions):
            by_source: dict[int, list[Forwarded]] = defaultdict(list)
            for raw, producer_id in partition_records(self._data, topic, number):
                if not has_record_id(raw):
                    continue  # told when the account became known
                source = inputs[record_id(raw)]
                appended = Appended(source.offset, producer_id, raw.timestamp)
                by_source[source.partition].append(Forwarded(number_of(text_key(raw)), record_id(raw), appended))
            for partition, forwarded in by_source.items():
                where, history = f"{topic}-{number} of {partition}", commits[TopicPartition(INPUT, partition)]
                repeats += check_forwarded(where, forwarded, history, self.disturbances)
                everything += forwarded
        return repeats + Repeats(anomalies=check_complete(topic, inputs, everything))

    def _complete(self, inputs: Sequence[LedgerRecord]) -> list[str]:
        """Keys all of whose integers were written: scenarios stop earlier than seeded runs."""
        written = {record.record_id for record in inputs}
        missing = {record.key for record in generate(self.spec) if record.record_id not in written}
        return [key for key in all_keys(self.spec) if key not in missing]

    def _check_input(self, inputs: Sequence[LedgerRecord]) -> list[Anomaly]:
        if sorted(inputs, key=lambda r: r.record_id) == sorted(self.written, key=lambda r: r.record_id):
            return []
        return [Anomaly("bad input", INPUT, f"{len(inputs)} records in the topic, {len(self.written)} were written")]

    def _check_state(self) -> list[Anomaly]:
        changelogs: dict[TopicPartition, list[RawRecord]] = {}
        for store in (each for each in STORES if each.layout != "memory"):
            topic = changelog_topic(APPLICATION, store.name)
            for number in range(self.spec.partitions):
                changelogs[TopicPartition(topic, number)] = []
            for raw in self._read(topic):
                changelogs[TopicPartition(topic, raw.partition)].append(raw)
        dumps = [
            dump
            for worker in self.fleet.workers
            for dump in dump_worker(worker.name, worker.state_directory, APPLICATION)
        ]
        self.compared_stores = len(dumps)
        anomalies = check_newest(dumps, changelogs)
        for dump in dumps:
            anomalies += check_dump(dump, changelogs[dump.changelog])
        return anomalies

    def records_kept_in_memory(self) -> int:
        """Of changelogs whose stores are not on disk: what every start has to restore."""
        stores = [store.name for store in STORES if store.layout == "memory"]
        return sum(len(self._read(changelog_topic(APPLICATION, name))) for name in stores)

    def _check_owners(self) -> list[Anomaly]:
        anomalies: list[Anomaly] = []
        for store in STORES:
            topic = changelog_topic(APPLICATION, store.name)
            for number in range(self.spec.partitions):
                batches = partition_batches(self._data, topic, number)
                anomalies += check_owners(f"{topic}-{number}", committed_transactions(batches))
                anomalies += self._check_ended(f"{topic}-{number}", batches)
        return anomalies

    def _check_ended(self, where: str, batches: Sequence[WrittenBatch]) -> list[Anomaly]:
        """All workers are gone: a transaction without its marker hides what follows it for ever."""
        return [
            Anomaly(
                "hanging transaction",
                where,
                f"of producer {producer} since offset {first.first_offset}: nobody ended it",
            )
            for producer, first in open_transactions(batches).items()
        ]

    def broker_defects(self) -> list[str]:
        """Transactions that are over by the log of the broker's coordinator, and have no marker in a partition."""
        over = completed_transactions(raw for raw, _ in partition_records(self._data, COORDINATOR_LOG, 0))
        return [
            f"{where.name}: no markers of producer {producer}, whose records hang since offset {first.first_offset}"
            for where in sorted(self._data.glob("*-[0-9]*"))
            for producer, first in open_transactions(batches_in(where)).items()
            if (producer, first.epoch) in over
        ]

    def _read(self, topic: str) -> list[RawRecord]:
        return topics.read_topic(self.bootstrap, topic, self.spec.partitions)

    @property
    def _data(self) -> Path:
        return self.broker.nodes[0].data_directory


@contextmanager
def open_bench(
    spec: LedgerSpec,
    guarantee: str,
    *,
    options: Sequence[str] = (),
    broker_settings: Mapping[str, str] | None = None,
    keep: Path | None = None,
) -> Iterator[Bench]:
    """A bench with a broker, topics and an empty fleet; `options` are the workers'; files stay in `keep` when it is over."""
    directory = keep or Path(tempfile.mkdtemp(prefix="streamfleet-ledger-"))
    directory.mkdir(parents=True, exist_ok=True)
    now_ms = int(time.time() * 1000)
    spec = replace(spec, base_timestamp=now_ms - now_ms % 100_000)
    try:
        with Cluster.start(ClusterSpec(directory / "broker", settings=broker_settings or {})) as broker:
            fleet = Fleet(directory, broker.bootstrap_servers, APPLICATION, guarantee, options)
            bench = Bench(directory, broker, spec, guarantee, fleet)
            try:
                bench.prepare()
                yield bench
            finally:
                fleet.kill_all()
    finally:
        if keep is None:
            shutil.rmtree(directory, ignore_errors=True)


def decoded(results: Mapping[str, Sequence[RawRecord]]) -> dict[str, list[OutputRecord]]:
    return {name: [output_record(name, raw) for raw in raws] for name, raws in results.items()}
