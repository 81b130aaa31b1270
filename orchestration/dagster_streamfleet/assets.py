"""The assets of a fleet: nodes of the lineage become external assets, and sub-topologies become what can be materialized.

Materialize means: make the app what its definition says (`apply`). It is safe to press at any time: what is so already is left
alone, and what would lose state is refused by the server.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from dagster import (
    AssetExecutionContext,
    AssetsDefinition,
    AssetSpec,
    Failure,
    MaterializeResult,
    MetadataValue,
    multi_asset,
)

from dagster_streamfleet.app_page import app_page
from dagster_streamfleet.lineage import Node, lineage
from dagster_streamfleet.resource import StreamfleetResource
from dagster_streamfleet.snapshot import FleetSnapshot
from dagster_streamfleet.translator import FleetTranslator
from streamfleet_platform import FleetClient, OperationState
from streamfleet_platform.views import AppDetail, ApplyResult, OperationView

DEPLOY_SECONDS = 600.0
_DESCRIPTIONS = {
    "sub-topology": "A part of the topology, run as one task per partition. Materialize: deploy the app.",
    "topic": "A topic.",
    "repartition": "A re-keyed stream between two sub-topologies.",
    "changelog": "A store's log: what a worker restores it from.",
    "store": "A store.",
}


def fleet_assets(
    snapshot: FleetSnapshot, translator: FleetTranslator, control_location: str
) -> list[AssetsDefinition | AssetSpec]:
    nodes = lineage(snapshot.apps, translator)
    found: list[AssetsDefinition | AssetSpec] = []
    deployed: dict[str, list[AssetSpec]] = {}
    for node in nodes:
        spec = asset_spec(node, snapshot, translator, control_location)
        if node.role == "sub-topology" and node.app is not None:
            deployed.setdefault(node.app.name, []).append(spec)
        else:
            found.append(spec)
    return [*found, *(_deployment(app, specs, translator) for app, specs in sorted(deployed.items()))]


def asset_spec(node: Node, snapshot: FleetSnapshot, translator: FleetTranslator, control_location: str) -> AssetSpec:
    app = node.app
    description = _DESCRIPTIONS.get(node.role, "")
    if node.role == "app" and app is not None:
        description = app_page(app, snapshot.pictures.get(app.name), control_location, translator)
    kinds = {"store": {"rocksdb"}, "app": {"python"}, "sub-topology": {"python"}}.get(node.role, {"kafka"})
    return AssetSpec(
        node.key,
        deps=sorted(node.upstream),
        description=description,
        group_name=node.group,
        metadata={**_metadata(node), **(_snapshot_metadata(snapshot) if node.role == "app" else {})},
        tags=translator.tags(app.name, node.role) if app is not None else {},
        owners=translator.owners(app) if app is not None else None,
        kinds=kinds,
        code_version=app.topology_hash[:32] if app is not None and node.role == "sub-topology" else None,
    )


def _metadata(node: Node) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if node.topic is not None:
        found |= {"topic": node.topic.name, "partitions": node.topic.partitions}
    if node.store is not None:
        found |= {"store": node.store.name, "kind": node.store.kind, "epoch": node.store.epoch}
    if node.cut:
        words = ", ".join(key.to_user_string() for key in node.cut)
        found["feedback"] = f"also reads {words}: left out of the graph, because it would close a circle"
    return {name: value for name, value in found.items() if value is not None}


def _snapshot_metadata(snapshot: FleetSnapshot) -> dict[str, Any]:
    found: dict[str, Any] = {"fleet seen at": MetadataValue.timestamp(snapshot.taken_at)}
    if snapshot.stale_reason is not None:
        found["not the newest"] = f"the server did not answer when this was loaded: {snapshot.stale_reason}"
    return found


def _deployment(app: str, specs: Sequence[AssetSpec], translator: FleetTranslator) -> AssetsDefinition:
    @multi_asset(name=translator.op_name(app), specs=specs, can_subset=True, pool=translator.pool(app))
    def deploy(context: AssetExecutionContext, streamfleet: StreamfleetResource) -> Iterator[MaterializeResult[Any]]:
        with streamfleet.client() as client:
            applied = client.apply(apps=(app,), intent_id=f"dagster-{context.run.run_id}-{app}")
            operations = _carried_out(client, app, applied, context)
            found = client.app(app)
        for key in sorted(context.selected_asset_keys):
            yield MaterializeResult(asset_key=key, metadata=_deployed(found, operations))

    return deploy


def _carried_out(
    client: FleetClient, app: str, applied: ApplyResult, context: AssetExecutionContext
) -> list[OperationView]:
    blocked = [f"{change.app}: {change.blocked}" for change in applied.plan.changes if change.blocked]
    refused = [*applied.plan.problems, *blocked]
    if refused:
        raise Failure("not applied: " + "; ".join(refused), allow_retries=False)
    over: list[OperationView] = []
    for reference in applied.operations:
        context.log.info("%s of %s: operation %s", reference.kind, app, reference.id)
        over.append(client.wait(reference.id, timeout=DEPLOY_SECONDS))
    bad = [
        f"{each.kind} {each.id} {each.state}: {each.error}" for each in over if each.state != OperationState.SUCCEEDED
    ]
    if bad:
        raise Failure("; ".join(bad), allow_retries=False)
    return over


def _deployed(app: AppDetail, operations: Sequence[OperationView]) -> dict[str, Any]:
    return {
        "phase": str(app.phase),
        "revision": app.revision,
        "slots": app.slots,
        "slots_ready": app.slots_ready,
        "operations": ", ".join(f"{each.kind} {each.id}" for each in operations) or "nothing had to be changed",
    }
