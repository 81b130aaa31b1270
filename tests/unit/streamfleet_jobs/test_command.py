"""How a job ends, by its exit code."""

import json

import pytest
from typer.testing import CliRunner

from streamfleet_jobs import errors
from streamfleet_jobs.__main__ import app

SPEC = {"run_id": "r", "app": "a", "application_id": "a", "bootstrap_servers": "127.0.0.1:1", "stores": []}


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(SPEC | {"output": str(tmp_path / "out")}))
    return str(path)


def raising(error):
    def run(*_):
        raise error

    return run


@pytest.mark.parametrize(
    ("ends", "code"),
    [
        (lambda *_: "clean", 0),
        (lambda *_: "warnings", 0),
        (lambda *_: "unknown", 0),
        (lambda *_: "errors", 1),
        (raising(errors.SpecError("fact", hint="hint")), 2),
        (raising(errors.UnavailableError("fact", hint="hint")), 3),
        (raising(errors.RefusedError("fact", hint="hint")), 4),
        (raising(KeyError("a defect")), 5),
    ],
)
def test_the_exit_code_says_how_an_audit_ended(monkeypatch, spec, ends, code):
    monkeypatch.setattr("streamfleet_jobs.audit.job.run", ends)
    done = CliRunner().invoke(app, ["audit", "--spec", spec])
    assert done.exit_code == code
    if code in (2, 3, 4):
        assert done.stderr == "error: fact; hint\n"
    if code == 5:
        assert "Traceback" in done.stderr and "a defect" in done.stderr


@pytest.mark.parametrize(("verdict", "code"), [("clean", 0), ("warnings", 1), ("unknown", 1), ("errors", 1)])
def test_a_strict_audit_fails_at_anything_that_is_not_clean(monkeypatch, spec, verdict, code):
    monkeypatch.setattr("streamfleet_jobs.audit.job.run", lambda *_: verdict)
    assert CliRunner().invoke(app, ["audit", "--spec", spec, "--strict"]).exit_code == code


@pytest.mark.parametrize("job", ["audit", "bootstrap"])
def test_help_and_a_missing_spec(job, tmp_path):
    assert "--engine" in CliRunner().invoke(app, [job, "--help"]).stdout
    missing = CliRunner().invoke(app, [job, "--spec", str(tmp_path / "none.json")])
    assert missing.exit_code == 2 and "does not exist" in missing.stderr


@pytest.mark.parametrize("remote", ["", "http://127.0.0.1:15002"])
def test_spark_connect_needs_to_know_where(monkeypatch, spec, remote):
    monkeypatch.setenv("SPARK_REMOTE", remote)
    done = CliRunner().invoke(app, ["audit", "--spec", spec, "--engine", "spark-connect"])
    assert done.exit_code == 2 and "SPARK_REMOTE does not say" in done.stderr


def test_a_spark_connect_server_that_is_away_is_said_at_once(monkeypatch, spec):
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:9")
    done = CliRunner().invoke(app, ["audit", "--spec", spec, "--engine", "spark-connect"])
    assert done.exit_code == 3 and "no Spark Connect server answers at sc://127.0.0.1:9" in done.stderr
