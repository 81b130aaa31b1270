"""Kafka Streams' model as a Python library.

what a developer writes     StreamsBuilder, KStream, KTable, windows, Materialized, Stores   (dsl/, state/)
the level below             Topology, Processor, Record, contexts, handlers, extractors      (topology/, processor/)
bytes and values            serdes                                                           (serdes/)
reading state from outside  KeyQuery, RangeQuery, ..., StateQueryRequest, QueryResult        (query/)
settings and errors         StreamsConfig, StreamsError and its tree                         (config.py, errors.py)
for tools                   check_setting, is_secret (worker/), streams_group_members (kafka/), assignment: who would run which task
who runs which task         streamfleet.assignment: assign, Snapshot, TaskAssignor           (assignment/)
trying it without a broker  streamfleet.testing.TopologyTestDriver                           (testing/)
"""

import importlib
from typing import TYPE_CHECKING, Any

from streamfleet import serdes
from streamfleet.changelog.listeners import StandbyUpdateListener, StateRestoreListener, SuspendReason
from streamfleet.config import StreamsConfig
from streamfleet.dsl.branched import BranchedKStream
from streamfleet.dsl.builder import StreamsBuilder
from streamfleet.dsl.cogrouped_stream import (
    CogroupedKStream,
    SessionWindowedCogroupedKStream,
    TimeWindowedCogroupedKStream,
)
from streamfleet.dsl.global_ktable import GlobalKTable
from streamfleet.dsl.grouped_stream import KGroupedStream
from streamfleet.dsl.grouped_table import KGroupedTable
from streamfleet.dsl.kstream import KStream
from streamfleet.dsl.ktable import KTable
from streamfleet.dsl.materialized import Materialized
from streamfleet.dsl.suppressed import BufferConfig, Suppressed
from streamfleet.dsl.windowed_stream import SessionWindowedKStream, TimeWindowedKStream
from streamfleet.dsl.windows import (
    EmitStrategy,
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
)
from streamfleet.errors import (
    ApplicationShutdownError,
    ConfigError,
    DeserializationError,
    OptionError,
    ProcessingError,
    ProductionError,
    RecordError,
    ScanTooLargeError,
    SerializationError,
    SinkFunctionError,
    StateStoreError,
    StoreUnavailableError,
    StreamsError,
    TaskCorruptedError,
    TimestampError,
    TooManyQueriesError,
    TopologyError,
)
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.processor.api import (
    Cancellable,
    FixedKeyProcessor,
    FixedKeyProcessorContext,
    Processor,
    ProcessorContext,
    ProcessorSupplier,
    PunctuationType,
    ValueTransformer,
)
from streamfleet.processor.handlers import (
    ContinueProduction,
    DeserializationHandler,
    ErrorContext,
    FailProduction,
    HandlerResponse,
    HandlerResult,
    LogAndContinueDeserialization,
    LogAndContinueProcessing,
    LogAndFailDeserialization,
    LogAndFailProcessing,
    ProcessingHandler,
    ProductionHandler,
    dead_letter,
)
from streamfleet.processor.timestamps import (
    ExtractRecordMetadataTimestamp,
    FailOnInvalidTimestamp,
    LogAndSkipOnInvalidTimestamp,
    SkipFutureTimestamp,
    TimestampExtractor,
    UsePartitionTimeOnInvalidTimestamp,
    WallclockTimestampExtractor,
)
from streamfleet.processor.wrapper import ProcessorWrapper
from streamfleet.records import (
    ConsumedRecord,
    FixedKeyRecord,
    Headers,
    ProducerRecord,
    RawRecord,
    Record,
    RecordContext,
    RecordMetadata,
    SessionWindow,
    TimeWindow,
    ValueAndTimestamp,
    VersionedRecord,
    Windowed,
)
from streamfleet.serdes.api import Serde
from streamfleet.state.api import (
    KeyValueStore,
    SessionStore,
    StateStore,
    StoreBuilder,
    StoreIterator,
    TimestampedKeyValueStore,
    TimestampedWindowStore,
    VersionedKeyValueStore,
    WindowStore,
)
from streamfleet.state.stores import Stores
from streamfleet.topology.description import TopologyDescription
from streamfleet.topology.nodes import StreamPartitioner, TopicNameExtractor
from streamfleet.topology.plan import InternalTopic, SubTopologyPlan, TopologyPlan
from streamfleet.topology.topology import Topology

if TYPE_CHECKING:
    from streamfleet import assignment
    from streamfleet.kafka.group_admin import streams_group_members
    from streamfleet.kafka_streams import ClientState, KafkaStreams, UncaughtResponse
    from streamfleet.query.hosts import KeyQueryMetadata
    from streamfleet.query.lags import LagInfo
    from streamfleet.query.position import Position
    from streamfleet.query.queries import (
        KeyQuery,
        MultiVersionedKeyQuery,
        RangeQuery,
        TimestampedKeyQuery,
        TimestampedRangeQuery,
        VersionedKeyQuery,
        WindowKeyQuery,
        WindowRangeQuery,
    )
    from streamfleet.query.request import IsolationLevel, StateQueryRequest
    from streamfleet.query.results import FailureReason, QueryResult, StateQueryResult
    from streamfleet.worker.config_file import check_setting
    from streamfleet.worker.secrets import is_secret

__all__ = [
    "ApplicationShutdownError",
    "BranchedKStream",
    "BufferConfig",
    "Cancellable",
    "ClientState",
    "CogroupedKStream",
    "ConfigError",
    "ConsumedRecord",
    "ContinueProduction",
    "DeserializationError",
    "DeserializationHandler",
    "EmitStrategy",
    "ErrorContext",
    "ExtractRecordMetadataTimestamp",
    "FailOnInvalidTimestamp",
    "FailProduction",
    "FailureReason",
    "FixedKeyProcessor",
    "FixedKeyProcessorContext",
    "FixedKeyRecord",
    "GlobalKTable",
    "HandlerResponse",
    "HandlerResult",
    "Headers",
    "InternalTopic",
    "IsolationLevel",
    "JoinWindows",
    "KGroupedStream",
    "KGroupedTable",
    "KStream",
    "KTable",
    "KafkaStreams",
    "KeyQuery",
    "KeyQueryMetadata",
    "KeyValueStore",
    "LagInfo",
    "LogAndContinueDeserialization",
    "LogAndContinueProcessing",
    "LogAndFailDeserialization",
    "LogAndFailProcessing",
    "LogAndSkipOnInvalidTimestamp",
    "Materialized",
    "MultiVersionedKeyQuery",
    "OptionError",
    "Position",
    "ProcessingError",
    "ProcessingHandler",
    "Processor",
    "ProcessorContext",
    "ProcessorSupplier",
    "ProcessorWrapper",
    "ProducerRecord",
    "ProductionError",
    "ProductionHandler",
    "PunctuationType",
    "QueryResult",
    "RangeQuery",
    "RawRecord",
    "Record",
    "RecordContext",
    "RecordError",
    "RecordMetadata",
    "ScanTooLargeError",
    "Serde",
    "SerializationError",
    "SessionStore",
    "SessionWindow",
    "SessionWindowedCogroupedKStream",
    "SessionWindowedKStream",
    "SessionWindows",
    "SinkFunctionError",
    "SkipFutureTimestamp",
    "SlidingWindows",
    "StandbyUpdateListener",
    "StateQueryRequest",
    "StateQueryResult",
    "StateRestoreListener",
    "StateStore",
    "StateStoreError",
    "StoreBuilder",
    "StoreIterator",
    "StoreUnavailableError",
    "Stores",
    "StreamPartitioner",
    "StreamsBuilder",
    "StreamsConfig",
    "StreamsError",
    "SubTopologyPlan",
    "Suppressed",
    "SuspendReason",
    "TaskCorruptedError",
    "TaskId",
    "TimeWindow",
    "TimeWindowedCogroupedKStream",
    "TimeWindowedKStream",
    "TimeWindows",
    "TimestampError",
    "TimestampExtractor",
    "TimestampedKeyQuery",
    "TimestampedKeyValueStore",
    "TimestampedRangeQuery",
    "TimestampedWindowStore",
    "TooManyQueriesError",
    "TopicNameExtractor",
    "TopicPartition",
    "Topology",
    "TopologyDescription",
    "TopologyError",
    "TopologyPlan",
    "UncaughtResponse",
    "UnlimitedWindows",
    "UsePartitionTimeOnInvalidTimestamp",
    "ValueAndTimestamp",
    "ValueTransformer",
    "VersionedKeyQuery",
    "VersionedKeyValueStore",
    "VersionedRecord",
    "WallclockTimestampExtractor",
    "WindowKeyQuery",
    "WindowRangeQuery",
    "WindowStore",
    "Windowed",
    "assignment",
    "check_setting",
    "dead_letter",
    "is_secret",
    "serdes",
    "streams_group_members",
]


_LATER = {
    "ClientState": "streamfleet.kafka_streams",
    "KafkaStreams": "streamfleet.kafka_streams",
    "UncaughtResponse": "streamfleet.kafka_streams",
    "assignment": "streamfleet.assignment",
    "check_setting": "streamfleet.worker.config_file",
    "is_secret": "streamfleet.worker.secrets",
    "streams_group_members": "streamfleet.kafka.group_admin",
    "KeyQueryMetadata": "streamfleet.query.hosts",
    "LagInfo": "streamfleet.query.lags",
    "Position": "streamfleet.query.position",
    "KeyQuery": "streamfleet.query.queries",
    "MultiVersionedKeyQuery": "streamfleet.query.queries",
    "RangeQuery": "streamfleet.query.queries",
    "TimestampedKeyQuery": "streamfleet.query.queries",
    "TimestampedRangeQuery": "streamfleet.query.queries",
    "VersionedKeyQuery": "streamfleet.query.queries",
    "WindowKeyQuery": "streamfleet.query.queries",
    "WindowRangeQuery": "streamfleet.query.queries",
    "IsolationLevel": "streamfleet.query.request",
    "StateQueryRequest": "streamfleet.query.request",
    "FailureReason": "streamfleet.query.results",
    "QueryResult": "streamfleet.query.results",
    "StateQueryResult": "streamfleet.query.results",
}


def __getattr__(name: str) -> Any:
    """What runs an app on a cluster loads the Kafka clients; declaring and testing one needs none of them."""
    if name in _LATER:
        module = importlib.import_module(_LATER[name])
        value = globals()[name] = module if module.__name__ == f"{__name__}.{name}" else getattr(module, name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
