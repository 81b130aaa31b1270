"""Chooses how a ProcessorTopology runs, by `topology.execution`. Called by the tasks."""

from __future__ import annotations

from streamfleet.compiler.compiled import CompiledProgram
from streamfleet.compiler.interpreter import Interpreter
from streamfleet.compiler.program import TaskEnvironment, TaskProgram
from streamfleet.topology.nodes import GlobalStoreEntry, ProcessorTopology


def make_program(topology: ProcessorTopology, environment: TaskEnvironment) -> TaskProgram:
    is_interpreted = environment.config.topology_execution == "interpreted"
    return Interpreter(topology, environment) if is_interpreted else CompiledProgram(topology, environment)


def global_program_topology(entries: tuple[GlobalStoreEntry, ...]) -> ProcessorTopology:
    """What the GlobalTask runs: the processor of each global store, behind its source."""
    return ProcessorTopology(
        nodes=tuple(node for entry in entries for node in (entry.source, entry.processor)),
        children={entry.source.name: (entry.processor.name,) for entry in entries},
        stores=(),
        global_stores=(),
    )
