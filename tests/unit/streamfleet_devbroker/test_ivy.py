"""What Ivy says is turned into progress and reasons; a program that speaks like Ivy stands in for it."""

from pathlib import Path

import pytest

from streamfleet_devbroker import ivy
from streamfleet_devbroker.errors import JarsUnavailableError
from streamfleet_devbroker.jars import broker_jars
from streamfleet_devbroker.java import Java


@pytest.fixture
def fetch(tmp_path):
    """Runs ivy.fetch with a Java that prints the given lines."""
    (tmp_path / "ivy").mkdir()
    (tmp_path / "ivy" / "ivy.jar").touch()
    told: list[str] = []

    def run(*lines: str, exit_code: int = 0) -> list[str]:
        java = tmp_path / "java"
        java.write_text("#!/bin/sh\ncat <<'END'\n" + "\n".join(lines) + f"\nEND\nexit {exit_code}\n")
        java.chmod(0o755)
        ivy.fetch(broker_jars()[:2], tmp_path, cache=tmp_path, java=Java(Path(java), 21), report=told.append)
        return told

    return run


def test_every_arrived_jar_is_told(fetch):
    told = fetch("\t[SUCCESSFUL ] org.example#one;1!one.jar (3ms)", "\t[SUCCESSFUL ] org.example#two;1!two.jar (3ms)")
    assert told[1:] == ["1 of 2: org.example#one;1", "2 of 2: org.example#two;1"]


def test_the_cause_is_told_rather_than_the_summary(fetch):
    with pytest.raises(JarsUnavailableError, match="UnknownHostException.*connect this machine to the network once"):
        fetch(
            ":: UNRESOLVED DEPENDENCIES ::", "\tServer access error (java.net.UnknownHostException: repo)", exit_code=1
        )


def test_a_certificate_that_java_does_not_trust_has_a_hint_of_its_own(fetch):
    with pytest.raises(JarsUnavailableError, match="PKIX path building failed.*javax.net.ssl.trustStore"):
        fetch("\tServer access error (javax.net.ssl.SSLHandshakeException: PKIX path building failed)", exit_code=1)


def test_a_failure_without_a_word_is_told_by_its_exit_code(fetch):
    with pytest.raises(JarsUnavailableError, match="exit code 7"):
        fetch("nothing of interest", exit_code=7)
