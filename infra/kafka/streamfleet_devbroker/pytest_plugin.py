"""The development broker as pytest fixtures: `broker` (one node) and `broker_cluster` (three), one of each per run.

Put `pytest_plugins = ["streamfleet_devbroker.pytest_plugin"]` into the root conftest.py. A broker is started when
the first test asks for it, on free ports and with data in a temporary directory, and is gone when the run is: at
its end, after Ctrl-C, and also when pytest itself is killed (guard.py).
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streamfleet_devbroker.cluster import Cluster, ClusterSpec


@pytest.fixture(scope="session")
def broker() -> Iterator[Cluster]:
    """A broker of one node; `broker.bootstrap_servers` is its address. Tests share it: give topics their own names."""
    with temporary_cluster(nodes=1) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def broker_cluster() -> Iterator[Cluster]:
    """A cluster of three nodes, for tests of replication and of nodes that fail."""
    with temporary_cluster(nodes=3) as cluster:
        yield cluster


@contextmanager
def temporary_cluster(nodes: int) -> Iterator[Cluster]:
    """A cluster with a temporary directory, both gone at the end of the block."""
    directory = Path(tempfile.mkdtemp(prefix="streamfleet-broker-"))
    try:
        with Cluster.start(ClusterSpec(directory, nodes), _tell) as cluster:
            yield cluster
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _tell(message: str) -> None:
    print(message, file=sys.__stderr__, flush=True)  # past pytest's capture: a first run downloads for a while
