"""Named points at which a test can make the engine fail: killed, raising, or stalled. In production they do nothing.

after_poll           records are buffered, nothing is processed
after_process        a batch is processed, nothing is committed
after_produce        results and changelog records were handed to the producer
after_flush          ... and reached the broker
after_send_offsets   offsets are in the transaction (or committed, at least once)
before_end_txn       the transaction is about to be committed
after_end_txn        it is committed; the stores are not written yet
after_store_write    the stores are written
in_restore_batch     a batch of changelog records is about to be applied
before_store_close   a task's stores are about to be closed
after_init_txn       the transactional id was taken over
after_assign         a plan was received; its tasks are opened
"""

from __future__ import annotations

from typing import Final, Protocol

FAILPOINTS: Final = (
    "after_poll",
    "after_process",
    "after_produce",
    "after_flush",
    "after_send_offsets",
    "before_end_txn",
    "after_end_txn",
    "after_store_write",
    "in_restore_batch",
    "before_store_close",
    "after_init_txn",
    "after_assign",
)


class Failpoints(Protocol):
    def hit(self, name: str) -> None:
        """Called at a named point; may raise, or not return at all."""


class NoFailpoints:
    """What production uses."""

    def hit(self, name: str) -> None:
        """Nothing happens."""
