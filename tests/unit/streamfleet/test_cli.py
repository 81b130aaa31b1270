"""`streamfleet topology`: results on standard output, reasons on standard error, exit codes a script can use."""

import json
import sys

import pytest
from typer.testing import CliRunner

from streamfleet.cli import app

APP = """
from streamfleet.processor.api import Processor
from streamfleet import StreamsBuilder
from streamfleet.topology.topology import Topology

class Pass(Processor):
    def process(self, record):
        self.context.forward(record)

def topology():
    built = Topology()
    built.add_source("in", "orders")
    built.add_processor("pass", Pass, "in")
    built.add_sink("out", "results", "pass")
    return built

def builder():
    made = StreamsBuilder()
    made.table("customers", store="customers")
    return made

def not_a_topology():
    return 42

def broken():
    return topology().add_sink("again", "results", "nobody")
"""


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    """A directory with an app in it, which the command is run in."""
    (tmp_path / "shop_app.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("shop_app", None)


def run(*arguments: str):
    return CliRunner().invoke(app, ["topology", *arguments])


def test_describe_prints_the_text_of_kafka_streams():
    result = run("describe", "shop_app:topology")
    assert result.exit_code == 0
    assert result.stdout.startswith("Topologies:\n   Sub-topology: 0\n    Source: in (topics: [orders])")


def test_svg_goes_to_a_file_that_is_named(project):
    result = run("svg", "shop_app:topology", "--output", "picture.svg")
    assert result.exit_code == 0
    assert result.stdout == ""
    assert "picture.svg" in result.stderr
    assert (project / "picture.svg").read_text().lstrip().startswith("<svg")


def test_json_is_json():
    result = run("json", "shop_app:topology")
    assert result.exit_code == 0
    assert json.loads(result.stdout)


def test_plan_tells_the_tasks_of_every_sub_topology():
    result = run("plan", "shop_app:topology", "-p", "orders=3")
    assert result.exit_code == 0
    assert "sub-topology 0: 3 tasks 0_0 .. 0_2" in result.stdout


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("shop_app", "does not name a function; write module:function"),
        ("no_such_module:topology", "the module no_such_module cannot be imported"),
        ("shop_app:nothing", "the module shop_app has no function nothing"),
        ("shop_app:not_a_topology", "returned a int; it has to return a Topology"),
        ("shop_app:broken", "nobody"),
    ],
)
def test_what_cannot_be_loaded_is_one_sentence_and_exit_code_1(reference, reason):
    result = run("describe", reference)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert reason in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.fixture
def optimized(project):
    (project / "app.yaml").write_text("application.id: shop\nbootstrap.servers: x:1\ntopology.optimization: all\n")
    return "app.yaml"


def test_a_builder_is_built_with_the_settings_that_are_named(optimized):
    plain, rewritten = run("json", "shop_app:builder"), run("json", "shop_app:builder", "--config", optimized)
    stores = [json.loads(result.stdout)["stores"]["customers"] for result in (plain, rewritten)]
    assert [store["changelog"] for store in stores] == ["customers-changelog", "customers"]
    planned = run("plan", "shop_app:builder", "-p", "customers=3", "--config", optimized).stdout
    assert "internal topic" not in planned
    assert "stores  customers" in planned


def test_an_optimization_that_comes_too_late_is_refused(optimized):
    result = run("describe", "shop_app:topology", "--config", optimized)
    assert result.exit_code == 1
    assert "topology.optimization is all" in result.stderr
    assert "return the StreamsBuilder" in result.stderr


@pytest.mark.parametrize("text", ["orders", "orders=many", "=3"])
def test_a_partition_count_that_is_none_is_refused(text):
    result = run("plan", "shop_app:topology", "-p", text)
    assert result.exit_code == 1
    assert "write topic=number" in result.stderr


def test_a_file_that_cannot_be_written_is_named():
    result = run("json", "shop_app:topology", "-o", "no/such/directory/topology.json")
    assert result.exit_code == 1
    assert "no/such/directory/topology.json cannot be written" in result.stderr


def test_help_teaches_the_form_of_the_argument():
    result = run("describe", "--help")
    assert result.exit_code == 0
    assert "MODULE:FUNCTION" in result.stdout
