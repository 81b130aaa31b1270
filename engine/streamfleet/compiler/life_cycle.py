"""How the processors of a program begin and end, whichever program it is. Called by interpreter.py and compiled.py."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from streamfleet.compiler.node_context import NodeContext, ProcessorPhase
from streamfleet.errors import StreamsError, TaskInterruptedError, TopologyError


class LivingProcessor(Protocol):
    """A processor with its context."""

    @property
    def name(self) -> str: ...

    @property
    def context(self) -> NodeContext: ...

    def init(self) -> None: ...

    def close(self) -> None: ...


def init_all(processors: Iterable[LivingProcessor]) -> None:
    """In the order given, up to the first that fails."""
    for node in processors:
        node.context.enter(ProcessorPhase.STARTING)
        try:
            node.init()
        except TaskInterruptedError:
            raise  # it is not about the operator, and may pass: a broker that is away, a full disk, damaged files
        except Exception as error:
            raise StreamsError(f"operator {node.name} failed to initialise: {error}") from error
        node.context.enter(ProcessorPhase.RUNNING)


def close_all(processors: Iterable[LivingProcessor]) -> None:
    """All of them, also when some fail; the first failure is raised at the end."""
    first: Exception | None = None
    for node in processors:
        node.context.enter(ProcessorPhase.CLOSING)
        try:
            node.close()
        except Exception as error:
            if first is None:
                first = StreamsError(f"operator {node.name} failed to close: {error}")
                first.__cause__ = error
    if first is not None:
        raise first


def no_processor(operator: str, made: object) -> TopologyError:
    """The error for a supplier that gave something else."""
    return TopologyError(
        f"the supplier of operator {operator} returned {type(made).__qualname__}, not a processor",
        hint="return a new Processor or FixedKeyProcessor from every call",
    )
