"""What the platform hands to jobs is what they read: every spec it makes, as the driver passes it on, decoded by the job itself."""

import uuid

import pytest
from tests.dagster_lab.source.counting import counting
from tests.unit.streamfleet_platform.simulated_world import Lab

import streamfleet as sf
from dagster_streamfleet.child_job import audit_input, command
from streamfleet_jobs.audit.spec import load_spec
from streamfleet_jobs.bootstrap.spec import read_spec
from streamfleet_platform import OperationKind, views
from streamfleet_platform.topologies.compiler import Compiled
from streamfleet_platform.topologies.lock import TopologyLock

TEXT = {"key_serde": sf.serdes.string(), "value_serde": sf.serdes.string()}
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

    def deployed(topology, **given):
        lab = WorldOf(tmp_path, topology)
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


def test_a_bootstrap_reads_the_spec_that_the_platform_makes_of_a_declaration(world, tmp_path):
    lab = world(counting("one"), more=BOOTSTRAP)
    lab.run(lab.operate(OperationKind.STOP).id)
    run = lab.fleet.start_bootstrap("one", views.BootstrapStart(name="lake"), actor="ann", intent_id=uuid.uuid4().hex)
    spec = read_spec(passed_on(tmp_path, "bootstrap", run.spec))
    assert (spec.run_id, spec.token, spec.changelog) == (run.id, run.token, "one-counts-e1-changelog")
    assert (spec.store.kind, spec.input.topic, spec.source.key) == ("timestamped_key_value", "one-in", "word")
