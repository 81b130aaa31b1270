"""What an app compiles to: Topology, its nodes, SubTopologies, internal topics, description, picture and lock.

Nothing here runs records (compiler/, task/) or speaks to a broker (kafka/).
"""
