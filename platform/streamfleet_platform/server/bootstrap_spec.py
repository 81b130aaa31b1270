"""What a bootstrap job has to know, from an app's lock and definition. Called by jobs.py; the job's side is streamfleet_jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from streamfleet_platform.errors import InvalidRequestError
from streamfleet_platform.model.app_policies import Bootstrap, BootstrapFunction
from streamfleet_platform.operations.topics import external_topics, real_name
from streamfleet_platform.operations.work import AppRevision
from streamfleet_platform.runtime.specification import REFERENCE, worker_spec
from streamfleet_platform.server.audit_spec import secret_places
from streamfleet_platform.topologies.lock import TopologyLock
from streamfleet_platform.topologies.partition_changes import topic_widths


def bootstrap_spec(
    revision: AppRevision,
    name: str,
    *,
    run_id: str,
    epochs: Mapping[str, int],
    used_epochs: Sequence[int],
    inputs: Mapping[str, int],
    directory: Path,
    snapshots: Path,
    code: Path,
) -> dict[str, Any]:
    declared = revision.spec.state.bootstraps[name]
    store = _store_of(revision, name)
    lock = revision.lock
    topic, through = _input(revision, declared, store, inputs)
    part: Any = lock.part_of_store(store)
    locked = lock.stores[store]
    changelog = locked["changelog"]
    if changelog is None:
        raise InvalidRequestError(f"store {store} has no changelog", hint="only logged stores can be bootstrapped")
    on_disk = [each for each in part["stores"] if lock.stores[each].get("engine", "rocksdb") == "rocksdb"]
    return {
        "format": 1,
        "run_id": run_id,
        "epoch": max([epochs.get(store, 0), *used_epochs]) + 1,
        "published_epoch": epochs.get(store, 0),
        "app": {
            "application_id": revision.spec.application_id,
            "bootstrap_servers": revision.cluster.bootstrap,
            "client_settings": dict(revision.cluster.config),
            "secrets": secret_places(revision.cluster),
            "code": _code(revision, code),
        },
        "store": {
            "name": store,
            "kind": locked["kind"],
            "engine": locked.get("engine", "rocksdb"),
            "key_serde": (locked["key_serde"] or {}).get("id", ""),
            "value_serde": (locked["value_serde"] or {}).get("id", ""),
            "partitions": topic_widths(lock, inputs)[changelog],
            "number": on_disk.index(store) if store in on_disk else 0,
            "changelog_configs": lock.internal_topics[changelog]["configs"],
        },
        "input": {
            "topic": topic,
            "partitions": inputs[topic],
            "through": through,
            "stores_fed": _fed_by(lock, topic),
        },
        "source": _source(declared),
        "value": _value(declared),
        "directory": str(directory),
        "snapshot_directory": str(snapshots),
    }


def _code(revision: AppRevision, code: Path) -> dict[str, Any]:
    """What its workers run, by which the job looks at a sample. `code`: the directory of all revisions' code."""
    clusters = {revision.spec.cluster: revision.cluster}
    directory = code / revision.code_id
    worker = worker_spec(revision.app, revision.spec, clusters, slot=0, revision=revision.id, code=directory)
    settings = {
        name: value
        for name, value in worker.settings.items()
        if name not in revision.cluster.config and not REFERENCE.search(str(value))
    }
    return {"directory": str(directory), "entrypoint": worker.entrypoint, "settings": settings}


def _store_of(revision: AppRevision, name: str) -> str:
    stores = [store for store, policy in revision.spec.state.stores.items() if policy.bootstrap == name]
    if len(stores) != 1 or stores[0] not in revision.lock.stores:
        raise InvalidRequestError(
            f"bootstrap {name} fills {', '.join(stores) or 'no store'}", hint="name it at one store, in state.stores"
        )
    return stores[0]


def _input(revision: AppRevision, declared: Bootstrap, store: str, inputs: Mapping[str, int]) -> tuple[str, str | None]:
    """The topic whose records lead to the store, and the repartition topic between them."""
    label = declared.input
    chosen = None if label is None else revision.spec.inputs[label].topic
    topics = [chosen] if chosen is not None else external_topics(revision)
    if len(topics) != 1 or topics[0] not in inputs:
        raise InvalidRequestError("which input was landed is not clear", hint="name it: state.bootstraps.NAME.input")
    lock = revision.lock
    part: Any = lock.part_of_store(store)
    sources = {topic for node in part["nodes"] if node["kind"] == "source" for topic in node["topics"]}
    others = sorted(_leading_to(lock, part) - {topics[0]})
    if others:
        raise InvalidRequestError(
            f"store {store} is also made of {', '.join(others)}, which the table has not", hint="reset the app instead"
        )
    if topics[0] in sources:
        return topics[0], None
    inner = sorted(sources & lock.internal_topics.keys())
    if len(inner) != 1:
        raise InvalidRequestError(
            f"{topics[0]} does not lead to store {store} by one way", hint="reset the app instead"
        )
    return topics[0], real_name(revision.spec.application_id, lock, inner[0])


def _leading_to(lock: TopologyLock, part: Any) -> set[str]:
    """All external topics whose records reach a sub-topology, through repartition topics too."""
    found: set[str] = set()
    waiting, seen = [part], {part["id"]}
    while waiting:
        sources = {t for node in waiting.pop()["nodes"] if node["kind"] == "source" for t in node["topics"]}
        found |= sources - lock.internal_topics.keys()
        for other in lock.sub_topologies:
            sinks = {node.get("topic") for node in other["nodes"] if node["kind"] == "sink"}
            if other["id"] not in seen and sinks & sources & lock.internal_topics.keys():
                seen.add(other["id"])
                waiting.append(other)
    return found


def _fed_by(lock: TopologyLock, topic: str) -> list[str]:
    """All stores that records of a topic lead to, through repartition topics too."""
    reached, waiting, stores = {topic}, [topic], set()
    while waiting:
        current = waiting.pop()
        for part in lock.sub_topologies:
            sources = {t for node in part["nodes"] if node["kind"] == "source" for t in node["topics"]}
            if current not in sources:
                continue
            stores |= set(part["stores"])
            for node in part["nodes"]:
                target = node.get("topic")
                if node["kind"] == "sink" and target in lock.internal_topics and target not in reached:
                    reached.add(target)
                    waiting.append(target)
    return sorted(stores)


def _source(declared: Bootstrap) -> dict[str, Any]:
    source = declared.source
    return {
        "parquet": source.parquet,
        "key": source.key,
        "partition": source.partition,
        "offset": source.offset,
        "timestamp": source.timestamp,
        "first_offsets": dict(source.first_offsets),
    }


def _value(declared: Bootstrap) -> dict[str, Any]:
    value = declared.value
    if value.of is not None:
        return {"of": _function(value.of), "timestamp": value.timestamp}
    return {"fields": {name: _function(f) for name, f in value.fields.items()}, "timestamp": value.timestamp}


def _function(function: BootstrapFunction) -> dict[str, Any]:
    return {"function": function.function} | ({} if function.column is None else {"column": function.column})
