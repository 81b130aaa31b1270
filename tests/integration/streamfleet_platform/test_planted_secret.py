"""A secret that an app is given is in no file, no answer, no log and no command line, even where the app's own code prints its
environment.
"""

from contextlib import suppress
from pathlib import Path

import pytest
from tests.integration.streamfleet_platform.real_fleet import RealFleet

from streamfleet_platform.client import FleetClient

PLANTED = "planted-swordfish-7741"


@pytest.fixture
def fleet(broker, tmp_path, monkeypatch):
    monkeypatch.setenv("PLANTED_PASSWORD", PLANTED)
    fleet = RealFleet(tmp_path, broker.bootstrap_servers)
    definitions = fleet.source / "fleet.yaml"
    definitions.write_text(definitions.read_text() + "  secrets: {env: [PLANTED_PASSWORD]}\n")
    app = fleet.source / "apps" / f"{fleet.name}.yaml"
    app.write_text(
        app.read_text()
        + '  run: {config: {sasl.username: who, sasl.password: "${word}"}, secrets: {word: {env: PLANTED_PASSWORD}}}\n'
    )
    code = fleet.source / "words.py"
    code.write_text("import os\n\nprint('environment', dict(os.environ))\n" + code.read_text())
    yield fleet
    fleet.close()


def answers(client: FleetClient, app: str) -> str:
    told = [client.fleet(), client.apps(), client.app(app), client.provenance(app), client.events(), client.plan()]
    told += [client.operation(each.id) for each in client.operations(app)]
    return "\n".join([*map(str, told), client.logs(app, 0, 5000), client.topology_svg(app)])


def command_lines() -> list[bytes]:
    """Of every process of the machine: anybody can read them."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            found.append((process / "cmdline").read_bytes())
    return found


def test_a_planted_secret_is_nowhere(fleet):
    fleet.deployed()
    fleet.send()
    fleet.assert_counts_are_exact()
    log = fleet.client.logs(fleet.name, 0, 5000)
    assert "environment" in log and "***" in log, log
    assert PLANTED not in answers(fleet.client, fleet.name)
    lines = command_lines()
    assert any(str(fleet.data).encode() in line for line in lines) and not any(
        PLANTED.encode() in line for line in lines
    )
    files = [path for path in fleet.data.parent.rglob("*") if path.is_file()]
    assert any(path.name == "registry.db" for path in files) and any(path.name == "server.log" for path in files)
    assert [path for path in files if PLANTED.encode() in path.read_bytes()] == []
