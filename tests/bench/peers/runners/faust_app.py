"""The workloads in Faust, with its RocksDB tables."""

import sys
from datetime import timedelta
from pathlib import Path

import faust

sys.path.insert(0, str(Path(__file__).parent))
from command_line import parsed

given = parsed()
app = faust.App(
    given.app_id,
    broker=f"kafka://{given.bootstrap}",
    store="rocksdb://",
    topic_partitions=4,
    web_enabled=False,
    datadir=given.state_dir,
    topic_disable_leader=True,
    key_serializer="raw",
    consumer_auto_offset_reset="earliest",
    broker_commit_interval=1.0,
    producer_linger=0.1,
)
source = app.topic(given.input, key_type=bytes, value_serializer="json")
target = app.topic(given.output, key_type=bytes, value_serializer="json")


def price(order):
    cents = int(order["amount"] * 100 + 0.5)
    return {
        "id": order["id"],
        "customer": order["customer"],
        "cents": cents,
        "big": order["amount"] > 100,
        "ts": order["ts"],
    }


if given.workload == "W0":
    raw_source = app.topic(given.input, key_type=bytes, value_type=bytes, value_serializer="raw")
    raw_target = app.topic(given.output, key_type=bytes, value_type=bytes, value_serializer="raw")

    @app.agent(raw_source)
    async def copied(stream):
        async for key, value in stream.items():
            await raw_target.send(key=key, value=value)

elif given.workload == "W1":

    @app.agent(source)
    async def priced(stream):
        async for key, order in stream.items():
            if order["amount"] >= 30:
                await target.send(key=key, value=price(order))

elif given.workload == "W2":
    counts = app.Table("counts", default=int, partitions=4, key_type=str)

    @app.agent(source)
    async def counted(stream):
        async for key, _order in stream.items():  # noqa: PERF102 a stream, not a dict
            counts[key.decode()] += 1
            await target.send(key=key, value=counts[key.decode()])

elif given.workload == "W4":
    windows = app.Table("counts", default=int, partitions=4, key_type=str).tumbling(
        timedelta(minutes=1), expires=timedelta(minutes=2)
    )

    @app.agent(source)
    async def in_windows(stream):
        async for key, order in stream.items():
            name, start = key.decode(), order["ts"] // 60_000 * 60_000
            windows[name] += 1
            await target.send(key=key, value={"start": start, "count": windows[name].current()})

elif given.workload == "W5":
    lines = app.topic(given.input, key_type=bytes, value_type=bytes, value_serializer="raw")
    words = app.topic(
        f"{given.app_id}-words-repartition",
        key_type=str,
        value_type=str,
        key_serializer="raw",
        value_serializer="raw",
        partitions=4,
        internal=True,
    )
    word_counts = app.Table("counts", default=int, partitions=4, key_type=str)

    @app.agent(lines)
    async def split(stream):
        async for line in stream:
            for word in line.decode().split(" "):
                await words.send(key=word, value=word)

    @app.agent(words)
    async def word_counted(stream):
        async for word in stream:
            word_counts[word] += 1
            await target.send(key=word.encode(), value=word_counts[word])

else:
    raise SystemExit(f"Faust has no {given.workload} here")
sys.argv = ["faust", "worker", "-l", "error"]
app.main()
