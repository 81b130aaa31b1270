"""For every test set: the development broker as fixtures (`broker`, `broker_cluster`), started when a test asks for it, and how
properties are searched: without deadlines, since timings belong to benchmarks, and in CI always the same way, so that a red run
can be repeated. Logs are as they were after a test that sets them up, whatever order and process tests run in.
"""

import os
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import settings

pytest_plugins = ["streamfleet_devbroker.pytest_plugin"]

settings.register_profile("everywhere", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "everywhere")


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.configure(**before)
