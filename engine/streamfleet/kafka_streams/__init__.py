"""KafkaStreams: an app on a cluster. Starts what the engine needs, drives its step machines, and owns the life cycle."""

from streamfleet.kafka_streams.client import KafkaStreams, UncaughtResponse
from streamfleet.kafka_streams.states import ClientState

__all__ = ["ClientState", "KafkaStreams", "UncaughtResponse"]
