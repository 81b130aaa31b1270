"""A broker that cannot start says why in one sentence and what to do; each cause is brought about for real."""

import os
import resource
import shutil
import socket
from pathlib import Path

import pytest

from streamfleet_devbroker import (
    BrokerConflictError,
    BrokerCrashedError,
    BrokerError,
    Cluster,
    ClusterSpec,
    JarsUnavailableError,
    JavaUnavailableError,
    NoSpaceError,
    NotReadyError,
    PortTakenError,
)
from streamfleet_devbroker.directories import KAFKA_VERSION, cache_directory
from streamfleet_devbroker.jars import broker_jars, ensure_jars, is_intact
from streamfleet_devbroker.java import find_java


def say_nothing(_: str) -> None:
    pass


def assert_one_sentence_with_a_hint(error: BrokerError) -> None:
    first_line = str(error).splitlines()[0]
    assert first_line == f"{error.fact}; {error.hint}"
    assert error.hint


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """pip has no index, Maven is not on PATH, and Ivy, which comes with PySpark, meets a proxy that is not there."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    nobody = [f"-D{scheme}.proxy{what}" for scheme in ("http", "https") for what in ("Host=127.0.0.1", "Port=1")]
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", " ".join(nobody))
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    binaries = tmp_path / "bin"
    binaries.mkdir()
    java = shutil.which("java")
    if java:
        (binaries / "java").symlink_to(os.path.realpath(java))
    monkeypatch.setenv("PATH", str(binaries))
    return binaries


@pytest.fixture
def cache_copy(tmp_path):
    """A cache of our own with the broker's jars in it, as they were fetched."""
    ensure_jars(cache_directory(), find_java(cache_directory(), say_nothing), say_nothing)
    copy = tmp_path / "cache"
    shutil.copytree(cache_directory() / f"kafka-{KAFKA_VERSION}", copy / f"kafka-{KAFKA_VERSION}")
    return copy


def damage(cache: Path) -> Path:
    jar = cache / f"kafka-{KAFKA_VERSION}" / "jars" / broker_jars()[0].file_name
    jar.write_bytes(jar.read_bytes()[:-1] + b"!")
    return jar


def test_an_occupied_port_is_named(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(PortTakenError, match=f"port {port} on 127.0.0.1 is taken; .*choose another port") as raised:
            Cluster.start(ClusterSpec(tmp_path, port=port))
    assert_one_sentence_with_a_hint(raised.value)


def test_without_java_and_without_an_index_the_hint_is_to_install_java(tmp_path, offline, monkeypatch):
    (offline / "java").unlink(missing_ok=True)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(JavaUnavailableError, match=r"no Java 17 or newer was found.*install Java 17\+") as raised:
        Cluster.start(ClusterSpec(tmp_path / "data", cache=tmp_path / "cache"))
    assert_one_sentence_with_a_hint(raised.value)


def test_a_java_that_is_too_old_is_named(tmp_path, offline, monkeypatch):
    old = offline / "java"
    old.unlink(missing_ok=True)
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    old.chmod(0o755)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(JavaUnavailableError, match=f"{old} is Java 11"):
        Cluster.start(ClusterSpec(tmp_path / "data", cache=tmp_path / "cache"))


def test_missing_jars_without_a_network_are_counted(tmp_path, offline):
    with pytest.raises(JarsUnavailableError, match=r"46 pinned jars are missing in .*network") as raised:
        Cluster.start(ClusterSpec(tmp_path / "data", cache=tmp_path / "cache"))
    assert_one_sentence_with_a_hint(raised.value)


def test_a_damaged_jar_without_a_network_keeps_the_broker_from_starting(tmp_path, cache_copy, offline):
    damage(cache_copy)
    with pytest.raises(JarsUnavailableError, match=r"1 pinned jars are missing or damaged in "):
        Cluster.start(ClusterSpec(tmp_path / "data", cache=cache_copy))


def test_a_damaged_jar_is_fetched_again(cache_copy):
    jar = damage(cache_copy)
    told: list[str] = []
    ensure_jars(cache_copy, find_java(cache_copy, told.append), told.append)
    assert is_intact(jar, broker_jars()[0])
    assert any(jar.name in message and "damaged" in message for message in told)


def test_a_complete_cache_needs_no_network(tmp_path, cache_copy, offline):
    with Cluster.start(ClusterSpec(tmp_path / "data", cache=cache_copy)) as cluster:
        assert cluster.alive_nodes() == (1,)


def test_a_disk_without_room_is_refused_before_anything_starts(tmp_path):
    with pytest.raises(NoSpaceError, match=r"only \d+ MB are free for .*, the broker wants \d+ MB") as raised:
        Cluster.start(ClusterSpec(tmp_path, min_free_mb=1 << 40))
    assert_one_sentence_with_a_hint(raised.value)


def test_a_file_that_cannot_grow_is_told_as_lack_of_space(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))  # a mebibyte: Kafka's index files are ten
    try:
        with pytest.raises(NoSpaceError, match="the broker could not write to .*: File too large") as raised:
            Cluster.start(ClusterSpec(tmp_path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert_one_sentence_with_a_hint(raised.value)


def test_a_crash_shows_the_end_of_the_log(tmp_path):
    with pytest.raises(BrokerCrashedError) as raised:
        Cluster.start(ClusterSpec(tmp_path, settings={"log.retention.ms": "a fortnight"}))
    assert "Invalid value a fortnight for configuration log.retention.ms" in str(raised.value)
    assert str(tmp_path / "node-1" / "broker.log") in str(raised.value)
    assert_one_sentence_with_a_hint(raised.value)


def test_a_broker_that_does_not_answer_in_time_is_stopped_again(tmp_path):
    with pytest.raises(NotReadyError, match="did not answer within 0 s") as raised:
        Cluster.start(ClusterSpec(tmp_path, ready_seconds=0.0))
    assert_one_sentence_with_a_hint(raised.value)


def test_two_nodes_are_refused(tmp_path):
    with pytest.raises(BrokerConflictError, match="choose 1 or 3 nodes"):
        Cluster.start(ClusterSpec(tmp_path, nodes=2))
