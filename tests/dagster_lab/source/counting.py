"""Apps that count records by key, and that may take their time for each: asleep, so that a slow app costs no processor."""

import time

import streamfleet as sf

text, number = sf.serdes.string(), sf.serdes.long()


def counting(name: str, seconds_each: float = 0.0) -> sf.Topology:
    def work(value: str) -> str:
        if seconds_each:
            time.sleep(seconds_each)
        return value

    builder = sf.StreamsBuilder()
    (
        builder.stream(f"{name}-in", key_serde=text, value_serde=text)
        .map_values(work, name="work")
        .group_by_key(key_serde=text, value_serde=text)
        .count(store="counts")
        .to_stream(name="updates")
        .to(f"{name}-out", key_serde=text, value_serde=number)
    )
    return builder.build()


def busy() -> sf.Topology:
    """One slot does fewer than 100 records a second. The longer a record takes, the less it matters what else the machine does."""
    return counting("busy", seconds_each=0.01)


def warm() -> sf.Topology:
    return counting("warm")


def again() -> sf.Topology:
    return counting("again")


def careful() -> sf.Topology:
    return counting("careful")


def landed() -> sf.Topology:
    return counting("landed")


def leader() -> sf.Topology:
    return counting("leader")


def timer() -> sf.Topology:
    return counting("timer")
