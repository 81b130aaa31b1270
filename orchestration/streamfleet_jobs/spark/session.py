"""SparkSession for a job: in this process (spark-local), or on a server that runs already (spark-connect).

Called by the jobs. Only one session per process: the settings of the first one stick, which is why the JVM is started here and
nowhere else. Over Spark Connect the code that workers need is sent along; numpy, pyarrow and (for bootstraps) rocksdict must be
installed where they run, and the server brings the Kafka connector (`--jars`).
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from streamfleet_devbroker.directories import cache_directory
from streamfleet_devbroker.errors import BrokerError
from streamfleet_devbroker.java import find_java
from streamfleet_jobs.engines import EngineName
from streamfleet_jobs.errors import SpecError, UnavailableError
from streamfleet_jobs.progress import Report
from streamfleet_jobs.spark.connector_jars import ensure_connector
from streamfleet_jobs.spark.java_home import java_home

REMOTE_VARIABLE = "SPARK_REMOTE"
"""Where the Spark Connect server is: `sc://host:15002`. Spark's own name for it."""

CONNECT_PORT = 15002
CONNECT_SECONDS = 10.0
ARROW_BATCH_ROWS = 50_000
_SHIPPED = ("streamfleet_jobs", "streamfleet")


@contextmanager
def spark_session(
    engine: EngineName,
    report: Report,
    *,
    cores: int | None = None,
    memory: str = "2g",
    shuffle_partitions: int | None = None,
    java_options: str = "",
) -> Iterator[SparkSession]:
    """Open inside the block. `cores`, `memory` and `java_options` are of a JVM of our own; a server has its own."""
    if engine is EngineName.SPARK_CONNECT:
        session = _connect(report)
    else:
        session = _start(report, cores or os.cpu_count() or 2, memory, java_options)
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(ARROW_BATCH_ROWS))
    if shuffle_partitions is not None or engine is EngineName.SPARK_LOCAL:  # a server knows its own size
        shuffle_partitions = shuffle_partitions or 2 * (cores or os.cpu_count() or 2)
        session.conf.set("spark.sql.shuffle.partitions", str(shuffle_partitions))
    try:
        yield session
    finally:
        session.stop()


def connector_paths(report: Report) -> tuple[Path, ...]:
    """The connector's jars, for who starts a Spark Connect server."""
    java = find_java(cache_directory(), report)
    return ensure_connector(java, report)


def _start(report: Report, cores: int, memory: str, java_options: str) -> SparkSession:
    cache = cache_directory()
    try:
        java = find_java(cache, report)
    except BrokerError as error:
        raise UnavailableError(f"Spark cannot start: {error.fact}", hint=error.hint) from error
    jars = ensure_connector(java, report)
    os.environ["JAVA_HOME"] = str(java_home(java, cache))
    os.environ["PYSPARK_PYTHON"] = sys.executable  # else workers are whatever `python3` is on PATH
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ.pop(REMOTE_VARIABLE, None)  # else the builder would connect instead
    report(f"starting Spark in this process: {cores} cores, {memory} of heap")
    builder = SparkSession.builder.appName("streamfleet").master(f"local[{cores}]")
    for name, value in _settings(jars, memory, java_options).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _settings(jars: Sequence[Path], memory: str, java_options: str) -> dict[str, str]:
    settings = {
        "spark.jars": ",".join(map(str, jars)),
        "spark.driver.memory": memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / f"streamfleet-spark-{os.getuid()}"),
    }
    return settings | ({"spark.driver.extraJavaOptions": java_options} if java_options else {})


def _connect(report: Report) -> SparkSession:
    remote = os.environ.get(REMOTE_VARIABLE, "")
    if not remote.startswith("sc://"):
        raise SpecError(
            f"{REMOTE_VARIABLE} does not say where the Spark Connect server is",
            hint="set it to sc://host:15002, or use another engine",
        )
    report("connecting to the Spark Connect server")
    _check_reachable(remote)
    try:
        session = SparkSession.builder.remote(remote).getOrCreate()
        _ship_code(session)
    except PySparkException as error:
        told = (str(error).splitlines() or [type(error).__name__])[0]
        raise UnavailableError(f"no Spark Connect server answers at {remote}: {told[:200]}", hint="start it") from error
    return session


def _check_reachable(remote: str) -> None:
    """Spark's client itself would try for ten minutes, and not say why."""
    place = urlsplit(remote)
    try:
        socket.create_connection((place.hostname or "", place.port or CONNECT_PORT), CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        raise UnavailableError(
            f"no Spark Connect server answers at {remote}: {error}", hint=f"start it, or correct {REMOTE_VARIABLE}"
        ) from error


def _ship_code(session: SparkSession) -> None:
    """Workers import our modules; a server elsewhere may not have them, or older ones."""
    with tempfile.TemporaryDirectory(prefix="streamfleet-code-") as scratch:
        archive = Path(scratch) / "streamfleet_code.zip"
        with zipfile.ZipFile(archive, "w") as code:
            for package in _SHIPPED:
                root = Path(str(files(package)))
                for module in sorted(root.rglob("*.py")):
                    code.write(module, Path(package) / module.relative_to(root))
        with suppress(FileExistsError):
            session.addArtifacts(str(archive), pyfile=True)
