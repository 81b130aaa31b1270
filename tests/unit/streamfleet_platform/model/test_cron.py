from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfleet_platform.model.cron import Cron

NOW = datetime(2026, 3, 11, 14, 30, 20, tzinfo=UTC)  # a Wednesday


@pytest.mark.parametrize(
    ("schedule", "latest"),
    [
        ("0 3 * * *", datetime(2026, 3, 11, 3, 0, tzinfo=UTC)),
        ("0 15 * * *", datetime(2026, 3, 10, 15, 0, tzinfo=UTC)),
        ("30 14 * * *", datetime(2026, 3, 11, 14, 30, tzinfo=UTC)),
        ("*/20 * * * *", datetime(2026, 3, 11, 14, 20, tzinfo=UTC)),
        ("0 0 * * 5", datetime(2026, 3, 6, 0, 0, tzinfo=UTC)),
        ("0 0 * * 0", datetime(2026, 3, 8, 0, 0, tzinfo=UTC)),
        ("0 0 * * 7", datetime(2026, 3, 8, 0, 0, tzinfo=UTC)),
        ("0 0 1 * *", datetime(2026, 3, 1, 0, 0, tzinfo=UTC)),
        ("0 0 9 * 5", datetime(2026, 3, 9, 0, 0, tzinfo=UTC)),
        ("0 0 29 2 *", datetime(2024, 2, 29, 0, 0, tzinfo=UTC)),
        ("5,10-12 1 * 1-2 *", datetime(2026, 2, 28, 1, 12, tzinfo=UTC)),
        ("0 0 31 2 *", None),
    ],
)
def test_the_latest_beginning_is_found(schedule, latest):
    assert Cron.parse(schedule).latest(NOW) == latest


@pytest.mark.parametrize(
    "text", ["", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "5-1 * * * *", "*/0 * * * *", "a * * * *"]
)
def test_what_is_no_schedule_is_refused(text):
    with pytest.raises(ValueError):
        Cron.parse(text)


FIELD = st.sampled_from(["*", "*/7", "3", "1-5", "2,4"])


@given(
    FIELD,
    FIELD,
    FIELD,
    st.sampled_from(["*", "1-6", "3"]),
    FIELD,
    st.datetimes(NOW.replace(2020, tzinfo=None), NOW.replace(2030, tzinfo=None)),
)
def test_the_latest_beginning_matches_and_none_lies_between(minute, hour, day, month, weekday, now):
    now = now.replace(tzinfo=UTC)
    cron = Cron.parse(f"{minute} {hour} {day} {month} {weekday}")
    latest = cron.latest(now)
    assert latest is not None and latest <= now
    assert cron.latest(latest) == latest
    earlier = cron.latest(latest - timedelta(minutes=1))
    assert earlier is None or earlier < latest
