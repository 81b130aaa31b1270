"""The command `streamfleet`: one entry point that offers what is installed.

`topology` needs the engine only; `broker` comes from the development broker where that is installed. Progress and
errors go to standard error, results to standard output. Exit codes: 0 done, 1 refused with a reason, 2 misused.
What a command does lives in the package it is about; here are only the arguments, the help and the errors as sentences.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    help="Kafka Streams in Python: look at a topology, and run a development broker.",
)
topology_app = typer.Typer(
    no_args_is_help=True,
    help="Look at a topology without a broker: as text, as a picture, as JSON, and what it needs from Kafka.",
)
app.add_typer(topology_app, name="topology")

TopologyArgument = Annotated[
    str,
    typer.Argument(
        metavar="MODULE:FUNCTION",
        help="A function without arguments that returns the Topology, such as examples.apps.orders:topology. "
        "Modules are looked up in the current directory too.",
    ),
]
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


def load_topology(reference: str) -> Topology:
    """The topology that `module:function` builds."""
    from streamfleet.topology.topology import Topology

    module_name, colon, function_name = reference.partition(":")
    if not (module_name and colon and function_name):
        raise CommandError(f"{reference!r} does not name a function; write module:function")
    sys.path.insert(0, str(Path.cwd()))  # as `python -m` does: people name modules of the project they stand in
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise CommandError(f"the module {module_name} cannot be imported ({error}); run this where it lies") from error
    function = getattr(module, function_name, None)
    if not callable(function):
        raise CommandError(f"the module {module_name} has no function {function_name}")
    topology = function()
    if not isinstance(topology, Topology):
        raise CommandError(f"{reference} returned a {type(topology).__name__}; it has to return a Topology")
    return topology


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
