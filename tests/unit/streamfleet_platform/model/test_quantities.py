import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from streamfleet_platform.model.quantities import bytes_text, duration_text, parse_bytes, parse_duration_ms


@pytest.mark.parametrize(
    ("text", "expected"), [("0s", 0), ("500ms", 500), ("60s", 60_000), ("20m", 1_200_000), ("3d", 259_200_000)]
)
def test_durations_have_a_unit(text, expected):
    assert parse_duration_ms(text) == expected


@pytest.mark.parametrize(
    "text", [60, "60", "1.5h", "-1s", "1 s", "1H", "1s\n", "01s", "9999999999d", True, None, "1h30m"]
)
def test_anything_else_is_no_duration(text):
    with pytest.raises(PydanticCustomError):
        parse_duration_ms(text)


@pytest.mark.parametrize("text", [1, "1", "1G", "1GB", "1gi", "-1Gi", "1.5Gi", "9999999999Ti"])
def test_anything_else_is_no_size(text):
    with pytest.raises(PydanticCustomError):
        parse_bytes(text)


@given(st.integers(1, 999), st.sampled_from(["ms", "s", "m", "h"]))
def test_what_people_are_shown_is_what_was_written(number, unit):
    shown = duration_text(parse_duration_ms(f"{number}{unit}"))
    amount, shown_unit = shown.split()
    assert parse_duration_ms(f"1{shown_unit}") * float(amount) == pytest.approx(
        parse_duration_ms(f"{number}{unit}"), rel=0.01
    )


def test_sizes_are_shown_in_binary_units():
    assert [bytes_text(size) for size in (0, 1023, 2**20, 1.5 * 2**30)] == ["0 B", "1023 B", "1 MiB", "1.5 GiB"]
