"""Two workloads in Faust, with its RocksDB table."""

import sys
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


if given.workload == "W1":

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

else:
    raise SystemExit(f"Faust has no {given.workload} here")
sys.argv = ["faust", "worker", "-l", "error"]
app.main()
