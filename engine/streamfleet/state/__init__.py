"""Where a record rests: stores as wrappers over bytes, in memory and on RocksDB.

A store is layered as in Kafka Streams: typed (serdes) over caching (holds results back) over change-logging over bytes. The bytes
sit in a dirty buffer until the task commits, and only then in a StoreEngine. Who owns a store, and when it commits, is in task/.
"""
