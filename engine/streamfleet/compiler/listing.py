"""What `streamfleet topology --generated` prints: the text that is generated for a Topology, one part per program that will run.

Called by the command line. Writes the text as the tasks do, from the same ProcessorTopology, and runs none of it: no processor is
made, no store opened.
"""

from __future__ import annotations

from streamfleet.compiler.code_generator import CodeGenerator
from streamfleet.compiler.execution import global_program_topology
from streamfleet.topology.nodes import ProcessorNode, ProcessorTopology
from streamfleet.topology.topology import Topology

APPLICATION_ID = "app"
"""Of no meaning: names of topics are not in the text."""


def generated_listing(topology: Topology) -> str:
    """The text of each sub-topology, then that of the global task, each under a heading that is a comment."""
    parts = []
    global_entries = tuple(topology.global_stores.values())
    for sub_topology in topology.sub_topologies():
        if sub_topology.global_store is None:
            program = topology.processor_topology(APPLICATION_ID, sub_topology.id)
            parts.append(_part(f"sub-topology {sub_topology.id}", program))
    if global_entries:
        parts.append(_part("global stores", global_program_topology(global_entries)))
    return "\n".join(parts)


def _part(title: str, program: ProcessorTopology) -> str:
    generator = CodeGenerator(program)
    text = generator.generate().text
    processors = [node.name for node in program.nodes if isinstance(node, ProcessorNode)]
    called = [node.name for node in generator.called]
    heading = [
        f"# {title}: reads {', '.join(node.name for node in program.sources)}",
        f"# in the text: {', '.join(name for name in processors if name in generator.inlined) or 'none'}",
        f"# called: {', '.join(called) or 'none'}",
    ]
    return "\n".join([*heading, "", text])
