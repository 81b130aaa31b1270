"""One partition of one SubTopology: records in through queues, through a TaskProgram, out through a producer.

A StreamTask owns everything below it and nothing around it: it has no thread and reads no clock but the one it is
given, so the StreamThread and the test driver step it alike. The GlobalTask is its small sibling for global stores.
"""
