"""The server is killed before and after every journalled step of every operation: the next one resumes. Also of those that fail and
go back, and of those that somebody calls off. Bootstraps, which a job has a part in, are in test_bootstrap_kills.py.

The steps are not written down here: each operation is run once to see which moments there are, then once per moment.
"""

import contextlib
from dataclasses import replace

import pytest
from tests.unit.streamfleet_platform.registry.conftest import postgres as postgres_server
from tests.unit.streamfleet_platform.simulated_world import Killed, Lab

from streamfleet_platform import views
from streamfleet_platform.errors import NotFoundError
from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.operations.journal import MOMENTS
from streamfleet_platform.registry.database import Database


class Counter:
    """Kills at the nth moment; None: only writes the moments down."""

    def __init__(self, at=None):
        self.at = at
        self.seen = []

    def __call__(self, kind, step, moment):
        self.seen.append((kind, step, moment))
        if len(self.seen) - 1 == self.at:
            raise Killed


class Case:
    """What is prepared once, what is asked for then, and how it ends."""

    def __init__(self, name, prepare, begin, ends="succeeded", meanwhile=lambda lab, operation: None):
        self.name, self.prepare, self.begin, self.ends, self.meanwhile = name, prepare, begin, ends, meanwhile


def declared(lab):
    lab.declare(min=1)
    lab.start()


def running(slots, entry=None):
    def prepare(lab):
        lab.deployed(min=1)
        if slots > 1:
            lab.run(lab.operate(OperationKind.SCALE, slots=slots).id)
        if entry is not None:
            lab.declare(min=1, entry=entry)

    return prepare


def stopped(lab):
    running(2)(lab)
    lab.run(lab.operate(STOP).id)


def warmed_up(lab):
    """A copy of a task is ready where it is to run."""
    running(2)(lab)
    lab.observer.warm_ups = {0: (1, 0)}
    lab.step()


def sick(former):
    """The next revision's workers do not become well."""

    def prepare(lab):
        former(lab)
        lab.observer.sick.add(lab.fleet.plan(views.SourceRequest()).revision)

    return prepare


def late(lab, operation):
    """Time passes, so that a gate fails."""
    if lab.fleet.operation(operation).state == "running":
        lab.clock.advance(10)


def call_off(lab, operation):
    found = lab.fleet.operation(operation)
    if found.state == "running" and "cancelled_by" not in found.params and "called off" not in (found.error or ""):
        lab.fleet.cancel(operation, actor="eve")


def deploy(lab):
    return lab.apply().operations[0].id


def operate(kind, **params):
    return lambda lab: lab.operate(kind, **params).id


SCALE, UPGRADE, RESET, RETIRE = OperationKind.SCALE, OperationKind.UPGRADE, OperationKind.RESET, OperationKind.RETIRE
START, STOP, PROBE = OperationKind.START, OperationKind.STOP, OperationKind.PROBE
CASES = [
    Case("deploy", declared, deploy),
    Case("deploy-called-off", sick(declared), deploy, "rolled_back", call_off),
    Case("scale-out", running(1), operate(SCALE, slots=2)),
    Case("scale-in", running(2), operate(SCALE, slots=1)),
    Case("upgrade", running(1, "rolling"), operate(UPGRADE)),
    Case("upgrade-goes-back", sick(running(2, "rolling")), operate(UPGRADE), "rolled_back", late),
    Case("upgrade-restarts-all", running(2, "restart"), operate(UPGRADE)),
    Case("upgrade-that-restarts-all-goes-back", sick(running(2, "restart")), operate(UPGRADE), "rolled_back", late),
    Case("upgrade-alters-settings", running(1, "settings"), operate(UPGRADE)),
    Case("upgrade-that-alters-settings-goes-back", sick(running(1, "settings")), operate(UPGRADE), "rolled_back", late),
    Case("upgrade-without-state", running(1, "lossy"), operate(UPGRADE, accept_lost_state=True)),
    Case("reset", running(1), operate(RESET, confirm="one")),
    Case("start", stopped, operate(START)),
    Case("stop", running(2), operate(STOP)),
    Case("probe", warmed_up, operate(PROBE)),
    Case("retire", running(1), operate(RETIRE, confirm="one", undo_window_seconds=0)),
]


def run(lab, case, at=None):
    """The moments the operation had, and the pids of workers before it."""
    counter = Counter(at)
    lab.start(failpoint=counter)
    operation = case.begin(lab)
    before = lab.pids()
    try:
        drive(lab, case, operation)
    except Killed:
        during = lab.pids()
        lab.kill()
        assert lab.pids() == during, "workers go on without a server"
        lab.start()
        drive(lab, case, operation)
    assert lab.fleet.operation(operation).state == case.ends
    lab.step()
    return counter.seen, before


def drive(lab, case, operation):
    for _ in range(200):
        if lab.fleet.operation(operation).state.is_over:
            return
        case.meanwhile(lab, operation)
        lab.step()
    raise AssertionError(f"not over: {lab.fleet.operation(operation)}")


def outcome(lab):
    """What is to be the same, however often the server died."""
    topics = sorted(lab.cluster.there)
    workers = [(w.slot, w.phase.value, w.revision) for w in lab.runtime.list("one")]
    found = [topics, lab.cluster.settings, workers, sorted(lab.cluster.offsets), lab.observer.placed]
    with contextlib.suppress(NotFoundError):
        app = lab.fleet.app("one")
        found += [app.phase, app.slots, app.revision, app.generation, app.desired, app.drift_details]
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_server_killed_at_any_step_is_resumed_by_the_next(tmp_path, case):
    template = Lab(tmp_path / "template")
    case.prepare(template)
    template.kill()
    kill_at_every_moment(case, lambda name: template.copied(tmp_path / name))


postgres = postgres_server


def test_on_postgres_too(tmp_path, postgres):
    case = next(case for case in CASES if case.name == "scale-out")
    template = Lab(tmp_path / "template", registry=new_database(postgres, "template_lab", "template1"))
    case.prepare(template)
    template.kill()

    def copy(name):
        lab = template.copied(tmp_path / name)
        lab.settings = replace(lab.settings, registry=new_database(postgres, f"lab_{name}", "template_lab"))
        return lab

    kill_at_every_moment(case, copy, only=("done",))  # each database is a copy on disk


def new_database(server, name, template):
    admin = Database(server)
    with admin.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE {template}")
    admin.close()
    return server.removesuffix("/postgres") + f"/{name}"


def kill_at_every_moment(case, copy, only=MOMENTS):
    """`copy` gives what was prepared once more."""
    whole = copy("whole")
    moments, _ = run(whole, case)
    expected, starts = outcome(whole), begun(whole)
    assert len(moments) >= 7
    for at in sorted(at for at in first_and_last(moments) if moments[at][2] in only):
        lab = copy(f"{at}")
        seen, pids = run(lab, case, at)
        assert outcome(lab) == expected, f"killed at {seen[-1]}"
        if case.name.startswith(("scale", "probe")):
            kept = {slot: pid for slot, pid in pids.items() if slot in lab.pids()}
            assert kept == {slot: lab.pids()[slot] for slot in kept}, "workers that stay never noticed"
        assert begun(lab) <= starts + 1
        lab.server.close()
    whole.server.close()
    print(f"{case.name}: killed at {len(first_and_last(moments))} moments")


def first_and_last(moments):
    """Of each one: a step that waits comes there in every pass, and does the same."""
    first = {moment: at for at, moment in reversed(list(enumerate(moments)))}
    return {*first.values(), *{moment: at for at, moment in enumerate(moments)}.values()}


def begun(lab):
    return len([call for call in lab.runtime.calls if call[0] == "start"])
