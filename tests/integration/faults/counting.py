"""The topology that every fault meets, for the tests and for the processes they start."""

from datetime import timedelta

import streamfleet as sf

LONG, STRING = sf.serdes.long(), sf.serdes.string()
WINDOW = timedelta(days=1)
WINDOWED = sf.serdes.windowed(STRING, size=WINDOW)


def counting_topology(source, outputs, offset_reset=None):
    """Counts by key, by key and window, and by value after a repartition; `outputs` are the topics of the three."""
    builder = sf.StreamsBuilder()
    stream = builder.stream(source, offset_reset=offset_reset)
    grouped = stream.group_by_key()
    grouped.count(store="keys").to_stream().to(outputs["by-key"], value_serde=LONG)
    windows = grouped.windowed_by(sf.TimeWindows(size=WINDOW, grace=WINDOW))
    counted = windows.count(store="windows").to_stream()
    counted.to(outputs["by-window"], key_serde=WINDOWED, value_serde=LONG)
    by_colour = stream.group_by(lambda _, colour: colour, name="colour")
    by_colour.count(store="colours").to_stream().to(outputs["by-colour"], value_serde=LONG)
    return builder.build()
