"""References to secrets: taken from where whoever starts the job allows, named when they cannot be, and never shown."""

import io
import json
import os
import subprocess
import sys

import pytest

from streamfleet_jobs import secrets
from streamfleet_jobs.errors import SpecError
from streamfleet_jobs.secrets import DIRECTORY, VARIABLES, resolved

VALUE = "pa55-planted-here"
BY_VARIABLE = {"w": {"env": "LAB_W"}}


@pytest.fixture
def files(tmp_path):
    (tmp_path / "in" / "kafka").mkdir(parents=True)
    (tmp_path / "in" / "kafka" / "w").write_text(VALUE + "\n")
    (tmp_path / "outside").write_text(VALUE)
    (tmp_path / "in" / "leads-out").symlink_to(tmp_path / "outside")
    (tmp_path / "in" / "large").write_text("x" * 70_000)
    return {DIRECTORY: str(tmp_path / "in")}


def test_a_reference_takes_a_variable_that_is_listed():
    environment = {VARIABLES: "OTHER, LAB_W", "LAB_W": VALUE}
    given = {"sasl.password": "${w}", "sasl.username": "who", "retries": 3}
    assert resolved(given, BY_VARIABLE, environment) == {**given, "sasl.password": VALUE}


def test_a_reference_takes_a_file_below_the_directory_without_its_last_line_end(files):
    assert resolved({"a": "<${w}>"}, {"w": {"file": "kafka/w"}}, files) == {"a": f"<{VALUE}>"}


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({}, f"list it in {VARIABLES}"),
        ({"LAB_W": VALUE}, f"list it in {VARIABLES}"),
        ({"LAB_W": VALUE, VARIABLES: "LAB_"}, f"list it in {VARIABLES}"),
        ({VARIABLES: "LAB_W"}, "is not set"),
    ],
)
def test_a_variable_that_may_not_be_taken_is_named_with_its_setting(environment, words):
    with pytest.raises(SpecError, match="setting sasl.password takes secret w of variable LAB_W") as refused:
        resolved({"sasl.password": "${w}"}, BY_VARIABLE, environment)
    assert words in str(refused.value)
    assert VALUE not in str(refused.value)


@pytest.mark.parametrize("file", ["../outside", "leads-out", "/etc/hostname", "nowhere", "large", "kafka"])
def test_a_file_elsewhere_and_one_that_is_no_secret_are_refused(files, file):
    with pytest.raises(SpecError, match="setting a takes secret w of file"):
        resolved({"a": "${w}"}, {"w": {"file": file}}, files)


@pytest.mark.parametrize("places", [{}, {"w": {}}, {"w": {"env": "A", "file": "b"}}])
def test_a_secret_that_has_no_place_is_named(places):
    with pytest.raises(SpecError, match="setting a takes secret w, and the spec does not say where it is"):
        resolved({"a": "${w}"}, places, {})


def test_what_was_taken_is_masked_in_what_the_job_says(monkeypatch):
    monkeypatch.setattr(secrets, "_taken", set())
    told = io.StringIO()
    monkeypatch.setattr(sys, "stderr", told)
    from streamfleet_jobs.progress import to_stderr

    resolved({"a": "${w}"}, BY_VARIABLE, {VARIABLES: "LAB_W", "LAB_W": VALUE})
    to_stderr(f"the login {VALUE} is wrong")
    assert told.getvalue() == "the login *** is wrong\n"


NOBODY = "127.0.0.1:1"
CONFIG = {
    "security.protocol": "sasl_plaintext",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "who",
    "sasl.password": "${w}",
}
AUDIT = {
    "run_id": "r",
    "app": "shop",
    "application_id": "shop",
    "bootstrap_servers": NOBODY,
    "stores": [],
    "client_config": CONFIG,
    "secrets": BY_VARIABLE,
}


@pytest.mark.parametrize("allowed", [True, False])
def test_an_audit_of_a_cluster_with_a_login_takes_it_where_it_may_and_shows_it_nowhere(tmp_path, allowed):
    spec = tmp_path / "spec.in.json"
    spec.write_text(json.dumps({**AUDIT, "output": str(tmp_path / "result")}))
    environment = {**os.environ, "LAB_W": VALUE} | ({VARIABLES: "LAB_W"} if allowed else {})
    command = [sys.executable, "-m", "streamfleet_jobs", "audit", "--spec", str(spec)]
    code = (
        "import streamfleet_jobs.kafka.topics as t; t._SECONDS = 1.0; from streamfleet_jobs.__main__ import app; app()"
    )
    done = subprocess.run(
        [command[0], "-c", code, *command[3:]], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    if allowed:  # nobody is there
        assert (done.returncode, "the cluster does not answer" in done.stderr) == (3, True), done.stderr
    else:
        assert done.returncode == 2
        assert "setting sasl.password takes secret w of variable LAB_W" in done.stderr
    left = [path.read_text("utf-8") for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(VALUE in text for text in [done.stdout, done.stderr, *left])
