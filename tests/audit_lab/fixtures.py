"""Fixtures of the jobs' test sets: one Spark session, a laboratory of topics, running apps."""

import pytest
from tests.audit_lab.running_app import RunningApp
from tests.audit_lab.topics import Lab

from streamfleet_jobs.engines import EngineName
from streamfleet_jobs.spark.session import spark_session


@pytest.fixture(scope="session")
def spark():
    """One session for the run: it takes longer to start than most tests to run."""
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    with spark_session(
        EngineName.SPARK_LOCAL, lambda _: None, cores=2, memory="1g", shuffle_partitions=2, java_options=quick
    ) as session:
        yield session


@pytest.fixture
def lab(broker):
    return Lab(broker)


@pytest.fixture
def running_app(lab, tmp_path):
    apps = []

    def start(**options):
        apps.append(RunningApp(lab, tmp_path, **options))
        return apps[-1]

    yield start
    for app in apps:
        app.close()
