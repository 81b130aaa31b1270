"""Random input scripts: which record goes to which topic at which time, with what key, value and headers."""

from __future__ import annotations

from collections.abc import Callable

from tests.conformance.recorder.generator.draws import Draw, Json

KEYS = {"a": 6, "b": 4, "c": 2, "d": 1, "ab": 1, "": 1, None: 1}
SEGMENT_MS = 60_000


class Clock:
    """Timestamps that mostly go on, sometimes stand still, go back or jump; `pace` sets the size of a step."""

    def __init__(self, draw: Draw, pace: int, today: int) -> None:
        self._draw = draw
        self._pace = pace
        self._now = draw.weighted({0: 5, SEGMENT_MS - 2 * pace: 1, today: 1, 5: 3})

    def next(self) -> int:
        draw, pace = self._draw, self._pace
        step = draw.weighted({"on": 10, "same": 3, "back": 4, "jump": 2, "far": 1})
        if step == "same":
            return self._now
        if step == "back":
            return max(0, self._now - draw.between(1, 4 * pace))
        factor = {"on": 1, "jump": 5, "far": 40}[step]
        self._now += draw.between(1, factor * pace)
        return self._now


def text(draw: Draw) -> str | None:
    return draw.weighted(
        {
            None: 2,
            "": 1,
            f"{draw.one('a', 'b', 'n', 'x')}{draw.between(0, 9)}": 12,
            "a b c": 1,
            str(draw.between(0, 99)): 3,
        }
    )


def content(draw: Draw, serde: Json) -> Json:
    """A JSON value of a serde; nulls now and then."""
    if serde == "string":
        return text(draw)
    if draw.chance(8):
        return None
    if serde == "double":
        return draw.one(0.5, 1.0, -2.25, 7.0, 1000.5)
    return draw.between(-3, 9)


def key(draw: Draw, serde: Json) -> Json:
    return draw.weighted(KEYS) if serde == "string" else content(draw, serde)


def headers(draw: Draw) -> list[Json]:
    if not draw.chance(12):
        return []
    names = [[draw.one("h", "g"), draw.one("1", "2", None, "")] for _ in range(draw.between(1, 2))]
    return [names]


def script(
    draw: Draw,
    topics: dict[str, Json],
    *,
    steps: int,
    pace: int,
    advance_percent: int = 0,
    today: int = 1_700_000_000_000,
    value_of: Callable[[Draw, Json], Json] = content,
) -> list[Json]:
    """Steps that write to `topics` (name -> {key, value}), and move the wall clock in `advance_percent` of them."""
    clock = Clock(draw, pace, today)
    names = sorted(topics)
    found: list[Json] = []
    for _ in range(steps):
        if draw.chance(advance_percent):
            found.append({"advance": draw.one(1, 5, 10, 10, 25, 60, 100)})
            continue
        topic = draw.of(names)
        serdes = topics[topic]
        record = [topic, key(draw, serdes["key"]), value_of(draw, serdes["value"]), clock.next(), *headers(draw)]
        found.append({"pipe": record})
    return found
