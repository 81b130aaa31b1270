"""`streamfleet run` and `streamfleet worker reset` as commands: what is wrong is one sentence and an exit code."""

import logging
import sys

import pytest
import structlog
from typer.testing import CliRunner

from streamfleet.cli import app

APP = """
import streamfleet as sf

def builder():
    made = sf.StreamsBuilder()
    made.stream("orders").to("results")
    return made

made = builder()
topology = made.build()

def broken():
    made = sf.StreamsBuilder()
    made.stream("orders").group_by_key().count(store="x")
    made.stream("others").group_by_key().count(store="x")
    return made.build()
"""


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    """A directory with an app in it, which the command is run in; logs are as before afterwards."""
    (tmp_path / "till_app.py").write_text(APP)
    (tmp_path / "app.yaml").write_text("application.id: till\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    root, kafka = logging.getLogger(), logging.getLogger("kafka")
    before = (list(root.handlers), root.level, kafka.level)
    yield tmp_path
    sys.modules.pop("till_app", None)
    structlog.reset_defaults()
    root.handlers[:], level, kafka_level = before
    root.setLevel(level)
    kafka.setLevel(kafka_level)


def run(*arguments):
    return CliRunner().invoke(app, [*arguments, "--config", "app.yaml", "--state-dir", "state"])


def assert_refused(result, code, reason):
    assert result.exit_code == code
    last = result.stderr.splitlines()[-1]
    assert last.startswith("error: ")
    assert reason in last
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("reference", "code", "reason"),
    [
        ("till_app", 2, "write module:function"),
        ("no_such_module:topology", 2, "cannot be imported"),
        ("till_app:nothing", 2, "has no function nothing"),
        ("till_app:broken", 1, "x"),
    ],
)
def test_an_app_that_cannot_be_loaded(reference, code, reason):
    assert_refused(run("run", reference), code, reason)


@pytest.mark.parametrize("name", ["builder", "made", "topology"])
def test_a_function_a_builder_and_a_topology_may_be_named(name):
    assert_refused(run("run", f"till_app:{name}"), 2, "bootstrap.servers is missing")


def test_a_wrong_setting_is_exit_code_2(project):
    (project / "app.yaml").write_text("application.id: till\nnum.stream.threads: many\n")
    assert_refused(run("run", "till_app:topology"), 2, "num.stream.threads cannot be 'many'")


def test_a_wrong_address_is_exit_code_2():
    assert_refused(run("run", "till_app:topology", "--http", "nowhere"), 2, "write host:port")


def test_options_that_are_missing_or_unknown_are_exit_code_2():
    assert CliRunner().invoke(app, ["run", "till_app:topology"]).exit_code == 2
    assert run("run", "till_app:topology", "--log-format", "xml").exit_code == 2


def test_a_reset_without_brokers_is_exit_code_2():
    assert_refused(run("worker", "reset"), 2, "bootstrap.servers is missing")


@pytest.mark.parametrize("command", [["run"], ["worker", "reset"]])
def test_help_teaches(command):
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert "MODULE:FUNCTION" in result.stdout
    assert "--config" in result.stdout
