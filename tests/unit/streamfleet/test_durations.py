from datetime import timedelta

import pytest

from streamfleet.durations import duration_ms
from streamfleet.errors import OptionError


def test_durations_are_timedeltas_or_milliseconds():
    assert duration_ms(timedelta(seconds=2), "grace") == 2000
    assert duration_ms(250, "grace") == 250
    assert duration_ms(0, "grace") == 0


@pytest.mark.parametrize("value", [-1, timedelta(seconds=-1), 1.5, "10", True, None, 2**63])
def test_other_values_are_refused_with_the_name_of_the_argument(value):
    with pytest.raises(OptionError, match="grace"):
        duration_ms(value, "grace")
