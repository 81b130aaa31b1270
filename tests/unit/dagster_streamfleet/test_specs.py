"""What the platform hands to jobs is what they read: every spec it makes, as the driver passes it on, decoded by the job itself."""

import uuid
from dataclasses import replace

import pytest
from sqlalchemy import select
from tests.dagster_lab.source.counting import counting
from tests.unit.streamfleet_platform.simulated_world import Lab

import streamfleet as sf
from dagster_streamfleet.child_job import audit_input, command
from streamfleet_jobs.audit.spec import CHECKS, load_spec
from streamfleet_jobs.bootstrap.changelog_topic import client_settings
from streamfleet_jobs.bootstrap.spec import read_spec
from streamfleet_jobs.secrets import VARIABLES
from streamfleet_platform import OperationKind, views
from streamfleet_platform.registry.tables import InternalTopic
from streamfleet_platform.topologies.compiler import Compiled
from streamfleet_platform.topologies.lock import TopologyLock
from streamfleet_platform.views import TaskView

TEXT = {"key_serde": sf.serdes.string(), "value_serde": sf.serdes.string()}
SECURE = """\
apiVersion: streamfleet/v1
kind: Fleet
metadata: {name: lab}
spec:
  clusters:
    dev:
      bootstrap: "broker:9092"
      config: {security.protocol: SASL_PLAINTEXT, sasl.mechanism: PLAIN, sasl.username: who, sasl.password: "${w}"}
      secrets: {w: {env: LAB_W}}
  secrets: {env: [LAB_W]}
  defaults: {rollout: {gate: {restoredWithin: 1m, lagBelow: 100, for: 0s}}}
"""
BOOTSTRAP = """state:
    stores: {counts: {bootstrap: lake}}
    bootstraps:
      lake:
        source: {parquet: lake, key: word, partition: p, offset: o, timestamp: ts}
        value: {of: {function: count}}
"""


def passed_on(directory, job, spec):
    """The file that the child is given."""
    line = command(job, directory, spec, "local")
    return directory / line[line.index("--spec") + 1]


class WorldOf(Lab):
    """A fleet of one app whose topology is given."""

    def __init__(self, path, topology):
        super().__init__(path)
        self._lock = TopologyLock.from_topology_json(topology.to_json())

    def compile(self, _code, entrypoint, **_):
        return Compiled(self._lock, True, "<svg/>")


@pytest.fixture
def world(tmp_path):
    opened = []

    def deployed(topology, fleet=None, **given):
        lab = WorldOf(tmp_path, topology)
        if fleet is not None:
            (lab.source / "fleet.yaml").write_text(fleet)
        opened.append(lab)
        return lab.deployed(**given)

    yield deployed
    for lab in opened:
        lab.server.close()


def every_kind():
    """Stores of all kinds that operators make, and a repartition topic."""
    builder = sf.StreamsBuilder()
    records = builder.stream("one-in", **TEXT)
    again = records.group_by(lambda _, value: value, name="by-value", **TEXT)
    grouped = records.group_by_key(**TEXT)
    last = grouped.reduce(lambda old, new: new, store="last")
    again.windowed_by(sf.TimeWindows(size=60_000, grace=1_000)).count(store="minutes")
    grouped.windowed_by(sf.SessionWindows(gap=60_000, grace=1_000)).count(store="sessions")
    last.to_stream(name="told").to("one-out", **TEXT)
    return builder.build()


def test_an_audit_reads_the_spec_that_the_platform_makes_of_an_app(world, tmp_path):
    made = world(every_kind()).fleet.audit_spec("one").spec
    spec = load_spec(passed_on(tmp_path, "audit", audit_input(made, "audit-1", tmp_path / "result")))
    assert (spec.run_id, spec.app, spec.mode, spec.directory) == ("audit-1", "one", "deep", tmp_path / "result")
    assert {store.name: (store.kind, store.key_format) for store in spec.stores} == {
        "last": ("timestamped_key_value", "plain"),
        "minutes": ("timestamped_window", "window"),
        "sessions": ("session", "session"),
    }
    assert [topic.name for topic in spec.repartition_topics] == ["one-by-value-repartition"]
    assert {store.name: store.retention_ms for store in spec.stores} == {
        "last": None,
        "minutes": 61_000,
        "sessions": 61_000,
    }
    assert spec.checks == CHECKS


@pytest.mark.parametrize(
    ("checks", "mode", "compares"),
    [
        (("equivalence",), "deep", True),
        (("compaction", "placement"), "full", False),
        (("orphans",), "quick", False),
    ],
)
def test_the_checks_of_a_definition_say_what_is_read_and_judged(world, tmp_path, checks, mode, compares):
    lab = world(counting("one"), more=f"state: {{audit: {{checks: [{', '.join(checks)}]}}}}")
    made = lab.fleet.audit_spec("one").spec
    spec = load_spec(passed_on(tmp_path, "audit", audit_input(made, "audit-1", tmp_path / "result")))
    assert (spec.checks, spec.mode, spec.compares_stores) == (checks, mode, compares)


def test_the_login_of_a_cluster_is_passed_on_as_a_reference_with_where_it_is(world, tmp_path, monkeypatch):
    monkeypatch.setenv("LAB_W", "pa55-planted-here")
    lab = world(counting("one"), fleet=SECURE, more=BOOTSTRAP)
    audit = load_spec(passed_on(tmp_path, "audit", audit_input(lab.fleet.audit_spec("one").spec, "a", tmp_path)))
    lab.run(lab.operate(OperationKind.STOP).id)
    made = lab.fleet.start_bootstrap("one", views.BootstrapStart(name="lake"), actor="ann", intent_id="i").spec
    monkeypatch.setenv(VARIABLES, "LAB_W")
    (tmp_path / "spec.in.json").unlink()
    bootstrap = read_spec(passed_on(tmp_path, "bootstrap", made))
    for config, secrets in (
        (audit.client_config, audit.secrets),
        (bootstrap.app.client_settings, bootstrap.app.secrets),
    ):
        assert config["sasl.password"] == "${w}"
        assert secrets == {"w": {"env": "LAB_W"}}
    assert "pa55-planted-here" not in (tmp_path / "spec.in.json").read_text()
    assert audit.with_secrets().client_config["sasl.password"] == "pa55-planted-here"
    assert client_settings(bootstrap)["sasl.password"] == "pa55-planted-here"
    assert "pa55-planted-here" not in str(audit.with_secrets().storable())


def test_a_topic_that_is_no_longer_used_and_a_restore_that_is_watched_are_passed_on(world):
    lab = world(counting("one"))
    assert lab.fleet.audit_spec("one").spec["restore_records_per_second"] is None
    restoring = [(120_000, 3.0), (50_000, 1.0), (10, None), (None, None)]
    seen = lab.observer.observe

    def restores(apps):
        tasks = [
            TaskView(id=f"0_{n}", sub_topology=0, partition=n, slot=0, role="active", state="restoring",
                     restore_remaining=left, eta_seconds=eta)
            for n, (left, eta) in enumerate(restoring)
        ]  # fmt: skip
        return {name: replace(sight, placement=tuple(tasks)) for name, sight in seen(apps).items()}

    lab.observer.observe = restores
    lab.step()

    def no_longer_used(session):
        (row,) = session.scalars(select(InternalTopic))
        row.is_orphan = True

    lab.world.database.write(no_longer_used)
    spec = lab.fleet.audit_spec("one").spec
    assert spec["restore_records_per_second"] == 45_000.0
    assert (spec["stores"], spec["former_topics"]) == ([], ["one-counts-changelog"])


def test_a_bootstrap_reads_the_spec_that_the_platform_makes_of_a_declaration(world, tmp_path):
    lab = world(counting("one"), more=BOOTSTRAP)
    lab.run(lab.operate(OperationKind.STOP).id)
    run = lab.fleet.start_bootstrap("one", views.BootstrapStart(name="lake"), actor="ann", intent_id=uuid.uuid4().hex)
    spec = read_spec(passed_on(tmp_path, "bootstrap", run.spec))
    assert (spec.run_id, spec.token, spec.changelog) == (run.id, run.token, "one-counts-e1-changelog")
    assert (spec.store.kind, spec.input.topic, spec.source.key) == ("timestamped_key_value", "one-in", "word")
