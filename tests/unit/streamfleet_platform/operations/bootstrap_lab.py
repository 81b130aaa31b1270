"""A simulated fleet whose app declares a bootstrap, and the job's part of it, played."""

import uuid

from streamfleet_platform import views
from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.registry import apps

STORE = "activity-by-minute"
EPOCH_1 = f"one-{STORE}-e1-changelog"
STATES = ("computed", "staged", "changelog_written", "verified")
DECLARED = f"""state:
    stores: {{{STORE}: {{bootstrap: lake}}}}
    bootstraps:
      lake:
        source: {{parquet: lake/orders, key: customer, partition: p, offset: o, timestamp: ts}}
        value: {{of: {{function: count}}}}
"""


def deployed(lab):
    """An app that has run, and is stopped."""
    lab.deployed(more=DECLARED)
    lab.run(lab.operate(OperationKind.STOP).id)
    return lab


def begin(lab, **more):
    return lab.fleet.start_bootstrap(
        "one", views.BootstrapStart(name="lake", **more), actor="ann", intent_id=uuid.uuid4().hex
    )


def report(lab, run, state):
    """As the job does; it makes the topic before it says so."""
    if state == "changelog_written" and EPOCH_1 not in lab.cluster.there:
        lab.cluster.add(EPOCH_1)
    topic_id = lab.cluster.there[EPOCH_1].topic_id if EPOCH_1 in lab.cluster.there else None
    move = views.BootstrapMove(token=run.token, state=state, detail={"records": 7, "changelog_topic_id": topic_id})
    return lab.fleet.move_bootstrap("one", run.id, move, actor="ann")


def finish(lab, run, states=STATES):
    """The job works and reports while passes go on. Reports that were made are made again: they change nothing."""
    for state in states:
        lab.step()
        report(lab, run, state)
    return lab.run(run.operation)


def now(lab):
    return lab.fleet.bootstraps("one")[0]


def topics(lab):
    with lab.world.database.read() as session:
        return {row.name: row.is_orphan for row in apps.topics_of(session, "one") if row.store == STORE}
