"""`make up` and `make down`: the broker, the example app's results, and a page to look at.

Each step says what it does. `up` may be repeated: what runs is left alone, the page is written anew.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table as RichTable

from examples.demo import live_orders, page, page_server
from examples.demo.live_orders import LiveOrders, NotReadyError
from examples.demo.run_orders import Demonstration, Table, demonstrate
from streamfleet_devbroker import BrokerError, PortTakenError
from streamfleet_devbroker.ports import free_ports
from streamfleet_devbroker.service import BrokerService

BUILD = Path(__file__).resolve().parents[2] / "build" / "up"

console = Console()


def up(directory: Path) -> None:
    """Broker, results, page, and the link to it."""
    bootstrap_servers = start_broker()
    say("running the orders app on its sample records, in the test driver")
    demonstration = demonstrate()
    app = LiveOrders(bootstrap_servers, _worker_directory(directory))
    say("running it on the broker: a worker process, its topics and the sample records")
    worker = app.start()
    live = app.results()
    show(demonstration, live)
    url = publish(page.render(demonstration, live, bootstrap_servers, worker), demonstration.picture, directory)
    console.print(
        f"\n  page    [bold]{url}[/bold]\n  worker  [bold]http://{worker}/status[/bold]\n"
        f"  broker  [bold]{bootstrap_servers}[/bold]\n  stop    make down\n"
    )


def down(directory: Path) -> None:
    """End what `up` started; the broker's data stays."""
    say("stopping the worker" if live_orders.stop(_worker_directory(directory)) else "no worker runs")
    say("stopping the page" if page_server.stop(_record(directory)) else "no page is served")
    BrokerService().stop(say)


def start_broker() -> str:
    """The address of the development broker, on another port when its own is taken by somebody else."""
    service = BrokerService()
    try:
        status = service.start(say)
    except PortTakenError as error:
        port = free_ports(1)[0]
        say(f"{error.fact}: taking {port} instead")
        status = service.start(say, port=port)
    assert status.asked is not None
    return status.asked.bootstrap_servers


def show(demonstration: Demonstration, live: tuple[Table, ...]) -> None:
    console.print(demonstration.description, markup=False, highlight=False)
    for table in live:
        console.print(_rich(table))


def publish(html: str, picture: str, directory: Path) -> str:
    """Write the page and its picture, and return the address under which they are served."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "orders.svg").write_text(picture, "utf-8")
    (directory / "index.html").write_text(html, "utf-8")
    return page_server.ensure_started(directory, _record(directory))


def _worker_directory(directory: Path) -> Path:
    return directory.with_name(f"{directory.name}-worker")


def _record(directory: Path) -> Path:
    return directory.with_name(f"{directory.name}-server.json")  # beside the pages: it is not one of them


def _rich(table: Table) -> RichTable:
    shown = RichTable(title=table.title, title_justify="left")
    for column in table.columns:
        shown.add_column(column)
    for row in table.rows:
        shown.add_row(*row)
    return shown


def say(message: str) -> None:
    print(f"== {message}", flush=True)


def main(arguments: list[str]) -> int:
    commands = {"up": up, "down": down}
    if len(arguments) not in (1, 2) or arguments[0] not in commands:
        print("usage: python -m examples.demo up|down [DIRECTORY]", file=sys.stderr)
        return 2
    try:
        commands[arguments[0]](Path(arguments[1]).resolve() if len(arguments) == 2 else BUILD)
    except (BrokerError, NotReadyError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
