"""A Kafka cluster as operations see it: topics with their ids, groups, offsets. kafka_cluster.py is the real one.

Every call answers within seconds or raises TransientError, and may be repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

StartAt = Literal["earliest", "latest"]


@dataclass(frozen=True)
class TopicFacts:
    """A topic that is there."""

    name: str
    topic_id: str
    """Kafka's: another one under the same name is another topic."""
    partitions: int


@dataclass(frozen=True)
class TopicWanted:
    """A topic that should be there."""

    name: str
    partitions: int
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class GroupFacts:
    """Who is in a group. One that does not exist is empty."""

    is_empty: bool
    state: str
    members: tuple[str, ...] = ()
    instances: tuple[str, ...] = ()
    """Static members among them, by the id they gave themselves."""


class Cluster(Protocol):
    """One cluster."""

    def topics(self, names: Iterable[str]) -> dict[str, TopicFacts]:
        """Those that are there."""
        ...

    def create_topics(self, topics: Iterable[TopicWanted]) -> None:
        """Those that are not there yet; all can be described then."""
        ...

    def delete_topics(self, topics: Mapping[str, str]) -> tuple[str, ...]:
        """By name and id. A topic of another id is somebody else's and stays. The names of those that were there."""
        ...

    def configs(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        """All settings of those that are there."""
        ...

    def alter_configs(self, configs: Mapping[str, Mapping[str, str]]) -> None:
        """Sets these of topics that are there, and leaves their others. They can be read soon after."""
        ...

    def end_offsets(self, names: Iterable[str]) -> dict[str, dict[int, int]]:
        """By topic and partition, of those that are there."""
        ...

    def group(self, group: str) -> GroupFacts:
        """Of every protocol."""
        ...

    def groups(self, groups: Iterable[str]) -> dict[str, GroupFacts]:
        """Many at once; a streams group may look as if it were not there."""
        ...

    def delete_group(self, group: str) -> None:
        """With all its offsets. ConflictError while it has members."""
        ...

    def set_offsets(self, group: str, topics: Iterable[str], start_at: StartAt) -> dict[str, int]:
        """Where the group's next members begin; how many partitions of each topic."""
        ...

    def committed(self, group: str, topics: Iterable[str]) -> dict[str, int]:
        """Records behind the committed offsets, by topic: what was processed."""
        ...

    def close(self) -> None: ...
