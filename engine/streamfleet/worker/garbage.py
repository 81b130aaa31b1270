"""How often Python looks for cyclic garbage while a worker runs. Called by the process around its whole life.

Python looks after every 700 objects that were made and still live. A batch of polled records is more than that, so the collector
looked at each one, in vain: records form no cycles. What a worker has loaded when it starts stays until it ends, and need not be
looked at at all.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def looked_for_seldom(threshold: int) -> Iterator[None]:
    """After `threshold` objects, and not among those that are there now; 0 leaves Python's own ways."""
    if threshold == 0:
        yield
        return
    young, *older = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(threshold, *older)
    try:
        yield
    finally:
        gc.set_threshold(young, *older)
        gc.unfreeze()
