"""Where an app begins after a reset: what the options mean, and what they cannot mean."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from streamfleet.errors import ConfigError
from streamfleet.ids import TopicPartition
from streamfleet.ports import OffsetKind
from streamfleet.worker.start_positions import Inputs, parse_duration, parse_time, start_position

ONE, TWO = TopicPartition("orders", 0), TopicPartition("orders", 1)
NOW = datetime(2026, 1, 31, 8, tzinfo=UTC)


class Cluster:
    """Offsets 10 to 100 in one partition, 0 to 20 in the other; a record for every millisecond since 1970."""

    ends = {OffsetKind.EARLIEST: {ONE: 10, TWO: 0}, OffsetKind.LAST_STABLE: {ONE: 100, TWO: 20}}

    def list_offsets(self, partitions, kind):
        return {each: self.ends[kind][each] for each in partitions}

    def offsets_since(self, partitions, since_ms):
        return dict.fromkeys(partitions, since_ms)


def begins(committed=None, **options):
    return start_position(now=NOW, **options).offsets(Inputs([TWO, ONE], Cluster(), lambda: committed or {}))


@pytest.mark.parametrize(
    ("options", "offsets"),
    [
        ({}, (10, 0)),
        ({"input_topics": "earliest"}, (10, 0)),
        ({"input_topics": "latest"}, (100, 20)),
        ({"to_offset": 15}, (15, 15)),
        ({"to_offset": 0}, (10, 0)),
        ({"to_offset": 50}, (50, 20)),
        ({"to_datetime": "1970-01-01T00:00:02.5"}, (2500, 2500)),
        ({"to_datetime": "1970-01-01T01:00:02+01:00"}, (2000, 2000)),
        ({"by_duration": "P999999D"}, (0, 0)),
        ({"to_datetime": "1950-01-01T00:00:00Z"}, (0, 0)),
        ({"by_duration": "PT1H"}, (1769842800000, 1769842800000)),
    ],
    ids=str,
)
def test_each_option_means_an_offset_of_each_partition(options, offsets):
    assert begins(**options) == dict(zip((ONE, TWO), offsets, strict=True))


@pytest.mark.parametrize(("by", "offsets"), [(5, (45, 15)), (-5, (35, 5)), (-1000, (10, 0)), (1000, (100, 20))])
def test_a_shift_counts_from_what_was_committed_and_stays_inside(by, offsets):
    assert begins(committed={ONE: 40, TWO: 10}, shift_by=by) == dict(zip((ONE, TWO), offsets, strict=True))


def test_a_shift_from_nothing_is_refused_and_names_the_partitions():
    with pytest.raises(ConfigError, match="nothing was committed for orders-1, so"):
        begins(committed={ONE: 40}, shift_by=1)


def listed(tmp_path, *lines):
    path = tmp_path / "offsets.csv"
    path.write_text("\n".join(lines))
    return begins(from_file=path)


def test_a_file_says_it_for_every_partition(tmp_path):
    assert listed(tmp_path, "orders,0,12", "", '"orders", 1, 999') == {ONE: 12, TWO: 20}


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["orders,0,12"], "says nothing about orders-1;"),
        (["orders,0,1", "orders,1,1", "orders,2,1"], "no partition of an input topic: orders-2;"),
        (["orders,0,1", "orders,0,1"], "line 2 of .* names orders-0 again"),
        (["orders,0"], "line 1 of .* cannot be understood: orders,0;"),
        (["orders,0,-3"], "line 1 of .* cannot be understood"),
        (["orders,x,3"], "line 1 of .* cannot be understood"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(tmp_path, lines, reason):
    with pytest.raises(ConfigError, match=reason):
        listed(tmp_path, *lines)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        begins(from_file=tmp_path / "nothing")


def test_two_options_contradict_each_other():
    with pytest.raises(ConfigError, match="--to-offset and --shift-by contradict each other"):
        begins(to_offset=0, shift_by=0)


def test_times_are_iso_and_utc_unless_they_say_otherwise():
    assert parse_time("2026-01-31T08:00:00Z") == parse_time("2026-01-31 08:00") == NOW
    assert parse_time("2026-01-31T08:00:00+02:00") == NOW.replace(tzinfo=timezone(timedelta(hours=2)))
    with pytest.raises(ConfigError, match="'yesterday' is no time"):
        parse_time("yesterday")


def test_durations_are_iso():
    assert parse_duration("P7D") == timedelta(days=7)
    assert parse_duration("P1DT1H30M1.5S") == timedelta(days=1, hours=1, minutes=30, seconds=1.5)
    for wrong in ("", "P", "PT", "7d", "P1H", "-PT1H", "PT1HT1M"):
        with pytest.raises(ConfigError, match="is no duration"):
            parse_duration(wrong)
    with pytest.raises(ConfigError, match="too long a duration"):
        parse_duration("P9999999999999D")
