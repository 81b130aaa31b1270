"""What a slot of an app is to run: a definition, with its cluster, becomes a WorkerSpec. Called by operations/ and reconcile/."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from streamfleet_platform.errors import NotFoundError
from streamfleet_platform.model.app_definition import AppSpec
from streamfleet_platform.model.app_policies import SecretReference, Setting
from streamfleet_platform.model.fleet_definition import Cluster
from streamfleet_platform.runtime.api import WorkerSpec

REFERENCE = re.compile(r"\$\{([^}]*)\}")
"""`${NAME}` in a setting: the secret of that name."""
_CLUSTER_PREFIX = "cluster."
"""Secrets of a cluster and of an app may have the same name. No name has a dot in it."""


def worker_spec(
    app: str,
    spec: AppSpec,
    clusters: Mapping[str, Cluster],
    *,
    slot: int,
    revision: str,
    code: Path,
    more_settings: Mapping[str, Setting] | None = None,
) -> WorkerSpec:
    """`more_settings` are the platform's own, such as `state.snapshot.dir`; they win."""
    cluster = clusters.get(spec.cluster)
    if cluster is None:
        raise NotFoundError(f"app {app} wants cluster {spec.cluster}, which the fleet does not have", hint="add it")
    settings: dict[str, Setting] = {name: _of_cluster(value) for name, value in cluster.config.items()}
    settings |= spec.run.config
    settings |= _errors(spec)
    settings["bootstrap.servers"] = cluster.bootstrap
    settings["ensure.explicit.internal.resource.naming"] = spec.topology.require_names
    settings |= more_settings or {}
    secrets: dict[str, SecretReference] = {_CLUSTER_PREFIX + name: where for name, where in cluster.secrets.items()}
    image = None if spec.code.image is None else f"{spec.code.image}@{spec.code.digest}"
    return WorkerSpec(
        app=app,
        application_id=spec.application_id,
        slot=slot,
        revision=revision,
        code=code,
        entrypoint=spec.code.entrypoint,
        settings=settings,
        secrets=secrets | dict(spec.run.secrets),
        guarantee=spec.run.guarantee,
        standbys=spec.state.standbys,
        memory_bytes=spec.run.slot.memory,
        image=image,
    )


def slot_settings(spec: WorkerSpec) -> dict[str, Setting]:
    """The settings of a worker with what its slot decides, whatever the runtime."""
    settings: dict[str, Setting] = dict(spec.settings)
    settings["application.id"] = spec.application_id
    settings["processing.guarantee"] = spec.guarantee
    settings["num.standby.replicas"] = spec.standbys
    if settings.get("group.protocol") != "streams":  # brokers know no static members of streams groups
        settings["group.instance.id"] = f"{spec.application_id}-{spec.slot}"
    return settings


def _of_cluster(value: Setting) -> Setting:
    return REFERENCE.sub(rf"${{{_CLUSTER_PREFIX}\1}}", value) if isinstance(value, str) else value


def _errors(spec: AppSpec) -> dict[str, Setting]:
    chosen: dict[str, Setting] = {
        "deserialization.exception.handler": spec.errors.on_bad_record,
        "processing.exception.handler": spec.errors.on_bad_record,
    }
    if spec.errors.dead_letter_topic is not None:
        chosen["errors.dead.letter.queue.topic.name"] = spec.errors.dead_letter_topic
    return chosen
