"""What happens to nodes, topics and sub-topologies between two locks. Called by lock_diff.py; stores are in store_changes.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamfleet_platform.topologies.lock import TopologyLock
from streamfleet_platform.topologies.store_changes import field_changes
from streamfleet_platform.topologies.verdicts import Change, Verdict

Node = Mapping[str, Any]
TOPIC_SETTINGS = "internal topic settings changed"
"""What is set on topics that are there, and set back."""


def graph_changes(old: TopologyLock, new: TopologyLock, renames: Mapping[str, str]) -> Iterator[Change]:
    yield from _node_changes(old, new)
    yield from _external_topics(old, new)
    yield from _repartition_topics(old, new)
    yield from _topic_settings(old, new)
    yield from _global_stores(old, new)
    yield from _sub_topologies(old, new, renames)


def _node_changes(old: TopologyLock, new: TopologyLock) -> Iterator[Change]:
    gone = {name: node for name, node in old.nodes.items() if name not in new.nodes}
    fresh = {name: node for name, node in new.nodes.items() if name not in old.nodes}
    for name, node in gone.items():
        twin = next((other for other, candidate in fresh.items() if _same_work(node, candidate, old, new)), None)
        if twin is not None:
            del fresh[twin]
            yield Change(
                f"{node['kind']} renamed", f"{name} -> {twin}", Verdict.ROLLING, "a node's name holds no state"
            )
        else:
            yield Change(f"{node['kind']} removed", name, Verdict.ROLLING, "records no longer pass it")
    for name, node in fresh.items():
        yield Change(
            f"{node['kind']} added",
            name,
            Verdict.ROLLING,
            "while both versions run, some records pass it and some do not",
        )
    for name in old.nodes.keys() & new.nodes.keys():
        yield from _changed_node(old.nodes[name], new.nodes[name], new)


def _same_work(one: Node, other: Node, old: TopologyLock, new: TopologyLock) -> bool:
    """The same kind of node on the same topics or stores; a stateless processor is known by its parents."""
    keys = ("kind", "topics", "pattern", "topic", "topic_by", "stores")
    if any(one.get(key) != other.get(key) for key in keys):
        return False
    if one["kind"] != "processor" or one.get("stores"):
        return True
    kept = [set(one.get("parents", ())) & new.nodes.keys(), set(other.get("parents", ())) & old.nodes.keys()]
    return kept[0] == kept[1] and bool(kept[0])


def _changed_node(old: Node, new: Node, lock: TopologyLock) -> Iterator[Change]:
    if old.get("parents") != new.get("parents"):
        yield Change(
            f"{new['kind']} moved", new["name"], Verdict.ROLLING, f"it follows {_listed(new.get('parents'))} now"
        )
    if sorted(old.get("stores", ())) != sorted(new.get("stores", ())):
        yield Change(
            "processor's stores changed", new["name"], Verdict.ROLLING, f"it uses {_listed(new.get('stores'))} now"
        )
    internal = any(topic in lock.internal_topics for topic in (*new.get("topics", ()), new.get("topic")))
    for side in ("key", "value"):
        before, after = old.get(f"{side}_serde"), new.get(f"{side}_serde")
        if before != after:
            yield _serde_change(new, side, before, after, internal=internal)


def _serde_change(node: Node, side: str, old: Node | None, new: Node | None, *, internal: bool) -> Change:
    ids = [("the configured default" if serde is None else serde["id"]) for serde in (old, new)]
    where = _listed(node["topics"]) if node["kind"] == "source" else str(node.get("topic", "its topics"))
    if ids[0] == ids[1]:
        reason = f"{side}s on {where} have other fields: {field_changes(old or {}, new or {})}"
        return Change(f"{node['kind']} {side} schema changed", node["name"], Verdict.ROLLING, reason, is_warning=True)
    reason = f"{side}s on {where} were {ids[0]} and are {ids[1]} now"
    if internal:
        reason += "; what lies there unread cannot be read: stop the inputs, let it drain, then stop all and start all"
        return Change(f"{node['kind']} {side} serde changed", node["name"], Verdict.RESTART, reason, is_warning=True)
    others = (
        "records that are already there must be readable"
        if node["kind"] == "source"
        else "whoever reads it must follow"
    )
    return Change(
        f"{node['kind']} {side} serde changed", node["name"], Verdict.ROLLING, f"{reason}: {others}", is_warning=True
    )


def _external_topics(old: TopologyLock, new: TopologyLock) -> Iterator[Change]:
    for topic in sorted(new.sources() - old.sources()):
        yield Change(
            "source topic added",
            topic,
            Verdict.ROLLING,
            "read from where offset_reset says, since nothing is committed for it",
        )
    for topic in sorted(old.sources() - new.sources()):
        reason = "no longer read; its committed offsets stay in the group, and are resumed from if it comes back"
        yield Change("source topic removed", topic, Verdict.ROLLING, reason, is_warning=True)
    for topic in sorted(new.sinks() - old.sinks()):
        yield Change("sink topic added", topic, Verdict.ROLLING, "written from now on")
    for topic in sorted(old.sinks() - new.sinks()):
        yield Change(
            "sink topic removed", topic, Verdict.ROLLING, "no longer written: whoever reads it waits", is_warning=True
        )


def _repartition_topics(old: TopologyLock, new: TopologyLock) -> Iterator[Change]:
    before, after = _repartition(old), _repartition(new)
    for name in sorted(after.keys() - before.keys()):
        reason = "created at the start; the sub-topology behind it begins with what arrives from then on"
        yield Change("repartition topic added", name, Verdict.RESTART, f"stop all workers, start all; it is {reason}")
    for name in sorted(before.keys() - after.keys()):
        reason = "what lies in it unprocessed is skipped: stop the inputs, let it drain, then stop all and start all"
        yield Change("repartition topic removed", name, Verdict.RESTART, reason, is_warning=True)
    for name in sorted(before.keys() & after.keys()):
        if before[name]["partitions"] != after[name]["partitions"]:
            yield _partition_rule_changed(name, before[name]["partitions"], after[name]["partitions"], new)


def _partition_rule_changed(name: str, old: Node, new: Node, lock: TopologyLock) -> Change:
    stores = sorted({store for part in lock.sub_topologies if _reads(part, name) for store in part["stores"]})
    words = [
        f"{rule['count']}, as asked" if rule["rule"] == "asked" else "that of its widest input" for rule in (old, new)
    ]
    reason = f"its number of partitions was {words[0]}, is {words[1]}"
    if not stores:
        return Change(
            "repartition topic resized",
            name,
            Verdict.RESTART,
            f"{reason}: drain it, delete it, start all",
            is_warning=True,
        )
    return Change(
        "repartition topic resized",
        name,
        Verdict.INCOMPATIBLE,
        f"{reason}: keys of {', '.join(stores)} belong to other partitions; reset the app, or raise its generation",
        lost_state=tuple(stores),
    )


def _topic_settings(old: TopologyLock, new: TopologyLock) -> Iterator[Change]:
    for name in sorted(old.internal_topics.keys() & new.internal_topics.keys()):
        before, after = old.internal_topics[name], new.internal_topics[name]
        names = sorted({setting for setting, _ in set(before["configs"].items()) ^ set(after["configs"].items())})
        if names:
            yield Change(TOPIC_SETTINGS, name, Verdict.ROLLING, f"{', '.join(names)}: altered where it exists")


def _global_stores(old: TopologyLock, new: TopologyLock) -> Iterator[Change]:
    for name in sorted(old.global_stores.keys() | new.global_stores.keys()):
        before, after = old.global_stores.get(name), new.global_stores.get(name)
        if before == after:
            continue
        what = "added" if before is None else "removed" if after is None else "changed"
        reason = (
            "no longer kept" if after is None else f"every worker reads it from {after['topic']} before it processes"
        )
        yield Change(f"global store {what}", name, Verdict.ROLLING, reason)


def _sub_topologies(old: TopologyLock, new: TopologyLock, renames: Mapping[str, str]) -> Iterator[Change]:
    numbers = {part["content_id"]: part["id"] for part in new.sub_topologies}
    for part in old.sub_topologies:
        number = numbers.get(part["content_id"])
        if number is not None and number != part["id"]:
            reason = (
                f"was {part['id']}, is {number}; state is kept by content id {part['content_id']}, so nothing moves"
            )
            yield Change("sub-topology renumbered", str(number), Verdict.ROLLING, reason)
    kept = old.stores.keys() & new.stores.keys()
    for part in old.sub_topologies:
        stores = {renames.get(store, store) for store in part["stores"] if store in kept or store in renames}
        homes = [
            set(other["stores"]) & (kept | set(renames.values()))
            for other in new.sub_topologies
            if stores & set(other["stores"])
        ]
        if stores and homes != [stores]:
            reason = "stores are grouped otherwise, so content ids change: stop all workers, start all; rows are taken over by name"
            yield Change("sub-topology regrouped", ", ".join(sorted(stores)), Verdict.RESTART, reason)


def _repartition(lock: TopologyLock) -> dict[str, Node]:
    return {name: topic for name, topic in lock.internal_topics.items() if topic["kind"] == "repartition"}


def _reads(part: Mapping[str, Any], topic: str) -> bool:
    return any(topic in node.get("topics", ()) for node in part["nodes"])


def _listed(names: Any) -> str:
    return ", ".join(names or ()) or "nothing"
