"""The workloads in Quix Streams, as its documentation writes them."""

import sys
from pathlib import Path

from quixstreams import Application

sys.path.insert(0, str(Path(__file__).parent))
from command_line import parsed

given = parsed()
code = given.workload
app = Application(
    given.bootstrap,
    consumer_group=given.app_id,
    auto_offset_reset="earliest",
    state_dir=given.state_dir,
    loglevel="ERROR",
    commit_interval=0.1 if code == "W7" else 1.0,
    processing_guarantee="exactly-once" if code == "W7" else "at-least-once",
)
is_text = code == "W5"
source = app.topic(
    given.input, key_deserializer="bytes" if is_text else "str", value_deserializer="str" if is_text else "json"
)
target = app.topic(given.output, key_serializer="str", value_serializer="json")
stream = app.dataframe(source)


def count(_value, state):
    counted = state.get("n", 0) + 1
    state.set("n", counted)
    return counted


def price(order):
    cents = int(order["amount"] * 100 + 0.5)
    return {
        "id": order["id"],
        "customer": order["customer"],
        "cents": cents,
        "big": order["amount"] > 100,
        "ts": order["ts"],
    }


def enrich(order, customer):
    named = {"name": customer["name"], "tier": customer["tier"]}
    return {"id": order["id"], "customer": order["customer"], "amount": order["amount"], **named}


if code == "W1":
    stream = stream.filter(lambda order: order["amount"] >= 30).apply(price)
elif code in ("W2", "W7"):
    stream = stream.apply(count, stateful=True)
elif code == "W4":
    stream = stream.tumbling_window(60_000, grace_ms=60_000).count().current()
    stream = stream.apply(lambda window: {"start": window["start"], "count": window["value"]})
elif code == "W5":
    stream = stream.apply(lambda line: line.split(" "), expand=True)
    stream = stream.group_by(lambda word: word, name="word", key_serializer="str", key_deserializer="str")
    stream = stream.apply(count, stateful=True)
elif code == "W6":
    table = app.dataframe(app.topic(given.partner, key_deserializer="str", value_deserializer="json"))
    stream = stream.join_asof(table, how="inner", grace_ms=86_400_000, on_merge=enrich)
else:
    raise SystemExit(f"Quix has no {code} here")
stream.to_topic(target)
app.run()
