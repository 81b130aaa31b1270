"""What an audit job has to know of an app, from its recorded topics, its lock and what was seen of it last. Called by jobs.py.

The job's side, with the meaning of every field, is streamfleet_jobs; who runs it adds the run's id and directory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamfleet_platform.operations.work import AppRevision
from streamfleet_platform.registry.tables import App, InternalTopic

_PLACED_BY_KEY = ("key_value", "timestamped_key_value", "window", "timestamped_window", "session")
"""Kinds whose changelog keys begin with the key that their records were partitioned by; buffers and join sides do not."""


def audit_spec(app: App, topics: Sequence[InternalTopic], revision: AppRevision) -> dict[str, Any]:
    recorded = [row for row in topics if not row.is_orphan]
    checks = revision.spec.state.audit.checks
    return {
        "app": app.name,
        "application_id": app.application_id,
        "generation": app.generation,
        "bootstrap_servers": revision.cluster.bootstrap,
        "client_config": _public_settings(revision),
        "guarantee": revision.spec.run.guarantee,
        "mode": "deep" if "equivalence" in checks else "full",
        "stores": [_store(row, revision) for row in recorded if row.store in revision.lock.stores],
        "repartition_topics": [_topic(row) for row in recorded if row.kind == "repartition"],
        "doors": [
            worker["url"]
            for worker in app.observed.get("workers", ())
            if worker["url"] is not None and worker["client_state"] is not None
        ],
    }


def _store(row: InternalTopic, revision: AppRevision) -> dict[str, Any]:
    store = str(row.store)
    kind = str(revision.lock.stores[store]["kind"])
    part = revision.lock.part_of_store(store)
    return {
        "name": store,
        "changelog": row.name,
        "partitions": row.partitions,
        "kind": kind,
        "key_format": "session" if "session" in kind else "window" if "window" in kind else "plain",
        "timestamps": kind.startswith("timestamped"),
        "sub_topology": 0 if part is None else part["id"],
        "configs": row.configs,
        "checks_placement": kind in _PLACED_BY_KEY,
    }


def _topic(row: InternalTopic) -> dict[str, Any]:
    return {"name": row.name, "partitions": row.partitions, "configs": row.configs}


def _public_settings(revision: AppRevision) -> dict[str, str]:
    """Of the cluster, without what takes a secret: the job has references of its own."""
    return {name: str(value) for name, value in revision.cluster.config.items() if "${" not in str(value)}
