"""Who runs which Task: what a member reports, what the leader decides, and the bytes in between.

    snapshot.py           the values: tasks, reports, the group as the leader sees it, the assignment
    user_data.py          reports and plans as bytes, versioned; directory.py, packed_tasks.py are parts of it
    group_assignment.py   assign(snapshot) -> assignment: pure, so it can also be run to see what would happen
        runnable.py, application_state.py      which tasks there are, and what is known of the processes
        task_assignor.py, validation.py        the contract with whoever decides, and whether it was kept
        high_availability.py, sticky.py        the two that decide; their parts are placing.py, balance.py, load_order.py,
                                               standbys.py, movements.py, racks.py, standby_racks.py
        threads.py, handover.py                which thread, and what of it now
    building_blocks.py    parts for an app's own TaskAssignor; assignor_names.py finds it
    cluster_facts.py      what the leader asks the cluster first
    slot_memory.py        what a thread had, over a restart
    streams_protocol.py   all together, as the port that streamfleet.kafka.membership calls
    broker_plans.py       where the broker decides instead: its words in ours

Not here: the group protocol itself (streamfleet.kafka), and what a StreamThread does with its plan.
"""

from streamfleet.assignment.group_assignment import assign
from streamfleet.assignment.high_availability import HighAvailabilityTaskAssignor
from streamfleet.assignment.snapshot import (
    AssignorSettings,
    GroupAssignment,
    Member,
    MemberAssignment,
    MemberReport,
    Snapshot,
    SubTopologyInfo,
    TaskKey,
)
from streamfleet.assignment.sticky import StickyTaskAssignor
from streamfleet.assignment.task_assignor import (
    ApplicationState,
    AssignmentError,
    ProcessAssignment,
    ProcessState,
    TaskAssignment,
    TaskAssignor,
    TaskInfo,
)

__all__ = [
    "ApplicationState",
    "AssignmentError",
    "AssignorSettings",
    "GroupAssignment",
    "HighAvailabilityTaskAssignor",
    "Member",
    "MemberAssignment",
    "MemberReport",
    "ProcessAssignment",
    "ProcessState",
    "Snapshot",
    "StickyTaskAssignor",
    "SubTopologyInfo",
    "TaskAssignment",
    "TaskAssignor",
    "TaskInfo",
    "TaskKey",
    "assign",
]
