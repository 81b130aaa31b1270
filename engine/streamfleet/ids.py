"""The names that identify things across layers. Plain types: no behaviour beyond reading and printing themselves."""

from __future__ import annotations

import re
from typing import NamedTuple, NewType

ApplicationId = NewType("ApplicationId", str)
"""Names an app's state: the prefix of its internal topics and its consumer group."""

StoreName = NewType("StoreName", str)

LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")
MAX_NAME_LENGTH = 249
"""Kafka's limit for topic names; names of nodes and stores become parts of topic names."""


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class TaskId(NamedTuple):
    """One SubTopology x one partition, shown as `0_3`."""

    sub_topology: int
    partition: int

    def __str__(self) -> str:
        return f"{self.sub_topology}_{self.partition}"

    @classmethod
    def parse(cls, text: str) -> TaskId:
        match = re.fullmatch(r"(\d+)_(\d+)", text)
        if match is None:
            raise ValueError(f"not a task id: {text!r}; a task id looks like 0_3 (sub-topology, partition)")
        return cls(int(match[1]), int(match[2]))
