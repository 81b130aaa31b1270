"""Who has sent a record that did not reach its topic. Called by both commits, which send for all tasks of a thread together.

A record does not carry its sender: it would cost every record something, for the few that are refused later. A changelog partition
has one writer. A topic of a sink may have several, the tasks of one SubTopology; then nobody knows, and that is said.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from streamfleet.errors import StreamsError
from streamfleet.ids import TopicPartition
from streamfleet.ports import DeliveryFailure
from streamfleet.records import ProducerRecord
from streamfleet.task.stream_task import StreamTask

log = structlog.get_logger(__name__)


def possible_senders(record: ProducerRecord, tasks: Sequence[StreamTask]) -> list[StreamTask]:
    """Those that write to its changelog partition; else to its topic; else, of a dead letter, all."""
    if record.partition is not None:
        place = TopicPartition(record.topic, record.partition)
        writers = [task for task in tasks if place in task.changelogs.values()]
        if writers:
            return writers
    return [task for task in tasks if task.may_send_to(record.topic)] or list(tasks)


def ask_sender(failure: DeliveryFailure, tasks: Sequence[StreamTask]) -> None:
    """Let the production handler decide, in the name of the task that has sent the record. Raises if it says FAIL."""
    senders = possible_senders(failure.record, tasks)
    if len(senders) == 1:
        senders[0].handle_delivery_failure(failure.record, failure.error)
        return
    names = [str(task.task_id) for task in senders]
    log.warning(
        "a record did not reach its topic; one of these tasks has sent it", topic=failure.record.topic, tasks=names
    )
    try:
        senders[0].handle_delivery_failure(failure.record, failure.error)
    except StreamsError as error:
        error.add_note(f"the record was sent by one of the tasks {', '.join(names)}; which one is not known")
        raise
