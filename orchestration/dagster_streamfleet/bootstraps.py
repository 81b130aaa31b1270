"""Bootstrap as a job: begins it at the server, runs the child that computes the state, and tells the server how far it is.

The child writes a line of JSON for each state it reached; the server refuses a move with a token that is no longer the newest, so
a run that was replaced cannot do harm. A server that is away for a moment is waited for: the child may have worked for an hour.
Begun again after a failure it goes on where it was.
"""

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dagster import Config, Failure, OpExecutionContext, op
from pydantic import Field

from dagster_streamfleet.child_job import Engine, command
from dagster_streamfleet.resource import StreamfleetResource
from dagster_streamfleet.verbs import job_of
from streamfleet_platform import FleetClient, TransientError
from streamfleet_platform.views import BootstrapRunView

PATIENCE_SECONDS = 30.0
"""How long the server may be away at a time; as the command line waits."""
_ASK_AGAIN_SECONDS = 0.5


class BootstrapConfig(Config):
    app: str
    name: str = Field(description="one of the bootstraps of its definition")
    engine: Engine = "spark-local"


@op(name="bootstrap")
def bootstrap_op(context: OpExecutionContext, streamfleet: StreamfleetResource, config: BootstrapConfig) -> None:
    with streamfleet.client() as client:
        intent = f"dagster-{context.run_id}-bootstrap-{config.app}"
        run = client.start_bootstrap(config.app, config.name, engine=config.engine, intent_id=intent)
        context.log.info("bootstrap %s: %s", run.id, run.state)
        run = _driven(context, client, run, config.engine)
    context.add_output_metadata({"bootstrap": run.id, "state": run.state, "epoch": run.epoch})


def _driven(context: OpExecutionContext, client: FleetClient, run: BootstrapRunView, engine: str) -> BootstrapRunView:
    with tempfile.TemporaryDirectory(prefix="streamfleet-bootstrap-") as directory:
        line = command("bootstrap", Path(directory), run.spec, engine)
        with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - an argument list, no shell
            assert process.stdout is not None
            try:
                for text in process.stdout:
                    said = state_in(text)
                    if said is None:
                        context.log.info(text.rstrip())
                        continue
                    run = reported(client, run, said)
                    context.log.info("bootstrap %s: %s", run.id, run.state)
            except BaseException:
                process.terminate()  # who is no longer listened to must not go on writing
                raise
    if process.returncode != 0 or run.state == "aborted":
        raise Failure(f"bootstrap {run.id} ended as {run.state}, exit code {process.returncode}", allow_retries=False)
    return run


def state_in(text: str) -> dict[str, Any] | None:
    """What the child says it has reached. None: a line of something else, such as a library's."""
    try:
        said = json.loads(text)
    except ValueError:
        return None
    return said if isinstance(said, dict) and "state" in said else None


def reported(
    client: FleetClient,
    run: BootstrapRunView,
    said: Mapping[str, Any],
    *,
    now: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> BootstrapRunView:
    """As the server has it then. TransientError once it has been away too long."""
    deadline = now() + PATIENCE_SECONDS
    while True:
        try:
            return client.move_bootstrap(run.app, run.id, run.token, str(said["state"]), said.get("detail"))
        except TransientError:
            if now() > deadline:
                raise
            pause(_ASK_AGAIN_SECONDS)


bootstrap_job = job_of(bootstrap_op, "Builds an app's state from data at rest.")
