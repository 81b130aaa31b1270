"""What a developer writes: StreamsBuilder, KStream, KTable and their kin.

Calls build a graph of GraphNodes (graph.py); `StreamsBuilder.build()` writes it into a Topology through the same calls that a user
of the Processor API makes. The processors that do the work are in operators/.
"""
