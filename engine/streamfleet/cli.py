"""The command `streamfleet`: one entry point that offers what is installed.

`topology` needs no broker; `run` and `worker` are about one app on a cluster; `broker` comes from the development broker
where that is installed. Progress and errors go to standard error, results to standard output. Exit codes: 0 done, 1
refused with a reason, 2 misused; `run` has one more (worker/exit_codes.py). What a command does lives in the package it is
about; here are only the arguments, the help and the errors as sentences.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from streamfleet.errors import StreamsError

if TYPE_CHECKING:  # loaded where it is needed: `streamfleet broker` should not wait for the engine
    from streamfleet.config import StreamsConfig
    from streamfleet.topology.plan import TopologyPlan
    from streamfleet.topology.topology import Topology

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Kafka Streams in Python: look at a topology, run it on a cluster, reset it, and run a development broker.",
)
topology_app = typer.Typer(
    no_args_is_help=True,
    help="Look at a topology without a broker: as text, as a picture, as JSON, and what it needs from Kafka.",
)
worker_app = typer.Typer(no_args_is_help=True, help="What else there is to do about an app on a cluster.")
app.add_typer(topology_app, name="topology")
app.add_typer(worker_app, name="worker")

TopologyArgument = Annotated[
    str,
    typer.Argument(
        metavar="MODULE:FUNCTION",
        help="A function without arguments that returns the Topology or the StreamsBuilder, such as "
        "examples.apps.orders:topology. Modules are looked up in the current directory too.",
    ),
]
ConfigOption = Annotated[
    Path, typer.Option("--config", "-c", metavar="FILE", help="The app's settings: YAML, with Kafka's dotted names.")
]
StateDirOption = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Where local state is kept; wins over state.dir in the file.")
]
OptionalTopologyArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="MODULE:FUNCTION", help="The app's topology; needed where it has not run with this state directory."
    ),
]
LogFormat = Literal["json", "console"]
LogLevel = Literal["debug", "info", "warning", "error"]
StartAt = Literal["earliest", "latest"]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write to this file instead of standard output.")
]


@topology_app.command()
def describe(topology: TopologyArgument) -> None:
    """Print the sub-topologies and their nodes, in the text form of Kafka Streams."""
    with errors_told():
        print(load_topology(topology).describe())


@topology_app.command()
def svg(topology: TopologyArgument, output: OutputOption = None) -> None:
    """Draw the topology as an SVG picture that any browser shows."""
    with errors_told():
        _write(load_topology(topology).to_svg(), output)


@topology_app.command()
def json(topology: TopologyArgument, output: OutputOption = None) -> None:
    """Print the topology as JSON: stable, so that two versions of an app can be compared."""
    with errors_told():
        _write(load_topology(topology).to_json(), output)


@topology_app.command()
def plan(
    topology: TopologyArgument,
    partitions: Annotated[
        list[str],
        typer.Option("--partitions", "-p", metavar="TOPIC=N", help="Partitions of an input topic; repeat it."),
    ],
    application_id: Annotated[
        str | None, typer.Option(help="Names the internal topics. [default: the topology's own, or 'app']")
    ] = None,
) -> None:
    """Print what the app will be on a cluster: its tasks, and the internal topics it will create."""
    with errors_told():
        built = load_topology(topology)
        _print_plan(built.plan(parse_partitions(partitions), _planning_config(built, application_id)))


@app.command()
def run(
    topology: TopologyArgument,
    config: ConfigOption,
    state_dir: StateDirOption = None,
    http: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="Where to answer /livez, /readyz, /status and /metrics; port 0 is any, 'off' none.",
        ),
    ] = "127.0.0.1:0",
    grace: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="How long a shutdown may take before it is cut short.")
    ] = 25.0,
    log_format: Annotated[
        LogFormat, typer.Option(help="Logs on standard error: JSON lines for machines, or lines for people.")
    ] = "json",
    log_level: Annotated[LogLevel, typer.Option(help="The least important lines to show.")] = "info",
) -> None:
    """Run an app on a Kafka cluster, until it is told to stop.

    A first configuration needs two lines:

        application.id: orders

        bootstrap.servers: localhost:9092

    SIGTERM or Ctrl-C commits, closes the tasks and leaves the group; a second one ends at once.

    Exit codes: 0 stopped as asked, 1 the app failed, 2 wrong command or configuration, 143 ended without a last commit.
    """
    from streamfleet.worker.commands import RunCommand

    with worker_errors_told():
        command = RunCommand(config, state_dir, http, grace, log_format, log_level)
        code = command.run(lambda settings: load_topology(topology, settings))
    raise typer.Exit(code)


@worker_app.command()
def reset(
    config: ConfigOption,
    topology: OptionalTopologyArgument = None,
    state_dir: StateDirOption = None,
    input_topics: Annotated[StartAt, typer.Option(help="Where the app begins again in its input topics.")] = "earliest",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Make an app forget everything: its offsets, its internal topics, its local state here.

    Says first what it will do, and asks. Only while no worker of the app runs. Internal topics are those that this app is
    known to have: recorded when it ran with this state directory, or named by its topology. Output topics stay as they are.
    May be repeated; a reset that was cut short has to be, before the app runs again here.
    """
    from streamfleet.worker.commands import ResetCommand

    with worker_errors_told():
        command = ResetCommand(config, state_dir, input_topics, is_dry_run=dry_run, is_agreed=yes)
        built = None if topology is None else load_topology(topology, command.config)
        command.run(built, tell=print, ask=lambda question: typer.confirm(question, err=True))


def load_topology(reference: str, config: StreamsConfig | None = None) -> Topology:
    """The topology that `module:name` builds or is; a StreamsBuilder is built with the configuration."""
    from streamfleet.dsl.builder import StreamsBuilder
    from streamfleet.topology.topology import Topology

    module_name, colon, name = reference.partition(":")
    if not (module_name and colon and name):
        raise CommandError(f"{reference!r} does not name a function; write module:function")
    sys.path.insert(0, str(Path.cwd()))  # as `python -m` does: people name modules of the project they stand in
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise CommandError(f"the module {module_name} cannot be imported ({error}); run this where it lies") from error
    found = getattr(module, name, None)
    if not (callable(found) or isinstance(found, Topology | StreamsBuilder)):
        raise CommandError(f"the module {module_name} has no function {name}")
    made = found if isinstance(found, Topology | StreamsBuilder) else found()
    if isinstance(made, StreamsBuilder):
        return made.build(config)
    if not isinstance(made, Topology):
        raise CommandError(f"{reference} returned a {type(made).__name__}; it has to return a Topology")
    return made


def parse_partitions(texts: Sequence[str]) -> dict[str, int]:
    """`["orders=3"]` becomes `{"orders": 3}`."""
    counts: dict[str, int] = {}
    for text in texts:
        topic, _, count = text.rpartition("=")
        if not topic or not count.isdecimal():
            raise CommandError(f"{text!r} is no partition count; write topic=number, such as orders=3")
        counts[topic] = int(count)
    return counts


def _planning_config(topology: Topology, application_id: str | None) -> StreamsConfig:
    from streamfleet.config import StreamsConfig

    if topology.config is None:
        return StreamsConfig(application_id=application_id or "app")
    return topology.config.with_(application_id=application_id) if application_id else topology.config


def _print_plan(plan: TopologyPlan) -> None:
    for number, part in plan.sub_topologies.items():
        print(f"sub-topology {number}: {part.tasks} tasks {number}_0 .. {number}_{part.tasks - 1}")
        print(f"  reads   {', '.join(part.sources)}")
        if part.sinks:
            print(f"  writes  {', '.join(part.sinks)}")
        if part.changelog_topics:
            print(f"  stores  {', '.join(part.changelog_topics)}")
    for name, topic in plan.internal_topics.items():
        print(f"internal topic {name}: {topic.partitions} partitions")
        for setting, value in sorted(topic.configs.items()):
            print(f"  {setting}={value}")


class CommandError(Exception):
    """A command was given something it cannot work with; the message says what and what to do."""


@contextmanager
def errors_told() -> Iterator[None]:
    """Expected errors as one sentence on standard error and exit code 1; anything else is a bug and keeps its trace."""
    try:
        yield
    except (CommandError, StreamsError) as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(1) from error


@contextmanager
def worker_errors_told() -> Iterator[None]:
    """As `errors_told`, with the exit codes of a worker: a wrong command or setting is 2, since trying again changes nothing."""
    from streamfleet.worker.exit_codes import ExitCode, exit_code_of

    try:
        yield
    except CommandError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(ExitCode.MISUSED) from error
    except StreamsError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(exit_code_of(error)) from error


def _write(text: str, output: Path | None) -> None:
    if output is None:
        print(text)
        return
    try:
        output.write_text(text if text.endswith("\n") else text + "\n", "utf-8")
    except OSError as error:
        raise CommandError(f"{output} cannot be written: {error.strerror or error}") from error
    print(f"written: {output}", file=sys.stderr)


def _mount_broker() -> None:
    try:
        from streamfleet_devbroker.cli import app as broker_app
    except ImportError:

        @app.command("broker", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
        def broker() -> None:
            """A development broker: install streamfleet[dev] to have it."""
            print("error: the development broker is not installed; install streamfleet[dev]", file=sys.stderr)
            raise typer.Exit(1)
    else:
        app.add_typer(broker_app, name="broker")


_mount_broker()


def main() -> None:
    """The console script."""
    app()
