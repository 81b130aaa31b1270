"""The command `streamfleet`: one entry point that offers what is installed.

`topology` needs no broker; `run` and `worker` are about one app on a cluster; `broker` comes from the development broker
where that is installed, and the commands about a fleet from the control plane, which is loaded when one of them is called.
Progress and errors go to standard error, results to standard output. Exit codes: 0 done, 1 refused with a reason, 2 misused;
`run` has one more (worker/exit_codes.py). What a command does lives in the package it is about;
here are only the arguments, the help and the errors as sentences.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from streamfleet.errors import StreamsError

if TYPE_CHECKING:  # loaded where it is needed: `streamfleet broker` should not wait for the engine
    from streamfleet.config import StreamsConfig
    from streamfleet.topology.plan import TopologyPlan
    from streamfleet.topology.topology import Topology

FLEET_COMMANDS = "streamfleet_platform.cli"
"""By its name only: the engine does not need the control plane."""


class Commands(TyperGroup):
    """Our own commands, and those of the fleet: loaded when they are asked for, because a worker should not wait for them."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]  # Typer's context is click's
        self._load_fleet()
        return super().list_commands(ctx)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]
        if cmd_name not in self.commands:
            self._load_fleet()
        return super().get_command(ctx, cmd_name)

    def _load_fleet(self) -> None:
        try:
            fleet = importlib.import_module(FLEET_COMMANDS)
        except ModuleNotFoundError as error:
            # the extra `platform` is not installed: what it would offer is not there
            self.epilog = f"The commands about a fleet need streamfleet[platform]: there is no module {error.name}."
            return
        for name, command in typer.main.get_group(fleet.commands).commands.items():
            self.commands.setdefault(name, command)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Kafka Streams in Python: look at a topology, run it on a cluster, operate a fleet of apps, run a development broker.",
)
topology_app = typer.Typer(no_args_is_help=True)
worker_app = typer.Typer(
    no_args_is_help=True,
    help="What else there is to do about an app on a cluster: give orders to a worker, or reset the app.",
)
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
OptionalConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", metavar="FILE", help="The app's settings, for a function that returns a StreamsBuilder."
    ),
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
UrlArgument = Annotated[
    str, typer.Argument(metavar="URL", help="The worker's HTTP door, such as http://127.0.0.1:8080; its log names it.")
]
TokenFileOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The worker's token, where it was started with --control-token-file."),
]
LogFormat = Literal["json", "console"]
LogLevel = Literal["debug", "info", "warning", "error"]
StartAt = Literal["earliest", "latest"]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write to this file instead of standard output.")
]


@topology_app.callback(invoke_without_command=True)
def show_generated(
    context: typer.Context,
    generated: Annotated[
        str | None,
        typer.Option(
            "--generated",
            metavar="MODULE:FUNCTION",
            help="Print the Python text that this topology becomes, for each of its sub-topologies.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="With --generated: as for the commands below."),
    ] = None,
) -> None:
    """Look at a topology without a broker: as text, as a picture, as JSON, as generated code, and what it needs from Kafka."""
    if generated is None and config is None:
        return
    with errors_told():
        if generated is None:
            raise CommandError("--config belongs to --generated here; for a command, write it behind the command")
        if context.invoked_subcommand is not None:
            raise CommandError(f"--generated prints by itself; leave out {context.invoked_subcommand}")
        print(_generated_text(generated, config), end="")


@topology_app.command()
def describe(topology: TopologyArgument, config: OptionalConfigOption = None) -> None:
    """Print the sub-topologies and their nodes, in the text form of Kafka Streams."""
    with errors_told():
        print(_configured_topology(topology, config).describe())


@topology_app.command()
def svg(topology: TopologyArgument, output: OutputOption = None, config: OptionalConfigOption = None) -> None:
    """Draw the topology as an SVG picture that any browser shows."""
    with errors_told():
        _write(_configured_topology(topology, config).to_svg(), output)


@topology_app.command()
def json(topology: TopologyArgument, output: OutputOption = None, config: OptionalConfigOption = None) -> None:
    """Print the topology as JSON: stable, so that two versions of an app can be compared."""
    with errors_told():
        _write(_configured_topology(topology, config).to_json(), output)


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
    config: OptionalConfigOption = None,
) -> None:
    """Print what the app will be on a cluster: its tasks, and the internal topics it will create."""
    with errors_told():
        built = _configured_topology(topology, config)
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
    control_token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Its one word is what `streamfleet worker pause` and the like have to show."),
    ] = None,
) -> None:
    """Run an app on a Kafka cluster, until it is told to stop.

    A first configuration needs two lines:

        application.id: orders

        bootstrap.servers: localhost:9092

    SIGTERM or Ctrl-C commits, closes the tasks and leaves the group; a second one ends at once.

    Exit codes: 0 stopped as asked, 1 the app failed, 2 wrong command or configuration, 143 ended without a last commit.
    """
    from streamfleet.worker.commands import RunCommand

    _look_for_modules_here()
    with worker_errors_told():
        command = RunCommand(config, state_dir, http, grace, log_format, log_level, control_token_file)
        code = command.run(lambda settings: load_topology(topology, settings))
    raise typer.Exit(code)


@worker_app.command()
def reset(
    config: ConfigOption,
    topology: OptionalTopologyArgument = None,
    state_dir: StateDirOption = None,
    input_topics: Annotated[
        StartAt | None, typer.Option(help="Begin at this end of the input topics (if nothing is said: earliest).")
    ] = None,
    to_offset: Annotated[
        int | None, typer.Option(metavar="OFFSET", min=0, help="Begin at this offset of every input partition.")
    ] = None,
    to_datetime: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Begin at the first record since then, as 2026-01-31T08:00:00Z; without a zone it is UTC.",
        ),
    ] = None,
    by_duration: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Begin at the first record of the last P7D, or PT1H30M.")
    ] = None,
    shift_by: Annotated[
        int | None,
        typer.Option(metavar="N", help="Begin N offsets behind what was processed; before it, if N is negative."),
    ] = None,
    from_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Begin where its lines topic,partition,offset say, one for every input partition."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Make an app forget everything: its offsets, its internal topics, its local state here.

    Says first what it will do, and asks. Only while no worker of the app runs. Internal topics are those that this app is
    known to have: recorded when it ran with this state directory, or named by its topology. Output topics stay as they are.

    The app begins again at the first record of its input topics, or where one of the options says. What a partition does not have
    becomes the nearest that it has; --dry-run shows it.

    May be repeated; a reset that was cut short has to be, before the app runs again here.
    """
    from streamfleet.worker.commands import ResetCommand
    from streamfleet.worker.start_positions import start_position

    _look_for_modules_here()
    with worker_errors_told():
        start_at = start_position(
            now=datetime.now(UTC),
            input_topics=input_topics,
            to_offset=to_offset,
            to_datetime=to_datetime,
            by_duration=by_duration,
            shift_by=shift_by,
            from_file=from_file,
        )
        command = ResetCommand(config, state_dir, start_at, is_dry_run=dry_run, is_agreed=yes)
        built = None if topology is None else load_topology(topology, command.config)
        command.run(built, tell=print, ask=lambda question: typer.confirm(question, err=True))


@worker_app.command()
def probe(url: UrlArgument, token_file: TokenFileOption = None) -> None:
    """Ask the app's group for a rebalance now, so that tasks can move to where they were made ready.

    Needed rarely: a worker whose warm-ups have caught up asks by itself (probing.when.caught.up), and so does the group now and
    then (probing.rebalance.interval.ms). Refused with group.protocol=streams, where the broker plans.
    """
    _order(url, token_file, "probe")


@worker_app.command()
def drain(
    url: UrlArgument,
    token_file: TokenFileOption = None,
    wait: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0, help="How long to wait until all tasks are given up; 0: not at all."),
    ] = 60.0,
) -> None:
    """Let a worker commit, give all its tasks to others and leave its group for good, without ending the process.

    For taking a worker out of service. It goes on answering /status and /metrics until it is stopped (SIGTERM); to have it work
    again, start it again.
    """
    _order(url, token_file, "drain", wait_seconds=wait)


@worker_app.command()
def pause(url: UrlArgument, token_file: TokenFileOption = None) -> None:
    """Let a worker process nothing more, and restore nothing, until it is resumed.

    It commits what it has processed and stays a member of its group with its tasks: nobody else takes them over, so their input
    waits. Pause all workers of an app to hold it still.
    """
    _order(url, token_file, "pause")


@worker_app.command()
def resume(url: UrlArgument, token_file: TokenFileOption = None) -> None:
    """Let a paused worker go on where it was."""
    _order(url, token_file, "resume")


@worker_app.command("restore-rate")
def restore_rate(
    url: UrlArgument,
    bytes_per_second: Annotated[int, typer.Argument(metavar="BYTES", min=0, help="Per second; 0: no limit.")],
    token_file: TokenFileOption = None,
) -> None:
    """Limit what a worker reads from changelogs, for restoring and for copies of other workers' state together.

    Holds until the worker ends; restore.rate.limit.bytes.per.second is what it begins with. A limit below what the app writes
    to its changelogs lets copies fall behind.
    """
    _order(url, token_file, "restore-rate", {"bytes_per_second": bytes_per_second})


def _order(
    url: str,
    token_file: Path | None,
    name: str,
    details: dict[str, int] | None = None,
    wait_seconds: float = 0.0,
) -> None:
    from streamfleet.worker.control_client import WorkerDoor, read_token

    with worker_errors_told():
        door = WorkerDoor(url, read_token(token_file))
        answer = door.order(name, details)
        if wait_seconds > 0:
            door.wait_until_drained(wait_seconds)
            print("drained: all tasks are given up, the process still answers")
        else:
            print(f"accepted: {name} (the app is {answer.get('state')})")


def load_topology(reference: str, config: StreamsConfig | None = None) -> Topology:
    """The topology that `module:name` builds or is; a StreamsBuilder is built with the configuration."""
    from streamfleet.dsl.builder import StreamsBuilder
    from streamfleet.topology.topology import Topology

    module_name, colon, name = reference.partition(":")
    if not (module_name and colon and name):
        raise CommandError(f"{reference!r} does not name a function; write module:function")
    _look_for_modules_here()
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
    _check_built_with(reference, made, config)
    return made


def _configured_topology(reference: str, config: Path | None) -> Topology:
    if config is None:
        return load_topology(reference)
    from streamfleet.worker.config_file import load_config

    _look_for_modules_here()
    return load_topology(reference, load_config(config))


def _look_for_modules_here() -> None:
    """As `python -m` does: people name modules of the project they stand in, in settings as well."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)


def _generated_text(reference: str, config: Path | None) -> str:
    from streamfleet.compiler.listing import generated_listing

    topology = _configured_topology(reference, config)
    if topology.config is not None and topology.config.topology_execution == "interpreted":
        raise CommandError("nothing is generated: topology.execution is interpreted; leave it out, or set compiled")
    return generated_listing(topology)


def _check_built_with(reference: str, topology: Topology, config: StreamsConfig | None) -> None:
    """What is done when a topology is built would silently be left out of one that is built already."""
    if config is None:
        return
    built = topology.config
    if config.optimizations and (built is None or built.optimizations != config.optimizations):
        setting = f"topology.optimization is {config.topology_optimization}"
    elif config.processor_wrapper is not None and (built is None or built.processor_wrapper is None):
        setting = f"processor.wrapper.class is {type(config.processor_wrapper).__qualname__}"
    else:
        return
    raise CommandError(
        f"{setting}, but {reference} returned a topology that was built without; return the StreamsBuilder"
    )


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
