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
key_format = "bytes" if code in ("W0", "W5") else "str"
value_format = {"W0": "bytes", "W5": "str"}.get(code, "json")
source = app.topic(given.input, key_deserializer=key_format, value_deserializer=value_format)
raw_or_json = {"key_serializer": "bytes", "value_serializer": "bytes"} if code == "W0" else {"key_serializer": "str"}
target = app.topic(given.output, **raw_or_json)
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


def pair(order, paid):
    return {
        "id": order["id"],
        "customer": order["customer"],
        "amount": order["amount"],
        "name": paid["item"],
        "tier": "",
    }


if code == "W0":
    pass
elif code == "W1":
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
elif code == "Ws":
    stream = stream.session_window(5000, grace_ms=86_400_000).count().current()
    stream = stream.apply(lambda w: {"start": w["start"], "end": w["end"], "count": w["value"]})
elif code == "Wj":
    paid = app.dataframe(app.topic(given.partner, key_deserializer="str", value_deserializer="json"))
    stream = stream.join_interval(paid, how="inner", grace_ms=60_000, on_merge=pair, backward_ms=1000, forward_ms=1000)
else:
    raise SystemExit(f"Quix has no {code} here")
stream.to_topic(target)
app.run()
