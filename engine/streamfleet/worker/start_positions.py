"""Where an app begins in its input topics after a reset, as people say it: at one end, at an offset, at a time, so many records
further on or back, or as a file lists it. Read from a command line, turned into offsets by what the topics hold.

Called by reset.py. A position outside of what a partition holds becomes the nearest one in it, as with Kafka's own tool. What
cannot be meant is refused before anything is changed: partitions that a file forgets, or that a shift has nothing to count from.
"""

from __future__ import annotations

import csv
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, Protocol

from streamfleet.errors import ConfigError
from streamfleet.ids import TopicPartition
from streamfleet.ports import OffsetKind

Offsets = dict[TopicPartition, int]

_MILLISECOND = timedelta(milliseconds=1)
_DURATION = re.compile(
    r"P(?=.)(?:(?P<days>\d+)D)?(?:T(?=.)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)


class InputAdmin(Protocol):
    """See kafka/admin.py."""

    def list_offsets(self, partitions: Collection[TopicPartition], kind: OffsetKind) -> Offsets: ...

    def offsets_since(self, partitions: Collection[TopicPartition], since_ms: int) -> Offsets: ...


class Inputs:
    """The input partitions of the app that is reset."""

    def __init__(
        self,
        partitions: Collection[TopicPartition],
        admin: InputAdmin,
        committed: Callable[[], Mapping[TopicPartition, int]],
    ) -> None:
        """`committed` asks for what the group has processed."""
        self.partitions = sorted(partitions)
        self.committed = committed
        self._admin = admin

    def earliest(self) -> Offsets:
        return self._admin.list_offsets(self.partitions, OffsetKind.EARLIEST)

    def latest(self) -> Offsets:
        return self._admin.list_offsets(self.partitions, OffsetKind.LAST_STABLE)

    def since(self, since_ms: int) -> Offsets:
        return self._admin.offsets_since(self.partitions, since_ms)

    def clamped(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        earliest, latest = self.earliest(), self.latest()
        return {each: min(max(offset, earliest[each]), latest[each]) for each, offset in wanted.items()}


class StartPosition(ABC):
    """`str()` is for the sentence "begin at ..."."""

    counts_from_committed = False

    @abstractmethod
    def offsets(self, inputs: Inputs) -> Offsets: ...


class AtEnd(StartPosition):
    def __init__(self, end: Literal["earliest", "latest"]) -> None:
        self._end = end

    def __str__(self) -> str:
        return self._end

    def offsets(self, inputs: Inputs) -> Offsets:
        return inputs.earliest() if self._end == "earliest" else inputs.latest()


class AtOffset(StartPosition):
    def __init__(self, offset: int) -> None:
        self._offset = offset

    def __str__(self) -> str:
        return f"offset {self._offset}, or the nearest there is"

    def offsets(self, inputs: Inputs) -> Offsets:
        return inputs.clamped(dict.fromkeys(inputs.partitions, self._offset))


class SinceTime(StartPosition):
    """The first record of that time or later; behind the last one if there is none."""

    def __init__(self, time: datetime) -> None:
        self._time = time

    def __str__(self) -> str:
        return f"the first record since {self._time.isoformat(timespec='milliseconds')}"

    def offsets(self, inputs: Inputs) -> Offsets:
        since_ms = (self._time - datetime.fromtimestamp(0, UTC)) // _MILLISECOND
        return inputs.since(max(0, since_ms))  # brokers take negative times for words


class ShiftedBy(StartPosition):
    """So many offsets behind what was processed, or with a negative number before it."""

    counts_from_committed = True

    def __init__(self, offsets: int) -> None:
        self._by = offsets

    def __str__(self) -> str:
        return f"what was committed, {self._by:+d}"

    def offsets(self, inputs: Inputs) -> Offsets:
        committed = inputs.committed()
        if without := [str(each) for each in inputs.partitions if each not in committed]:
            raise ConfigError(
                f"nothing was committed for {', '.join(without)}, so there is nothing to shift from",
                hint="say by --to-offset, --to-datetime or --from-file where to begin",
            )
        return inputs.clamped({each: committed[each] + self._by for each in inputs.partitions})


class FromFile(StartPosition):
    """Lines of topic,partition,offset, as Kafka's own tools write them. All partitions have to be there: the others are gone with
    the group.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._listed = _listed(path)

    def __str__(self) -> str:
        return f"what {self._path} says"

    def offsets(self, inputs: Inputs) -> Offsets:
        for kind, partitions in (
            ("says nothing about", set(inputs.partitions) - self._listed.keys()),
            ("names what is no partition of an input topic:", self._listed.keys() - set(inputs.partitions)),
        ):
            if partitions:
                raise ConfigError(
                    f"{self._path} {kind} {', '.join(map(str, sorted(partitions)))}",
                    hint="it needs a line topic,partition,offset for every partition of the app's input topics",
                )
        return inputs.clamped(self._listed)


def _listed(path: Path) -> Offsets:
    hint = "lines are topic,partition,offset"
    found: Offsets = {}
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read ({error})", hint=hint) from error
    for number, row in enumerate(csv.reader(lines), start=1):
        if not row:
            continue
        match [word.strip() for word in row]:
            case [topic, partition, offset] if topic and partition.isdecimal() and offset.isdecimal():
                place = TopicPartition(topic, int(partition))
            case _:
                raise ConfigError(f"line {number} of {path} cannot be understood: {','.join(row)}", hint=hint)
        if place in found:
            raise ConfigError(f"line {number} of {path} names {place} again", hint=hint)
        found[place] = int(offset)
    return found


def parse_time(text: str) -> datetime:
    """ISO 8601; without an offset it is UTC."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(f"{text!r} is no time", hint="write it as 2026-01-31T08:00:00Z") from error
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def parse_duration(text: str) -> timedelta:
    """ISO 8601, days to seconds."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ConfigError(f"{text!r} is no duration", hint="write it as P7D or PT1H30M")
    try:
        return timedelta(**{unit: float(number) for unit, number in found.groupdict().items() if number is not None})
    except OverflowError as error:
        raise ConfigError(
            f"{text} is too long a duration", hint="--input-topics earliest begins at the beginning"
        ) from error


def _before(now: datetime, duration: timedelta) -> datetime:
    beginning = datetime.fromtimestamp(0, UTC)
    return now - duration if duration < now - beginning else beginning


def start_position(
    *,
    now: datetime,
    input_topics: Literal["earliest", "latest"] | None = None,
    to_offset: int | None = None,
    to_datetime: str | None = None,
    by_duration: str | None = None,
    shift_by: int | None = None,
    from_file: Path | None = None,
) -> StartPosition:
    """What the options of the command line say: one of them, or none for the beginning."""
    made = {
        "--input-topics": None if input_topics is None else AtEnd(input_topics),
        "--to-offset": None if to_offset is None else AtOffset(to_offset),
        "--to-datetime": None if to_datetime is None else SinceTime(parse_time(to_datetime)),
        "--by-duration": None if by_duration is None else SinceTime(_before(now, parse_duration(by_duration))),
        "--shift-by": None if shift_by is None else ShiftedBy(shift_by),
        "--from-file": None if from_file is None else FromFile(from_file),
    }
    chosen = {option: position for option, position in made.items() if position is not None}
    if len(chosen) > 1:
        raise ConfigError(f"{' and '.join(chosen)} contradict each other", hint="say once where to begin")
    return next(iter(chosen.values()), AtEnd("earliest"))
