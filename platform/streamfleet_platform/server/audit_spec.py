"""What an audit job has to know of an app, from its recorded topics, its lock and what was seen of it last. Called by jobs.py.

The job's side, with the meaning of every field, is streamfleet_jobs; who runs it adds the run's id and directory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from streamfleet_platform.model.fleet_definition import Cluster
from streamfleet_platform.operations.work import AppRevision
from streamfleet_platform.registry.tables import App, InternalTopic

_PLACED_BY_KEY = ("key_value", "timestamped_key_value", "window", "timestamped_window", "session")
"""Kinds whose changelog keys begin with the key that their records were partitioned by; buffers and join sides do not."""


def audit_spec(app: App, topics: Sequence[InternalTopic], revision: AppRevision) -> dict[str, Any]:
    recorded = [row for row in topics if not row.is_orphan]
    checks = list(revision.spec.state.audit.checks)
    return {
        "app": app.name,
        "application_id": app.application_id,
        "generation": app.generation,
        "bootstrap_servers": revision.cluster.bootstrap,
        "client_config": client_config(revision.cluster),
        "secrets": secret_places(revision.cluster),
        "guarantee": revision.spec.run.guarantee,
        "mode": _mode(checks),
        "checks": checks,
        "stores": [_store(row, revision) for row in recorded if row.store in revision.lock.stores],
        "repartition_topics": [_topic(row) for row in recorded if row.kind == "repartition"],
        "former_topics": sorted(row.name for row in topics if row.is_orphan),
        "restore_records_per_second": _restore_rate(app.observed),
        "doors": [
            worker["url"]
            for worker in app.observed.get("workers", ())
            if worker["url"] is not None and worker["client_state"] is not None
        ],
    }


def _mode(checks: Sequence[str]) -> str:
    """No more is read than is judged."""
    if "equivalence" in checks:
        return "deep"
    return "quick" if set(checks) <= {"orphans"} else "full"


def _restore_rate(observed: Mapping[str, Any]) -> float | None:
    """Of one task, as workers told it of those that are being restored; None: there are none."""
    told = [(task.get("restore_remaining"), task.get("eta_seconds")) for task in observed.get("placement", ())]
    rates = [remaining / seconds for remaining, seconds in told if remaining and seconds]
    return round(median(rates), 1) if rates else None


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
        "retention_ms": revision.lock.stores[store].get("retention_ms"),
        "configs": row.configs,
        "checks_placement": kind in _PLACED_BY_KEY,
    }


def _topic(row: InternalTopic) -> dict[str, Any]:
    return {"name": row.name, "partitions": row.partitions, "configs": row.configs}


def client_config(cluster: Cluster) -> dict[str, str]:
    """Settings of the cluster's clients. Where one takes a secret it is the reference: the job has the value, the spec never."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in cluster.config.items()
    }


def secret_places(cluster: Cluster) -> dict[str, dict[str, str]]:
    """Where the secrets are, for who runs the job."""
    return {name: where.model_dump(exclude_none=True) for name, where in cluster.secrets.items()}
