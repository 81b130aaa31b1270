"""Membership over the broker's own streams groups (KIP-1071): the broker plans, members say what they run.

topology.py        the topology as the broker is told it
values.py          tasks, statuses and endpoints in the broker's words
heartbeat.py       the one message that members send; describe.py and group_settings.py have two more, schemas/ the field lists
client.py          what one member says to its coordinator, over lines of its own
member.py          the step machine behind a membership; phases.py has its drawing, status_watch.py what the broker complains of
membership.py      puts a streamfleet.kafka.membership.Membership together
protocol.py        what it needs from whoever knows about tasks, as a port
refusals.py        what it means when the broker will not have a member
"""
