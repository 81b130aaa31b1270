"""What was written to an input topic, as a table: the file that a bootstrap begins from."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition


def land(bootstrap_servers: str, topic: str, lake: Path) -> int:
    """All of it, with the place that each record came from; how many there are."""
    settings = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": "lab-lander",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }
    consumer = Consumer(settings)
    rows: list[tuple[str, int, int, int]] = []
    try:
        partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
        ended: set[int] = set()
        while len(ended) < len(partitions):
            for message in consumer.consume(1000, timeout=0.5):
                if message.error() is not None:
                    ended.add(message.partition())
                    continue
                key = message.key()
                assert isinstance(key, bytes)
                rows.append((key.decode(), message.partition(), message.offset(), message.timestamp()[1]))
    finally:
        consumer.close()
    lake.mkdir(exist_ok=True)
    columns = dict(zip(["word", "p", "o", "ts"], map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(columns), lake / "0.parquet")
    return len(rows)
