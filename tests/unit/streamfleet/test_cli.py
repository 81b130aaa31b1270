"""`streamfleet topology`: results on standard output, reasons on standard error, exit codes a script can use."""

import json
import sys

import pytest
from typer.testing import CliRunner

from streamfleet.cli import app
from streamfleet.compiler.code_generator import CodeGenerator

APP = """
import streamfleet as sf
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

class Untouched(sf.ProcessorWrapper):
    def wrap(self, name, supplier):
        return lambda: supplier()

def words():
    made = StreamsBuilder()
    made.global_table("names", store="names")
    stream = made.stream("orders").filter(lambda k, v: True, name="large").map_values(len, name="length")
    counts = stream.group_by(lambda k, v: v, name="by-length").count(store="counts")
    counts.to_stream().to("results", name="done")
    made.table("customers", store="customers").to_stream().to("copies")
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


def test_generated_prints_the_text_of_every_program_under_a_heading():
    result = run("--generated", "shop_app:words")
    assert (result.exit_code, result.stderr) == (0, "")
    headings = [line for line in result.stdout.splitlines() if line.startswith("# ") and ": reads " in line]
    assert [line.partition(":")[0] for line in headings] == [
        "# sub-topology 1",
        "# sub-topology 2",
        "# sub-topology 3",
        "# global stores",
    ]
    assert "# in the text: large, length, by-length" in result.stdout
    assert " # large\n" in result.stdout
    compile(result.stdout, "listing", "exec")


def test_what_is_printed_is_the_text_that_a_task_runs():
    printed = run("--generated", "shop_app:words").stdout
    topology = sys.modules["shop_app"].words().build()
    for sub_topology in (1, 2, 3):
        assert CodeGenerator(topology.processor_topology("another-id", sub_topology)).generate().text in printed


def test_generated_is_written_with_the_settings_that_are_named(project):
    lines = "application.id: shop\nbootstrap.servers: x:1\n"
    (project / "wrapped.yaml").write_text(lines + "processor.wrapper.class: shop_app:Untouched\n")
    wrapped = run("--generated", "shop_app:words", "--config", "wrapped.yaml")
    assert wrapped.exit_code == 0
    assert "# in the text: none" in wrapped.stdout and "# in the text: large" not in wrapped.stdout
    (project / "all.yaml").write_text(lines + "topology.optimization: all\n")
    assert run("--generated", "shop_app:words", "-c", "all.yaml").exit_code == 0
    (project / "plain.yaml").write_text(lines + "topology.execution: interpreted\n")
    refused = run("--generated", "shop_app:words", "--config", "plain.yaml")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "topology.execution is interpreted" in refused.stderr


@pytest.mark.parametrize("command", [["run"], ["worker", "reset"]])
def test_settings_may_name_what_lies_where_the_command_is_run(project, command):
    lines = "application.id: shop\nbootstrap.servers: x:1\nprocessor.wrapper.class: shop_app:Untouched\n"
    (project / "wrapped.yaml").write_text(lines)
    result = CliRunner().invoke(app, [*command, "shop_app:nothing", "--config=wrapped.yaml"])
    assert result.exit_code == 2
    assert "the module shop_app has no function nothing" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--generated", "shop_app:nothing"], "the module shop_app has no function nothing"),
        (["--generated", "shop_app:words", "describe", "shop_app:words"], "leave out describe"),
        (["--config", "app.yaml", "describe", "shop_app:words"], "write it behind the command"),
        (["--generated", "shop_app:words", "--config", "no.yaml"], "no.yaml"),
    ],
)
def test_generated_where_it_makes_no_sense_is_one_sentence(arguments, reason):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: ") and reason in result.stderr


def test_help_of_topology_names_generated_and_all_commands():
    for arguments in ([], ["--help"]):
        text = run(*arguments).stdout
        assert all(word in text for word in ("--generated", "describe", "svg", "json", "plan"))
