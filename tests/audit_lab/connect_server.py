"""A Spark Connect server of the pyspark package, in a process of its own on loopback, with the Kafka connector's jars."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyspark

from streamfleet_devbroker.directories import cache_directory
from streamfleet_devbroker.java import find_java
from streamfleet_jobs.spark.java_home import java_home
from streamfleet_jobs.spark.session import connector_paths

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextlib.contextmanager
def connect_server(directory, seconds=90):
    """Its address, `sc://127.0.0.1:PORT`, once it answers."""
    port = _free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": 2,
        "spark.sql.warehouse.dir": directory / "warehouse",
    }
    jars = ",".join(map(str, connector_paths(lambda _: None)))
    command = [Path(pyspark.__file__).parent / "bin" / "spark-submit", "--class", SERVER, "--master", "local[2]"]
    command += ["--driver-memory", "1g", "--jars", jars]
    command += [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    java = java_home(find_java(cache_directory(), lambda _: None), cache_directory())
    environment = {
        **os.environ,
        "JAVA_HOME": str(java),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    log = directory / "connect.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [*command, "spark-internal"], cwd=directory, env=environment, stdout=out, stderr=out, start_new_session=True
        )
    try:
        _until_open(port, process, log, seconds)
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)


def _until_open(port, process, log, seconds):
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        assert process.poll() is None, f"the server ended:\n{log.read_text()[-3000:]}"
        assert time.monotonic() < deadline, f"not open in {seconds} s:\n{log.read_text()[-3000:]}"
        time.sleep(0.2)


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
