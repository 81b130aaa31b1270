"""Plans of real code by the real compiler, against a registry that is empty or has what an earlier plan gave."""

from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner

from streamfleet_platform.cli import commands
from streamfleet_platform.definitions.source import Source
from streamfleet_platform.operations.work import Revisions
from streamfleet_platform.reconcile.input_counts import CountingInputs
from streamfleet_platform.reconcile.planner import Planner
from streamfleet_platform.registry.database import Database
from streamfleet_platform.registry.migrations import migrate

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FLEET = """
apiVersion: streamfleet/v1
kind: Fleet
metadata: {name: shop}
spec:
  clusters: {main: {bootstrap: "127.0.0.1:9", config: {CLUSTER}}}
"""
APP = """
apiVersion: streamfleet/v1
kind: StreamsApp
metadata: {name: orders, owner: payments}
spec:
  code: {entrypoint: "shop:topology"}
  cluster: main
  applicationId: orders
  inputs: {orders: {topic: orders}}
  topology: {lock: orders.lock.json}
  run: {config: {APP}}
"""
CODE = """
import streamfleet as sf

text = sf.serdes.string()


def topology():
    builder = sf.StreamsBuilder()
    builder.stream("orders", key_serde=text, value_serde=text).group_by_key().count(store="counts")
    return builder
"""


@pytest.fixture
def shop(tmp_path):
    """Writes what is given, and plans it."""
    (tmp_path / "source" / "apps").mkdir(parents=True)
    (tmp_path / "source" / "shop.py").write_text(CODE)
    database = Database(f"sqlite:///{tmp_path}/registry.db")
    migrate(database)
    inputs = CountingInputs(database, Revisions(database), lambda _: pytest.fail("there is no app to ask about"))
    planner = Planner(Source(tmp_path / "source"), database, tmp_path / "code", lambda: NOW, inputs)

    def plan(*, of_app="", of_cluster="", locks=False):
        (tmp_path / "source" / "fleet.yaml").write_text(FLEET.replace("CLUSTER", of_cluster))
        (tmp_path / "source" / "apps" / "orders.yaml").write_text(APP.replace("{APP}", "{" + of_app + "}"))
        if locks:
            done = CliRunner().invoke(commands, ["lock", "--source", str(tmp_path / "source")], catch_exceptions=False)
            assert done.exit_code == 0, done.output
        return planner.plan(None)

    yield plan
    database.close()


@pytest.mark.parametrize(
    "setting",
    [
        "dsl.store.suppliers.class: in_memory",
        "topic.segment.ms: 60000",
        "topology.optimization: all",
        "commit.interval.ms: 500",
    ],
)
def test_a_lock_that_the_command_line_writes_is_what_a_plan_finds(shop, setting):
    for where in ({"of_app": setting}, {"of_cluster": setting}):
        planned = shop(**where, locks=True)
        assert [change.blocked for change in planned.view.changes] == [None], planned.view


def test_a_setting_that_the_topology_is_built_with_is_part_of_the_lock(shop):
    plain = shop(locks=True).revisions["orders"].topology_hash
    assert shop(of_app="commit.interval.ms: 500").revisions["orders"].topology_hash == plain
    [change] = shop(of_cluster="dsl.store.suppliers.class: in_memory").view.changes
    assert "has hash" in change.blocked and "streamfleet lock orders" in change.blocked
