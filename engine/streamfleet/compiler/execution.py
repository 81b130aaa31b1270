"""Chooses how a ProcessorTopology runs, by `topology.execution`. Called by the tasks."""

from __future__ import annotations

from streamfleet.compiler.compiled import CompiledProgram
from streamfleet.compiler.interpreter import Interpreter
from streamfleet.compiler.program import TaskEnvironment, TaskProgram
from streamfleet.topology.nodes import ProcessorTopology


def make_program(topology: ProcessorTopology, environment: TaskEnvironment) -> TaskProgram:
    is_interpreted = environment.config.topology_execution == "interpreted"
    return Interpreter(topology, environment) if is_interpreted else CompiledProgram(topology, environment)
