"""R: what it costs to get a store back from its changelog.

Distinct keys are counted, the runner is stopped, its directory deleted, one record per partition sent again, and it is started
anew: only keys that came back count 2. Net of the same with a thousand keys, whose time is the start to the first result.
"""

from __future__ import annotations

import shutil
import time
from typing import Any

from tests.bench.peers.dataset import PARTITIONS, Row
from tests.bench.peers.measure import Measurement
from tests.bench.peers.runner_process import Place, RunnerProcess, started

FEW = 1


def run(measurement: Measurement, app_id: str) -> dict[str, Any]:
    few, many = (_restored(measurement, app_id, thousands) for thousands in (FEW, measurement.thousands))
    wrong = few.get("wrong") or many.get("wrong")
    if wrong:
        return {"wrong": wrong}
    keys = (measurement.thousands - FEW) * 1000
    cpu, wall = many["cpu"] - few["cpu"], many["wall"] - few["wall"]
    return {
        "records": keys,
        "wrong": None if wall > 0 else "a thousand keys took longer than all",
        "rss_mb": many["rss_mb"],
        "start_s": round(few["wall"], 2),
        "steady": {"rate": keys / wall, "cpu_us": cpu / keys * 1e6, "broker_us": many["broker_cpu"] / keys * 1e6},
    }


def _restored(measurement: Measurement, app_id: str, thousands: int) -> dict[str, Any]:
    view, data = measurement.view, measurement.data
    app, output, private = (f"{prefix}{app_id}-{thousands}" for prefix in ("", "out-", "in-"))
    for topic in (output, private):
        data.create(topic)
    last = _copied(measurement, data.topic("keys", thousands), private)
    data.facts[private] = {"records": thousands * 1000}
    place = Place(app, private, output, measurement.data.partner("keys", thousands), measurement.work / app_id / app)
    with _process(measurement, place) as process:
        measurement.watch(process, place)
    shutil.rmtree(place.directory)
    measurement.await_that(lambda: view.group_is_empty(app), "the group to be empty")
    data.send(private, last.values(), {row[0] or b"": partition for partition, row in last.items()})
    before, broker_cpu, began = sum(view.ends(output).values()), view.cpu_seconds, time.monotonic()
    with _process(measurement, place) as process:
        measurement.await_that(lambda: _has_results(measurement, process, output, before), "results after the restore")
        seen = {"wall": time.monotonic() - began, "cpu": process.cpu_seconds, "rss_mb": round(process.peak_megabytes)}
    twice = sum(1 for _, value in view.rows(output) if value == b"2")
    wrong = None if twice == PARTITIONS else f"{twice} of {PARTITIONS} counts were restored"
    return {**seen, "broker_cpu": view.cpu_seconds - broker_cpu, "wrong": wrong}


def _process(measurement: Measurement, place: Place) -> Any:
    code, bootstrap = measurement.workload.code, measurement.view.bootstrap
    return started(measurement.command, code, bootstrap, place, measurement.log)


def _has_results(measurement: Measurement, process: RunnerProcess, output: str, before: int) -> bool:
    process.require_life()
    return sum(measurement.view.ends(output).values()) >= before + PARTITIONS


def _copied(measurement: Measurement, topic: str, target: str) -> dict[int, Row]:
    """Into a topic of the same partitions; the last record of each."""
    rows, partitions, last = [], {}, {}
    for message in measurement.view.messages(topic):
        row = (message.key(), message.value() or b"", message.timestamp()[1])
        rows.append(row)
        partitions[row[0] or b""] = message.partition() or 0
        last[message.partition() or 0] = row
    measurement.data.send(target, rows, partitions)
    return last
