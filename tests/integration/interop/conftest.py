"""Both engines, each in a process that all tests of the directory share."""

import pytest
from tests.interop.side import both_sides


@pytest.fixture(scope="session")
def sides(tmp_path_factory):
    with both_sides(tmp_path_factory.mktemp("sides")) as sides:
        yield sides
