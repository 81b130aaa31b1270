"""The workloads in Bytewax with its Kafka connectors: reads to the end of the input and exits. No changelog, no group."""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import bytewax.operators as op
import bytewax.operators.windowing as win
import orjson
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource
from bytewax.dataflow import Dataflow
from bytewax.testing import run_main

sys.path.insert(0, str(Path(__file__).parent))
from command_line import parsed

given = parsed()
code = given.workload
quiet = {"log_level": "0"}
BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
flow = Dataflow("bench")
stream = op.input("in", flow, KafkaSource([given.bootstrap], [given.input], tail=False, add_config=quiet))


def price(order):
    cents = int(order["amount"] * 100 + 0.5)
    return {
        "id": order["id"],
        "customer": order["customer"],
        "cents": cents,
        "big": order["amount"] > 100,
        "ts": order["ts"],
    }


def count(state, _value):
    counted = (state or 0) + 1
    return counted, counted


def window(keyed):
    key, (number, counted) = keyed
    start = int(BEGIN.timestamp() * 1000) + number * 60_000
    return KafkaSinkMessage(key.encode(), orjson.dumps({"start": start, "count": counted}))


def session(keyed):
    """Of a fold that keeps count, first and last time."""
    key, (_number, (counted, first, last)) = keyed
    return KafkaSinkMessage(key.encode(), orjson.dumps({"start": first, "end": last, "count": counted}))


def longer(seen, order):
    counted, first, last = seen
    return counted + 1, min(first, order["ts"]), max(last, order["ts"])


def merged(one, other):
    return one[0] + other[0], min(one[1], other[1]), max(one[2], other[2])


def pair(keyed):
    key, (_number, (order, paid)) = keyed
    both = {
        "id": order["id"],
        "customer": order["customer"],
        "amount": order["amount"],
        "name": paid["item"],
        "tier": "",
    }
    return KafkaSinkMessage(key.encode(), orjson.dumps(both))


def decoded(message):
    return message.key.decode(), orjson.loads(message.value)


def order_clock():
    return win.EventClock(
        lambda order: datetime.fromtimestamp(order["ts"] / 1000, UTC), wait_for_system_duration=timedelta(minutes=1)
    )


if code == "W0":
    stream = op.map("copy", stream, lambda message: KafkaSinkMessage(message.key, message.value))
elif code == "W1":
    stream = op.map("decode", stream, lambda message: (message.key, orjson.loads(message.value)))
    stream = op.filter("filter", stream, lambda keyed: keyed[1]["amount"] >= 30)
    stream = op.map("encode", stream, lambda keyed: KafkaSinkMessage(keyed[0], orjson.dumps(price(keyed[1]))))
elif code == "W4":  # gives a window when it closes, not every update
    stream = op.map("decode", stream, decoded)
    windows = win.TumblingWindower(length=timedelta(minutes=1), align_to=BEGIN)
    counted = win.fold_window(
        "count", stream, order_clock(), windows, lambda: 0, lambda n, _order: n + 1, lambda a, b: a + b
    )
    stream = op.map("encode", counted.down, window)
elif code == "Ws":  # the same
    stream = op.map("decode", stream, decoded)
    windows = win.SessionWindower(gap=timedelta(seconds=5))
    counted = win.fold_window("count", stream, order_clock(), windows, lambda: (0, 1 << 62, 0), longer, merged)
    stream = op.map("encode", counted.down, session)
elif code == "Wj":  # of what is in one session: there are no windows around each record
    paid = op.input("paid", flow, KafkaSource([given.bootstrap], [given.partner], tail=False, add_config=quiet))
    sides = op.map("decode", stream, decoded), op.map("decode-paid", paid, decoded)
    windows = win.SessionWindower(gap=timedelta(seconds=1))
    joined = win.join_window("join", order_clock(), windows, *sides, emit_mode="final")
    stream = op.map("encode", joined.down, pair)
elif code in ("W2", "W5"):
    if code == "W2":
        stream = op.map("decode", stream, decoded)
    else:
        stream = op.flat_map("split", stream, lambda message: [(w, None) for w in message.value.decode().split(" ")])
    stream = op.stateful_map("count", stream, count)
    stream = op.map("encode", stream, lambda keyed: KafkaSinkMessage(keyed[0].encode(), b"%d" % keyed[1]))
else:
    raise SystemExit(f"Bytewax has no {code} here")
op.output("out", stream, KafkaSink([given.bootstrap], given.output, add_config=quiet))
run_main(flow)
