"""Windowed results go to the partition of their inner key: all windows of a key together, where the key itself would be."""

from __future__ import annotations

from typing import Any

from streamfleet.partitioner import partition_for
from streamfleet.records import Windowed
from streamfleet.serdes.api import Serde
from streamfleet.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde
from streamfleet.topology.nodes import StreamPartitioner


def partitioner_for(key_serde: Serde[Any] | None) -> StreamPartitioner | None:
    """The partitioner of a sink that was given none; None leaves the choice to the producer, which hashes the whole key."""
    if not isinstance(key_serde, TimeWindowedSerde | SessionWindowedSerde):
        return None
    inner = key_serde.inner

    def partition(topic: str, key: Windowed[Any] | None, _value: Any, partitions: int) -> tuple[int, ...] | None:
        data = None if key is None else inner.serialize(topic, key.key)
        return None if data is None else (partition_for(data, partitions),)

    return partition
