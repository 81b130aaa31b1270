"""The verbs as jobs: what people launch from an app's page, and sensors launch by themselves. They live in the control location,
which holds no assets of apps, and run in one process: every run loads its location anew.

A job posts operations to the server and, if asked to, waits until they are over. Each post carries an intent id: the sensor's, or
one made of the run, so that a step that is tried again does nothing twice.
"""

from collections.abc import Callable, Iterable
from typing import Literal, TypeVar

from dagster import (
    Config,
    Failure,
    GraphDefinition,
    JobDefinition,
    MetadataValue,
    OpDefinition,
    OpExecutionContext,
    in_process_executor,
    op,
)
from pydantic import Field

from dagster_streamfleet.resource import StreamfleetResource
from streamfleet_platform import FleetClient, FleetError, OperationState, StaleError
from streamfleet_platform.views import OperationView

WAIT_SECONDS = 600


class AppItem(Config):
    """One app of a wave."""

    app: str
    intent_id: str = Field("", description="empty: one of this run")


Item = TypeVar("Item", bound=AppItem)


class ScaleItem(AppItem):
    """How many slots."""

    slots: int
    reason: str = ""
    from_slots: int | None = Field(
        None, description="at which it was decided; an app with another number is left alone"
    )


class WaveConfig(Config):
    wait_seconds: int = Field(WAIT_SECONDS, description="0: do not wait until it is over")


class ScaleConfig(WaveConfig):
    items: list[ScaleItem]


class ProbeConfig(WaveConfig):
    items: list[AppItem]


class AppConfig(WaveConfig):
    app: str
    intent_id: str = Field("", description="empty: one of this run")


class UpgradeConfig(AppConfig):
    ref: str = Field("", description="a branch, tag or commit; empty: the state that is followed")
    accept_lost_state: bool = False


class ResetConfig(AppConfig):
    confirm: str = Field(description="the app's name, typed by who wants its state gone")
    preview: str = Field(
        "", description="id of the preview it was decided on; empty: the one made now, which is logged"
    )
    input_topics: Literal["earliest", "latest"] = "earliest"


class RetireConfig(AppConfig):
    wait_seconds: int = Field(0, description="0: do not wait; it is over when the undo window is, after days")
    confirm: str = Field(description="the app's name, typed by who wants it gone for good")
    undo_window_seconds: int | None = Field(
        None, description="how long its state is kept; empty: as the definition says"
    )


@op
def scale(context: OpExecutionContext, streamfleet: StreamfleetResource, config: ScaleConfig) -> None:
    def post(client: FleetClient, item: ScaleItem) -> OperationView:
        return client.scale(
            item.app, item.slots, reason=item.reason, from_slots=item.from_slots, intent_id=_intent(context, item)
        )

    _wave(context, streamfleet, config.items, post, config.wait_seconds, stale_is_over=True)


@op
def probe(context: OpExecutionContext, streamfleet: StreamfleetResource, config: ProbeConfig) -> None:
    def post(client: FleetClient, item: AppItem) -> OperationView:
        return client.probe(item.app, intent_id=_intent(context, item))

    _wave(context, streamfleet, config.items, post, config.wait_seconds)


@op
def start(context: OpExecutionContext, streamfleet: StreamfleetResource, config: AppConfig) -> None:
    _one(context, streamfleet, config, lambda client, one: client.start(one.app, intent_id=_intent(context, one)))


@op
def stop(context: OpExecutionContext, streamfleet: StreamfleetResource, config: AppConfig) -> None:
    _one(context, streamfleet, config, lambda client, one: client.stop(one.app, intent_id=_intent(context, one)))


@op
def upgrade(context: OpExecutionContext, streamfleet: StreamfleetResource, config: UpgradeConfig) -> None:
    def post(client: FleetClient, one: AppItem) -> OperationView:
        return client.upgrade(
            one.app,
            ref=config.ref or None,
            accept_lost_state=config.accept_lost_state,
            intent_id=_intent(context, one),
        )

    _one(context, streamfleet, config, post)


@op
def reset(context: OpExecutionContext, streamfleet: StreamfleetResource, config: ResetConfig) -> None:
    _check_confirmed(context, config)

    def post(client: FleetClient, one: AppItem) -> OperationView:
        preview = config.preview
        if not preview:
            made = client.reset_preview(one.app)
            context.log.info("\n".join(made.lines))
            preview = made.id
        return client.reset(
            one.app,
            confirm=config.confirm,
            preview=preview,
            input_topics=config.input_topics,
            intent_id=_intent(context, one),
        )

    _one(context, streamfleet, config, post)


@op
def retire(context: OpExecutionContext, streamfleet: StreamfleetResource, config: RetireConfig) -> None:
    """What it will delete is logged before it is asked for. Until its undo window is over it can be called off."""
    _check_confirmed(context, config)

    def post(client: FleetClient, one: AppItem) -> OperationView:
        there = client.reset_preview(one.app)
        for what, names in (("topics", there.topics), ("stores", there.stores), ("offsets of", sorted(there.offsets))):
            context.log.info("retire of %s, deleted at its end: %s %s", one.app, what, ", ".join(names) or "none")
        return client.retire(
            one.app,
            confirm=config.confirm,
            undo_window_seconds=config.undo_window_seconds,
            intent_id=_intent(context, one),
        )

    _one(context, streamfleet, config, post)


def _check_confirmed(context: OpExecutionContext, config: ResetConfig | RetireConfig) -> None:
    """Refused here already; the server asks for it as well."""
    if config.confirm != config.app:
        verb = context.op.name
        raise Failure(f"no {verb}: confirm is not the name of the app, {config.app}", allow_retries=False)


_VERBS: tuple[OpDefinition, ...] = (scale, probe, start, stop, upgrade, reset, retire)


def verb_jobs() -> list[JobDefinition]:
    return [job_of(each, f"{each.name}: posted to the fleet's server") for each in _VERBS]


def job_of(verb: OpDefinition, description: str) -> JobDefinition:
    """A job with the name of its only op. Ops and graphs share one space of names, so the graph between them has another."""
    graph = GraphDefinition(name=f"{verb.name}_graph", node_defs=[verb])
    return graph.to_job(name=verb.name, executor_def=in_process_executor, description=description)


def _intent(context: OpExecutionContext, item: AppItem) -> str:
    return item.intent_id or f"dagster-{context.run_id}-{context.op.name}-{item.app}"


def _one(
    context: OpExecutionContext,
    streamfleet: StreamfleetResource,
    config: AppConfig,
    post: Callable[[FleetClient, AppItem], OperationView],
) -> None:
    _wave(context, streamfleet, [AppItem(app=config.app, intent_id=config.intent_id)], post, config.wait_seconds)


def _wave(
    context: OpExecutionContext,
    streamfleet: StreamfleetResource,
    items: Iterable[Item],
    post: Callable[[FleetClient, Item], OperationView],
    wait_seconds: int,
    *,
    stale_is_over: bool = False,
) -> None:
    """All of them, whatever becomes of one; the run fails at the end if any did. `stale_is_over`: what was decided on another
    state than the present one is decided anew by the server, and is no failure.
    """
    failed: list[str] = []
    begun: dict[str, str] = {}
    with streamfleet.client() as client:
        for item in items:
            try:
                operation = post(client, item)
                context.log.info("%s of %s: operation %s, %s", operation.kind, item.app, operation.id, operation.state)
                begun[item.app] = operation.id
                if wait_seconds:
                    operation = client.wait(operation.id, timeout=wait_seconds)
                if operation.state is OperationState.ASKING:
                    context.log.warning("%s: %s waits for a person's approval", item.app, operation.id)
                failed += _complaint(operation, is_awaited=wait_seconds > 0)
            except FleetError as error:
                if isinstance(error, StaleError) and stale_is_over:
                    context.log.warning("%s of %s: nothing was done: %s", context.op.name, item.app, error)
                else:
                    failed.append(f"{item.app}: {error}")
    if failed:
        raise Failure("; ".join(failed), metadata={"operations": MetadataValue.json(begun)}, allow_retries=False)
    context.add_output_metadata({"operations": MetadataValue.json(begun)})


def _complaint(operation: OperationView, *, is_awaited: bool) -> list[str]:
    """Who waits wants it done. Who only asked for it has done so, also where a person has to agree first."""
    words = f"{operation.app}: {operation.kind} {operation.id}"
    if operation.state is OperationState.ASKING and is_awaited:
        return [f"{words} waits for a person's approval"]
    if operation.state.is_over and operation.state is not OperationState.SUCCEEDED:
        return [f"{words} {operation.state}: {operation.error}"]
    return []
