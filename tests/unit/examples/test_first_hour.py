"""What docs/first-hour.md shows works as it stands there: its apps pass its tests."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import streamfleet as sf
from streamfleet.cli import app as command_line
from streamfleet.worker.config_file import load_config

PAGE = (Path(__file__).resolve().parents[3] / "docs/first-hour.md").read_text("utf-8")


@pytest.fixture(scope="module")
def page():
    names: dict = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(code, names)
    return names


@pytest.mark.parametrize("name", re.findall(r"^def (test_\w+)", PAGE, re.MULTILINE))
def test_a_test_of_the_page_passes(page, name):
    page[name]()


@pytest.mark.parametrize("app", re.findall(r"^def (\w+)\(\) -> sf.Topology", PAGE, re.MULTILINE))
def test_an_app_of_the_page_keeps_its_state_when_it_is_edited(page, app):
    topology = page[app]()
    assert isinstance(topology, sf.Topology)
    assert not re.findall(r"(?:STATE-STORE|repartition)-\d{10}|-\d{10}-repartition", topology.to_json())


def test_every_app_of_the_page_has_a_test():
    assert len(re.findall(r"-> sf.Topology", PAGE)) == len(re.findall(r"^def test_", PAGE, re.MULTILINE)) == 3


@pytest.fixture
def section_4(tmp_path, monkeypatch):
    """A directory with the third app in `named_orders.py`, and the commands of the page, by their first word."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (third,) = (block for block in blocks if "def named_orders" in block)
    (tmp_path / "named_orders.py").write_text(third)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (block,) = re.findall(r"```\n(streamfleet broker start.*?)```", PAGE, re.DOTALL)
    yield block.splitlines()
    sys.modules.pop("named_orders", None)


def test_the_commands_of_section_4_are_right_as_far_as_no_broker_is_needed(section_4, monkeypatch):
    """The file, the settings, the arguments; the run itself is in the integration tests."""
    started = []

    class Run:
        def __init__(self, config, state_dir, *_):
            self.config, self.state_dir = load_config(config), state_dir

        def run(self, load):
            started.append((load(self.config), self.config, str(self.state_dir)))
            return 0

    monkeypatch.setattr("streamfleet.worker.commands.RunCommand", Run)
    broker, settings, run, _ = section_4
    assert broker.split("#")[0].split() == ["streamfleet", "broker", "start"]
    subprocess.run(["/bin/sh", "-c", settings], check=True)
    result = CliRunner().invoke(command_line, shlex.split(run)[1:])
    assert result.exit_code == 0, result.stderr
    ((topology, config, state_dir),) = started
    assert set(topology.plan({"orders": 2, "customers": 2}, config).sub_topologies) == {0, 1}
    assert (config.application_id, config.processing_guarantee, state_dir) == (
        "named-orders",
        "exactly_once_v2",
        "state",
    )
