"""A topology lock as a value: what an app compiles to, as the engine writes it (Topology.to_json), with its hash.

Made by compiler.py, kept in NAME.lock.json beside the definition, reviewed with the code, compared by lock_diff.py. The hash is the
one that workers report for the topology they run.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from streamfleet_platform.errors import InvalidLockError

FORMAT = 2
MAX_BYTES = 8 * 2**20

_GENERATED = re.compile(r"-\d{10}(-|$)")


class _Node(msgspec.Struct):
    name: str
    kind: Literal["source", "processor", "sink"]
    topics: list[str] = []
    pattern: str | msgspec.UnsetType = msgspec.UNSET
    parents: list[str] = []
    stores: list[str] = []
    topic: str | msgspec.UnsetType = msgspec.UNSET
    topic_by: str | msgspec.UnsetType = msgspec.UNSET
    key_serde: dict[str, Any] | None = None
    value_serde: dict[str, Any] | None = None


class _SubTopology(msgspec.Struct):
    id: int
    content_id: str
    global_store: str | None
    stores: list[str]
    nodes: list[_Node]


class _Store(msgspec.Struct):
    kind: str
    logged: bool
    changelog: str | None
    log_config: dict[str, str]
    key_serde: dict[str, Any] | None = None
    value_serde: dict[str, Any] | None = None


class _GlobalStore(msgspec.Struct):
    kind: str
    topic: str


class _Partitions(msgspec.Struct):
    rule: Literal["asked", "widest_upstream", "tasks"]
    count: int | None = None


class _InternalTopic(msgspec.Struct):
    kind: Literal["repartition", "changelog"]
    configs: dict[str, str]
    partitions: _Partitions


class _Shape(msgspec.Struct):
    """What a lock must have to be compared; it may have more."""

    format: int
    sub_topologies: list[_SubTopology]
    stores: dict[str, _Store]
    global_stores: dict[str, _GlobalStore]
    internal_topics: dict[str, _InternalTopic]
    copartitioned: list[list[str]]


@dataclass(frozen=True)
class TopologyLock:
    """The content is the engine's; here are only the parts that are compared."""

    content: Mapping[str, Any]
    hash: str

    @classmethod
    def from_topology_json(cls, text: str) -> TopologyLock:
        """From what the engine wrote."""
        content = _parsed(text)
        canonical = _canonical(content)
        return cls(content, hashlib.sha256(canonical.encode()).hexdigest()[:16])

    @classmethod
    def from_file(cls, data: bytes) -> TopologyLock:
        """From a lock file; one that was edited by hand is refused."""
        if len(data) > MAX_BYTES:
            raise InvalidLockError(f"the lock has {len(data)} bytes", hint="write it anew")
        try:
            content = _parsed(data.decode())
        except UnicodeDecodeError:
            raise InvalidLockError("the lock is not UTF-8 text", hint="write it anew") from None
        claimed = content.pop("hash", None)
        lock = cls.from_topology_json(_canonical(content))
        if claimed != lock.hash:
            raise InvalidLockError(f"the lock says its hash is {claimed}, but it is {lock.hash}", hint="write it anew")
        return lock

    def to_file(self) -> bytes:
        return _canonical({**self.content, "hash": self.hash}).encode()

    @property
    def sub_topologies(self) -> Sequence[Mapping[str, Any]]:
        return [part for part in self.content["sub_topologies"] if part["global_store"] is None]

    @property
    def stores(self) -> Mapping[str, Mapping[str, Any]]:
        return dict(self.content["stores"])

    @property
    def global_stores(self) -> Mapping[str, Mapping[str, Any]]:
        return dict(self.content["global_stores"])

    @property
    def internal_topics(self) -> Mapping[str, Mapping[str, Any]]:
        return dict(self.content["internal_topics"])

    @property
    def nodes(self) -> Mapping[str, Mapping[str, Any]]:
        return {node["name"]: node for part in self.content["sub_topologies"] for node in part["nodes"]}

    def sources(self) -> frozenset[str]:
        """Topics of others that it reads; patterns as `pattern:...`."""
        nodes = [node for node in self.nodes.values() if node["kind"] == "source"]
        topics = {topic for node in nodes for topic in node["topics"] if topic not in self.internal_topics}
        return frozenset(topics | {f"pattern:{node['pattern']}" for node in nodes if "pattern" in node})

    def sinks(self) -> frozenset[str]:
        """Topics of others that it writes; those that a function names as `chosen by ...`."""
        nodes = [node for node in self.nodes.values() if node["kind"] == "sink"]
        topics = {node["topic"] for node in nodes if "topic" in node and node["topic"] not in self.internal_topics}
        return frozenset(topics | {f"chosen by {node['topic_by']}" for node in nodes if "topic_by" in node})

    def part_of_store(self, store: str) -> Mapping[str, Any] | None:
        return next((part for part in self.sub_topologies if store in part["stores"]), None)

    def generated_names(self) -> list[str]:
        """Stores and internal topics whose names come from counting operators."""
        names = {
            *self.stores,
            *self.global_stores,
            *(n for n, t in self.internal_topics.items() if t["kind"] == "repartition"),
        }
        return sorted(name for name in names if _GENERATED.search(name.removesuffix("-repartition")))


def _parsed(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidLockError("the lock is no JSON", hint="write it anew") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = content.get("format") if isinstance(content, dict) else None
        raise InvalidLockError(f"the lock has format {found!r}, not {FORMAT}", hint="write it anew with this version")
    try:
        msgspec.convert(content, _Shape, strict=True)
    except msgspec.ValidationError as error:
        raise InvalidLockError(f"the lock is not as the engine writes it: {error}", hint="write it anew") from error
    return content


def _canonical(content: Mapping[str, Any]) -> str:
    """As the engine writes it."""
    return json.dumps(content, indent=2, sort_keys=True) + "\n"
