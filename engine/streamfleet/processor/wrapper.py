"""ProcessorWrapper: an app's own hands around every processor of its topology, those of the DSL's operators included.

Set by `processor.wrapper.class`, and called by Topology for every processor that is added to it. For measuring, tracing, or
checking what passes, without a change to any operator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from streamfleet.processor.api import ProcessorSupplier


class ProcessorWrapper(ABC):
    """The topology must be built with the settings that name it: `StreamsBuilder(config)`, or `Topology(config)`."""

    @abstractmethod
    def wrap(self, name: str, supplier: ProcessorSupplier) -> ProcessorSupplier:
        """What makes the processors of the named operator from now on; `supplier` itself to leave it as it is.

        What it makes is of the same kind (a FixedKeyProcessor stays one), and a new object at every call. It may bring stores of
        its own by a method `stores()`.
        """
