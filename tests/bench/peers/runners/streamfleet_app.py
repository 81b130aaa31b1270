"""The workloads as a user of this engine writes them, run by `streamfleet run`."""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from pathlib import Path

import msgspec
import yaml

import streamfleet as sf


class Order(msgspec.Struct, frozen=True):
    id: int
    customer: str
    amount: float
    item: str
    ts: int


class Priced(msgspec.Struct, frozen=True):
    id: int
    customer: str
    cents: int
    big: bool
    ts: int


class Customer(msgspec.Struct, frozen=True):
    name: str
    tier: str
    country: str


class Enriched(msgspec.Struct, frozen=True):
    id: int
    customer: str
    amount: float
    name: str
    tier: str


class WindowCount(msgspec.Struct, frozen=True):
    start: int
    count: int
    end: int = 0


text, raw = sf.serdes.string(), sf.serdes.bytes()
order, priced, customer, enriched, window_count = map(sf.serdes.json, (Order, Priced, Customer, Enriched, WindowCount))
CACHED = ("W3", "W4c", "W5", "W6")
"""They have the default cache; the others forward every update."""
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


def price(value: Order) -> Priced:
    return Priced(value.id, value.customer, int(value.amount * 100 + 0.5), value.amount > 100, value.ts)


def in_window(key: sf.Windowed[str], count: int | None) -> tuple[str, WindowCount]:
    return key.key, WindowCount(key.window.start, count or 0, key.window.end)


def topology() -> sf.Topology:
    """What `streamfleet run` is told to run; main() has put the names into the environment."""
    return of_workload(*(os.environ[f"BENCH_{name}"] for name in ("CODE", "INPUT", "OUTPUT", "PARTNER")))


def of_workload(code: str, source: str, target: str, partner: str) -> sf.Topology:
    builder = sf.StreamsBuilder()
    if code == "W0":
        builder.stream(source, key_serde=raw, value_serde=raw).to(target, key_serde=raw, value_serde=raw)
        return builder.build()
    if code == "W5":
        words = builder.stream(source, key_serde=raw, value_serde=text).flat_map_values(lambda line: line.split(" "))
        counts = words.group_by(lambda _, word: word, key_serde=text, value_serde=text, name="by-word").count(
            store="counts"
        )
        counts.to_stream().map_values(str).to(target, key_serde=text, value_serde=text)
        return builder.build()
    orders = builder.stream(source, key_serde=text, value_serde=order)
    if code == "W1":
        orders.filter(lambda _, value: value.amount >= 30).map_values(price).to(
            target, key_serde=text, value_serde=priced
        )
    elif code in ("W2", "W3", "W7"):
        counts = orders.group_by_key().count(store="counts")
        counts.to_stream().map_values(str).to(target, key_serde=text, value_serde=text)
    elif code in ("W4", "W4c"):
        windowed = orders.group_by_key().windowed_by(sf.TimeWindows(size=MINUTE, grace=MINUTE)).count(store="counts")
        windowed.to_stream().map(in_window).to(target, key_serde=text, value_serde=window_count)
    elif code == "Ws":
        sessions = sf.SessionWindows(gap=timedelta(seconds=5), grace=DAY)
        counted = orders.group_by_key().windowed_by(sessions).count(store="counts")
        counted.to_stream().map(in_window).to(target, key_serde=text, value_serde=window_count)
    elif code == "W6":
        table = builder.table(partner, key_serde=text, value_serde=customer, store="customers")
        joined = orders.join(table, lambda o, c: Enriched(o.id, o.customer, o.amount, c.name, c.tier))
        joined.to(target, key_serde=text, value_serde=enriched)
    elif code == "Wj":
        paid = builder.stream(partner, key_serde=text, value_serde=order)
        within = sf.JoinWindows(before=timedelta(seconds=1), after=timedelta(seconds=1), grace=MINUTE)
        pairs = orders.join(
            paid,
            lambda o, p: Enriched(o.id, o.customer, o.amount, p.item, ""),
            window=within,
            name="pairs",
            key_serde=text,
            value_serde=order,
            other_value_serde=order,
        )
        pairs.to(target, key_serde=text, value_serde=enriched)
    else:
        raise SystemExit(f"there is no workload {code}")
    return builder.build()


def main() -> None:
    from tests.bench.peers.runners.command_line import parsed

    given = parsed()
    settings = {
        "application.id": given.app_id,
        "bootstrap.servers": given.bootstrap,
        "commit.interval.ms": 100 if given.workload == "W7" else 1000,
        "processing.guarantee": "exactly_once_v2" if given.workload == "W7" else "at_least_once",
        "session.timeout.ms": 10_000,
        **({} if given.workload in CACHED else {"statestore.cache.max.bytes": 0}),
    }
    config = Path(given.state_dir) / "app.yaml"
    config.write_text(yaml.safe_dump(settings))
    names = {"CODE": given.workload, "INPUT": given.input, "OUTPUT": given.output, "PARTNER": given.partner}
    environment = {**os.environ, **{f"BENCH_{name}": value for name, value in names.items()}}
    program = str(Path(sys.executable).with_name("streamfleet"))
    command = [program, "run", "tests.bench.peers.runners.streamfleet_app:topology"]
    command += ["--config", str(config), "--state-dir", str(Path(given.state_dir) / "state"), "--log-level", "warning"]
    os.execve(program, command, environment)


if __name__ == "__main__":
    main()
