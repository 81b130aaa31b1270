"""From a ProcessorTopology to something that runs records: a TaskProgram.

`program.py` is the contract between a program and the task around it, `interpreter.py` the plain implementation: one
object per node, one call per forward. It is the reference that any faster implementation is compared with, record by
record.
"""
