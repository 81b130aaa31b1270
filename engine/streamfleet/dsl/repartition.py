"""Sending a re-keyed stream through an internal topic, so that equal keys meet in one partition again."""

from __future__ import annotations

import re
from typing import Any

from streamfleet.dsl.graph import RepartitionGraphNode
from streamfleet.dsl.scope import BuilderScope
from streamfleet.serdes.api import Serde
from streamfleet.topology.nodes import StreamPartitioner

SUFFIX = "-repartition"
_GENERATED = re.compile(r"KSTREAM.*-[0-9]{10}")


def repartition_node(
    scope: BuilderScope,
    prefix: str,
    key_serde: Serde[Any] | None,
    value_serde: Serde[Any] | None,
    *,
    named_by_user: bool,
    partitioner: StreamPartitioner | None = None,
    partitions: int | None = None,
) -> RepartitionGraphNode:
    """A node for topic `<prefix>-repartition`. Three numbers are used up, also where the nodes are named after the topic."""
    topic = prefix if prefix.endswith(SUFFIX) else prefix + SUFFIX
    if not named_by_user:
        scope.names.unnamed["repartition topic"].append(topic)
    sink = scope.names.generate("KSTREAM-SINK-")
    null_key_filter = scope.names.generate("KSTREAM-FILTER-")
    source = scope.names.generate("KSTREAM-SOURCE-")
    if not _GENERATED.fullmatch(prefix):
        null_key_filter, sink, source = f"{topic}-filter", f"{topic}-sink", f"{topic}-source"
    return RepartitionGraphNode(topic, (null_key_filter, sink, source), key_serde, value_serde, partitioner, partitions)
