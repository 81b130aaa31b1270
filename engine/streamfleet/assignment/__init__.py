"""Who runs which Task: what a member reports, what the leader decides, and the bytes in between.

    snapshot.py          the values: tasks, reports, the group as the leader sees it, the assignment
    user_data.py         reports and plans as bytes, versioned
    sticky.py            assign(snapshot) -> assignment: pure, so it can also be run to see what would happen;
                         runnable.py (which tasks), placement.py (where), standbys.py (where copies)
    streams_protocol.py  the three together, as the port that streamfleet.kafka.membership calls

Not here: the group protocol itself (streamfleet.kafka), and what a StreamThread does with its plan.
"""
