"""Bootstrap as a job: begins it at the server, runs the child that computes the state, and tells the server how far it is.

The child writes a line of JSON for each state it reached; the server refuses a move with a token that is no longer the newest, so
a run that was replaced cannot do harm. Begun again after a failure it goes on where it was.
"""

import json
import subprocess
import tempfile
from pathlib import Path

from dagster import Config, Failure, OpExecutionContext, op
from pydantic import Field

from dagster_streamfleet.child_job import Engine, command
from dagster_streamfleet.resource import StreamfleetResource
from dagster_streamfleet.verbs import job_of
from streamfleet_platform import FleetClient
from streamfleet_platform.views import BootstrapRunView


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
                    said = json.loads(text)
                    run = client.move_bootstrap(run.app, run.id, run.token, str(said["state"]), said.get("detail"))
                    context.log.info("bootstrap %s: %s", run.id, run.state)
            except BaseException:
                process.terminate()  # who is no longer listened to must not go on writing
                raise
    if process.returncode != 0 or run.state == "aborted":
        raise Failure(f"bootstrap {run.id} ended as {run.state}, exit code {process.returncode}", allow_retries=False)
    return run


bootstrap_job = job_of(bootstrap_op, "Builds an app's state from data at rest.")
