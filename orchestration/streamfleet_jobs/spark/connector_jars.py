"""The Kafka connector's jars, pinned and verified, in the user's cache. Called by session.py, before Spark's JVM starts.

They are fetched as the development broker's are, by Maven or by the Ivy that comes with PySpark, once.
"""

from __future__ import annotations

import importlib.resources
from pathlib import Path

from streamfleet_devbroker.directories import cache_directory
from streamfleet_devbroker.errors import BrokerError
from streamfleet_devbroker.jars import Fetcher, ensure_pinned
from streamfleet_devbroker.java import Java
from streamfleet_devbroker.pinned import Jar, parse_jars
from streamfleet_jobs.errors import UnavailableError
from streamfleet_jobs.progress import Report

CONNECTOR_VERSION = "4.2.0"


def connector_jars() -> tuple[Jar, ...]:
    """The pinned list that ships with this package."""
    name = f"kafka-connector-{CONNECTOR_VERSION}.jars"
    return parse_jars((importlib.resources.files("streamfleet_jobs.spark") / name).read_text("utf-8"))


def ensure_connector(java: Java, report: Report, *, fetcher: Fetcher | None = None) -> tuple[Path, ...]:
    """Where the jars are."""
    cache = cache_directory()
    directory = cache / f"spark-kafka-connector-{CONNECTOR_VERSION}" / "jars"
    try:
        found = ensure_pinned(connector_jars(), directory, cache=cache, java=java, report=report, fetcher=fetcher)
    except BrokerError as error:
        raise UnavailableError(f"Spark's Kafka connector: {error.fact}", hint=error.hint) from error
    return tuple(found.directory / jar.file_name for jar in found.jars)
