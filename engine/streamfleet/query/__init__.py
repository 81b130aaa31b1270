"""Reading state from outside: queries, what they answer, and who owns a key. Called by kafka_streams/ and, over HTTP, by worker/.

queries.py            what can be asked
request.py            ... of which store and partitions, how fresh
results.py            what comes back, per partition, with its position
store_reader.py       a query on one store
local_queries.py      a request on the tasks of this process
store_catalogue.py    which sub-topology has a store, and which partition has a key
hosts.py              which process of the group has a partition
"""
