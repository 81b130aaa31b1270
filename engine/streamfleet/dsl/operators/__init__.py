"""The DSL's processors, one family per module: each operator is a supplier (made when the topology is built) and the processor it
makes for every task. They see values, never bytes, and know nothing of names, graphs or topics.
"""
