"""StreamsConfig: every setting of an app, typed, from keywords or from a mapping with Kafka's dotted names.

Fields are grouped by concern and documented where they are declared. `from_mapping` is the only place that parses text.
"""

from __future__ import annotations

import difflib
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from streamfleet.config_streams_group import refuse_ignored
from streamfleet.config_values import (
    NOT_HERE,
    OPTIMIZATIONS,
    client_tags,
    host_and_port,
    optimization,
    processor_wrapper,
    store_epochs,
    tag_names,
    task_assignor,
)
from streamfleet.errors import ConfigError

if TYPE_CHECKING:
    from streamfleet.processor.handlers import DeserializationHandler, ProcessingHandler, ProductionHandler
    from streamfleet.processor.timestamps import TimestampExtractor
    from streamfleet.processor.wrapper import ProcessorWrapper
    from streamfleet.serdes.api import Serde

TOPIC_PREFIX = "topic."
TAG_PREFIX = "client.tag."
CLIENT_PREFIXES = (
    "consumer.",
    "main.consumer.",
    "restore.consumer.",
    "global.consumer.",
    "producer.",
    "admin.",
    "security.",
    "sasl.",
    "ssl.",
)


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if str(value).lower() in ("true", "false"):
        return str(value).lower() == "true"
    raise ValueError("expected true or false")


def _milliseconds(value: Any) -> int:
    return value // timedelta(milliseconds=1) if isinstance(value, timedelta) else int(value)


def _at_least(low: int, parse: Callable[[Any], int] = int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        number = parse(value)
        if number < low:
            raise ValueError(f"expected at least {low}")
        return number

    return check


def _one_of(*choices: str) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"expected {' or '.join(choices)}")
        return str(value)

    return check


def _optional(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else parse(value)


def _as_is(value: Any) -> Any:
    return value


def _serde(value: Any) -> Any:
    if value is not None and not (hasattr(value, "serialize") and hasattr(value, "deserialize")):
        raise ValueError("expected a serde such as streamfleet.serdes.string()")
    return value


def _handler(value: Any) -> Any:
    """The words "fail" and "continue" stand for the built-in handlers; StreamsConfig turns them into objects."""
    if isinstance(value, str):
        return _one_of("fail", "continue")(value)
    if not hasattr(value, "handle"):
        raise ValueError('expected "fail", "continue" or a handler object')
    return value


def _extractor(value: Any) -> Any:
    if value is not None and not (hasattr(value, "extract") and hasattr(value, "drop_reason")):
        raise ValueError("expected a TimestampExtractor such as FailOnInvalidTimestamp()")
    return value


def _setting(name: str, default: Any, parse: Callable[[Any], Any]) -> Any:
    return field(default=default, metadata={"name": name, "parse": parse})


@dataclass(frozen=True, kw_only=True)
class StreamsConfig:
    """The settings of one app. Frozen: change by `with_(...)`."""

    # identity and cluster
    application_id: str = field(metadata={"name": "application.id", "parse": str})
    """Names the app's state: prefix of its internal topics, its group, its state directory."""
    bootstrap_servers: str | None = _setting("bootstrap.servers", None, str)
    """Brokers to begin with, as host:port,host:port. Not needed by the test driver."""
    client_settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the Kafka clients under librdkafka's names: security.*, sasl.*, ssl.* for all of them, and those that begin with
    `consumer.`, `main.consumer.`, `restore.consumer.`, `global.consumer.`, `producer.` or `admin.` for one kind."""
    replication_factor: int = _setting("replication.factor", -1, _at_least(-1))
    """Of internal topics; -1 takes the cluster's default."""

    # serdes and time
    default_key_serde: Serde[Any] | None = _setting("default.key.serde", None, _serde)
    """For sources, sinks and stores that name no key serde."""
    default_value_serde: Serde[Any] | None = _setting("default.value.serde", None, _serde)
    """For sources, sinks and stores that name no value serde."""
    default_timestamp_extractor: TimestampExtractor | None = _setting("default.timestamp.extractor", None, _extractor)
    """For sources that name none; None means FailOnInvalidTimestamp."""

    # bad records
    deserialization_handler: DeserializationHandler | Literal["fail", "continue"] = _setting(
        "deserialization.exception.handler", "fail", _handler
    )
    """Asked about records that cannot be read."""
    processing_handler: ProcessingHandler | Literal["fail", "continue"] = _setting(
        "processing.exception.handler", "fail", _handler
    )
    """Asked about operators and punctuators that raise."""
    processing_handler_sees_global_stores: bool = _setting(
        "processing.exception.handler.global.enabled", False, _boolean
    )
    """True: it is also asked about processors of global stores, at start as well as later; its dead letters of them are not sent.
    False: an error there ends the app."""
    production_handler: ProductionHandler | Literal["fail", "continue"] = _setting(
        "production.exception.handler", "fail", _handler
    )
    """Asked about results that cannot be sent."""
    dead_letter_topic: str | None = _setting("errors.dead.letter.queue.topic.name", None, _as_is)
    """Where the built-in handlers put the records they were asked about; None: nowhere."""

    uncaught_exception_handler: Literal["replace_thread", "shutdown_client", "shutdown_application"] = _setting(
        "uncaught.exception.handler",
        "shutdown_client",
        _one_of("replace_thread", "shutdown_client", "shutdown_application"),
    )
    """What a failed StreamThread means: another one in its place, the end of the app in this process, or in all of its group.
    `KafkaStreams.set_uncaught_exception_handler` decides by the error."""

    # state
    state_dir: Path = _setting("state.dir", Path(tempfile.gettempdir()) / "streamfleet", Path)
    """Below it every app has a directory with one database per task."""
    state_snapshot_dir: Path | None = _setting("state.snapshot.dir", None, Path)
    """Where snapshots of stores are looked for: a task that has nothing of a store takes one over and replays only what follows."""
    store_epochs: Mapping[str, int] = field(
        default_factory=dict, metadata={"name": "store.epochs", "parse": store_epochs}
    )
    """Which epoch of a store's changelog the app has, as store:number,store:number. Stores that are not named have the first
    one, 0; a bootstrap makes the next."""
    statestore_cache_max_bytes: int = _setting("statestore.cache.max.bytes", 10 * 1024 * 1024, _at_least(0))
    """Memory for results held back by record caches, over all tasks of a process; 0 forwards every update."""
    statestore_object_cache_max_bytes: int = _setting(
        "statestore.object.cache.max.bytes", 16 * 1024 * 1024, _at_least(0)
    )
    """Memory for values that need not be read and decoded again, over all tasks of a process. Changes no result."""
    rocksdb_memory_max_bytes: int | None = _setting(
        "rocksdb.memory.max.bytes", None, _optional(_at_least(4 * 1024 * 1024))
    )
    """Block cache and write buffers of all databases of a process together; None: a quarter of what the process may use (control
    group, RLIMIT_AS), from 16 MiB to 1 GiB, and 128 MiB where it has no limit."""
    state_cleanup_delay_ms: int = _setting("state.cleanup.delay.ms", 600_000, _at_least(0, _milliseconds))
    """After which the local state of a task that this process no longer has is deleted."""
    state_cleanup_dir_max_age_ms: int = _setting("state.cleanup.dir.max.age.ms", -1, _at_least(-1, _milliseconds))
    """Local state that was not used for longer is deleted at the start and restored: what its changelog deleted meanwhile would
    come back to life otherwise. Choose less than the changelogs' `delete.retention.ms`, a day; -1: never."""
    dsl_store_kind: Literal["rocksdb", "in_memory"] = _setting(
        "dsl.store.suppliers.class", "rocksdb", _one_of("rocksdb", "in_memory")
    )
    """Where the DSL's stores keep their rows if the operator does not say."""
    changelog_deduplicate: bool = _setting("changelog.deduplicate", True, _boolean)
    """True: a changelog gets the last value per key and commit. False: it gets every write, when it is made."""

    restore_rate_limit_bytes_per_second: int = _setting("restore.rate.limit.bytes.per.second", 0, _at_least(0))
    """Keys and values that a process reads from changelogs, for restoring and for copies together; 0: no limit."""

    # internal topics and names
    windowstore_changelog_additional_retention_ms: int = _setting(
        "windowstore.changelog.additional.retention.ms", 24 * 60 * 60 * 1000, _at_least(0, _milliseconds)
    )
    """Added to a window or session store's retention for its changelog: slack for clocks that disagree."""
    ensure_explicit_internal_resource_naming: bool = _setting(
        "ensure.explicit.internal.resource.naming", False, _boolean
    )
    """True: refuse a topology in which a store, changelog or repartition topic has a generated name."""
    topology_optimization: str = _setting("topology.optimization", "none", optimization)
    """Rewriting of the topology before it is built: `none`, `all`, or some of `reuse.ktable.source.topics`,
    `merge.repartition.topics` and `single.store.self.join`, separated by commas. It renames internal topics: changing it is a new
    start of the state."""
    optimizer_minds_processors: bool = _setting("__enable.process.processValue.fix__", True, _boolean)
    """Whether `process` counts as a change of keys and `process_values` as one of values when repartition topics are merged. False
    is the default of Kafka Streams 4.3: for apps that take over its topics, if their processors give no new keys."""
    topology_execution: Literal["compiled", "interpreted"] = _setting(
        "topology.execution", "compiled", _one_of("compiled", "interpreted")
    )
    """How records run through the topology: as one generated function, or node by node. Changes no result."""
    processor_wrapper: ProcessorWrapper | None = _setting("processor.wrapper.class", None, processor_wrapper)
    """Wraps every processor of the topology, those of the DSL included; `module:attribute` of a ProcessorWrapper."""
    topic_overrides: Mapping[str, str] = field(default_factory=dict)
    """Settings of all internal topics, from names that begin with `topic.`."""

    # guarantee and commit
    processing_guarantee: Literal["at_least_once", "exactly_once_v2"] = _setting(
        "processing.guarantee", "at_least_once", _one_of("at_least_once", "exactly_once_v2")
    )
    """exactly_once_v2 puts results, state and offsets into one transaction."""
    commit_interval_ms: int | None = _setting("commit.interval.ms", None, _at_least(0, _milliseconds))
    """How often to commit; None: 30 s, and 100 ms with exactly_once_v2."""
    transaction_timeout_ms: int = _setting("transaction.timeout.ms", 10_000, _at_least(1000, _milliseconds))
    """After which the broker aborts a transaction; its owner may be gone. Longer than the commit interval."""
    statestore_uncommitted_max_bytes: int = _setting("statestore.uncommitted.max.bytes", 64 * 1024 * 1024, _at_least(0))
    """Changes of stores held in memory since the last commit; more of them ask for an early one."""

    # timing
    max_task_idle_ms: int = _setting("max.task.idle.ms", 0, _at_least(-1, _milliseconds))
    """How long a task with an empty input waits for it, so that records are taken in the order of time; -1: never."""
    windowed_emit_interval_ms: int | None = _setting(
        "__emit.interval.ms.kstreams.windowed.aggregation__", None, _at_least(0, _milliseconds)
    )
    """Shortest wall-clock time between two scans for closed windows; None: 1000, and 0 in the test driver."""
    outer_join_emit_interval_ms: int | None = _setting(
        "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__", None, _at_least(0, _milliseconds)
    )
    """Shortest wall-clock time between two scans for records without partner; None: 1000, and 0 in the test driver."""
    poll_ms: int = _setting("poll.ms", 100, _at_least(0, _milliseconds))
    """How long to wait for records when there is nothing to do."""
    buffered_records_per_partition: int = _setting("buffered.records.per.partition", 1000, _at_least(1))
    """Records of an input partition held in memory while its task waits for another input; with ten times as many it is paused."""
    session_timeout_ms: int = _setting("session.timeout.ms", 45_000, _at_least(6000, _milliseconds))
    """After which the group gives the tasks of a silent member to others."""
    heartbeat_interval_ms: int = _setting("heartbeat.interval.ms", 500, _at_least(10, _milliseconds))
    """How often a member tells the group that it lives; also how soon it hears of a rebalance."""
    max_poll_interval_ms: int = _setting("max.poll.interval.ms", 300_000, _at_least(1, _milliseconds))
    """After which a member whose thread makes no step leaves the group."""
    task_timeout_ms: int = _setting("task.timeout.ms", 300_000, _at_least(0, _milliseconds))
    """How long a broker may be away, a partition give nothing, or all transactions be lost, before the app gives up."""
    source_check_interval_ms: int = _setting("source.check.interval.ms", 30_000, _at_least(0, _milliseconds))
    """How often to see whether the input topics are still the same, with the same partitions."""
    missing_source_timeout_ms: int = _setting("missing.source.timeout.ms", 5_000, _at_least(0, _milliseconds))
    """How long an input topic may be missing, at the start or later, before the app gives up."""
    repartition_purge_interval_ms: int = _setting("repartition.purge.interval.ms", 30_000, _at_least(0, _milliseconds))
    """How often processed records are deleted from repartition topics."""
    num_stream_threads: int = _setting("num.stream.threads", 1, _at_least(1))
    """StreamThreads of one process. Python runs one at a time: scale by processes."""
    log_summary_interval_ms: int = _setting("log.summary.interval.ms", 120_000, _at_least(-1, _milliseconds))
    """How often a StreamThread says in one line what it has done since the last; -1: never."""
    gc_threshold: int = _setting("gc.threshold", 50_000, _at_least(0))
    """How many objects a worker makes before Python looks for cyclic garbage; 0: Python's own ways."""
    group_protocol: Literal["classic", "streams"] = _setting("group.protocol", "classic", _one_of("classic", "streams"))
    """Who plans which member runs which task: one of the members (classic), or the broker (streams)."""
    group_instance_id: str | None = _setting("group.instance.id", None, _as_is)
    """Makes the process a static member of the group: a restart within the session time-out moves no task."""

    # who runs which task
    num_standby_replicas: int = _setting("num.standby.replicas", 0, _at_least(0))
    """Copies of each task's state kept warm in other processes, so that one of them can take over at once."""
    acceptable_recovery_lag: int = _setting("acceptable.recovery.lag", 10_000, _at_least(0))
    """Changelog records a process may be behind and still be given a task: what is left to restore before it runs there."""
    max_warmup_replicas: int = _setting("max.warmup.replicas", 2, _at_least(1))
    """Tasks of the whole group that may be made ready at a time where they are to move; a higher number moves more at once."""
    probing_rebalance_interval_ms: int = _setting(
        "probing.rebalance.interval.ms", 600_000, _at_least(60_000, _milliseconds)
    )
    """How often to see whether tasks that are made ready elsewhere can move there."""
    probing_when_caught_up: bool = _setting("probing.when.caught.up", True, _boolean)
    """True: a process says when its tasks are ready to move there; false: they wait for the next probing rebalance."""
    task_assignor: Any = _setting("task.assignor.class", None, task_assignor)
    """Decides who runs which task: `high_availability`, `sticky` or `module:attribute`; None: high_availability."""
    default_query_isolation_level: Literal["read_uncommitted", "read_committed"] | None = _setting(
        "default.interactive.query.isolation.level", None, _optional(_one_of("read_uncommitted", "read_committed"))
    )
    """What queries see of a running task: its present state, or its last commit. None: the last commit with exactly_once_v2."""
    application_server: str | None = _setting("application.server", None, host_and_port)
    """Where this process answers queries about its state, as host:port; told to all others."""
    client_rack: str | None = _setting("client.rack", None, _optional(str))
    """Where this process is, in the words of the brokers' `broker.rack`."""
    client_tags: Mapping[str, str] = field(default_factory=dict)
    """What sets this process apart from others, from names that begin with `client.tag.`."""
    rack_aware_assignment_tags: tuple[str, ...] = _setting("rack.aware.assignment.tags", (), tag_names)
    """Names of tags: standbys go to processes whose values differ from those of the task and its other standbys."""
    rack_aware_assignment_strategy: Literal["none", "min_traffic", "balance_subtopology"] = _setting(
        "rack.aware.assignment.strategy", "none", _one_of("none", "min_traffic", "balance_subtopology")
    )
    """Whether tasks go where their input and changelogs are: for the least traffic, or with equal shares of each sub-topology."""
    rack_aware_assignment_traffic_cost: int | None = _setting(
        "rack.aware.assignment.traffic_cost", None, _optional(_at_least(0))
    )
    """What a partition read from another rack costs; None: 10, and 1 with the sticky assignor."""
    rack_aware_assignment_non_overlap_cost: int | None = _setting(
        "rack.aware.assignment.non_overlap_cost", None, _optional(_at_least(0))
    )
    """What moving a task costs, against reading from another rack; None: 1, and 10 with the sticky assignor."""

    def __post_init__(self) -> None:
        if not self.application_id:
            raise ConfigError("application.id is empty", hint="give the app a name that stays the same over its life")
        for entry in fields(self):
            if "parse" in entry.metadata and getattr(self, entry.name) is not entry.default:
                value = _parsed(entry.metadata["name"], entry.metadata["parse"], getattr(self, entry.name))
                object.__setattr__(self, entry.name, value)
        object.__setattr__(self, "client_tags", _parsed(TAG_PREFIX, client_tags, self.client_tags))
        for name in self.rack_aware_assignment_tags:
            if name not in self.client_tags:
                raise ConfigError(
                    f"rack.aware.assignment.tags names {name!r}, and this process has no such tag",
                    hint=f"set {TAG_PREFIX}{name}",
                )
        if self.is_exactly_once and self.effective_commit_interval_ms >= self.transaction_timeout_ms:
            raise ConfigError(
                f"commit.interval.ms is {self.effective_commit_interval_ms} and transaction.timeout.ms "
                f"{self.transaction_timeout_ms}: the broker would abort every transaction before it is committed",
                hint="commit sooner, or let transactions last longer, up to transaction.max.timeout.ms of the broker",
            )
        if self.group_protocol == "streams":
            refuse_ignored(self)

    @classmethod
    def from_mapping(cls, settings: Mapping[str, Any]) -> StreamsConfig:
        """From Kafka's dotted names; values may be text or typed."""
        names = {entry.metadata["name"]: entry.name for entry in fields(cls) if "name" in entry.metadata}
        chosen: dict[str, Any] = {}
        topic_overrides: dict[str, str] = {}
        client_settings: dict[str, Any] = {}
        tags: dict[str, Any] = {}
        for key, value in settings.items():
            if key in names:
                chosen[names[key]] = value
            elif key.startswith(TOPIC_PREFIX):
                topic_overrides[key.removeprefix(TOPIC_PREFIX)] = str(value)
            elif key.startswith(TAG_PREFIX):
                tags[key.removeprefix(TAG_PREFIX)] = value
            elif key.startswith(CLIENT_PREFIXES):
                client_settings[key] = value
            elif key in NOT_HERE:
                raise ConfigError(f"setting {key} cannot be set: {NOT_HERE[key]}", hint="leave it out")
            else:
                raise ConfigError(f"unknown setting {key!r}", hint=_suggestion(key, list(names)))
        if "application_id" not in chosen:
            raise ConfigError("application.id is missing", hint="give the app a name that stays the same over its life")
        return cls(**chosen, topic_overrides=topic_overrides, client_settings=client_settings, client_tags=tags)

    @property
    def is_exactly_once(self) -> bool:
        return self.processing_guarantee == "exactly_once_v2"

    @property
    def query_isolation_level(self) -> str:
        by_guarantee = "read_committed" if self.is_exactly_once else "read_uncommitted"
        return self.default_query_isolation_level or by_guarantee

    @property
    def optimizations(self) -> frozenset[str]:
        """The names of those that were chosen."""
        if self.topology_optimization == "all":
            return frozenset(OPTIMIZATIONS)
        return frozenset(self.topology_optimization.split(",")) - {"none"}

    @property
    def effective_commit_interval_ms(self) -> int:
        if self.commit_interval_ms is not None:
            return self.commit_interval_ms
        return 100 if self.is_exactly_once else 30_000

    def with_(self, **changes: Any) -> StreamsConfig:
        """A copy with some fields changed."""
        return replace(self, **changes)


def _parsed(name: str, parse: Callable[[Any], Any], value: Any) -> Any:
    try:
        return parse(value)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"setting {name} cannot be {value!r}", hint=str(error)) from error


def _suggestion(key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1)
    return f"did you mean {near[0]}?" if near else "see the fields of StreamsConfig for those there are"
