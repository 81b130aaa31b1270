"""`audit` and `bootstrap` with jobs that say what real ones say: a child process, files and lines."""

import json
import sys
import textwrap

import pytest

from streamfleet_platform.cli import jobs
from streamfleet_platform.definitions.source import Source

AUDIT = """
import json, pathlib, sys
spec = json.loads(pathlib.Path(sys.argv[sys.argv.index("--spec") + 1]).read_text())
out = pathlib.Path(spec["output"])
result = {
    "run_id": spec["run_id"], "engine": sys.argv[sys.argv.index("--engine") + 1], "verdict": "VERDICT",
    "started_at": "2026-01-01T00:00:00Z", "ended_at": "2026-01-01T00:00:01Z", "more": "than the API takes",
}
(out / "result.json").write_text(json.dumps(result))
(out / "report.html").write_text("<h1>report</h1>")
print("progress")
sys.exit(CODE)
"""
BOOTSTRAP = """
import json, sys
for state in STATES:
    print(json.dumps({"state": state, "detail": {"rows": 3}}), flush=True)
print("not a state", file=sys.stderr)
sys.exit(CODE)
"""


@pytest.fixture
def job(tmp_path, monkeypatch):
    def job(source, **words):
        for word, value in words.items():
            source = source.replace(word, str(value))
        file = tmp_path / "job.py"
        file.write_text(textwrap.dedent(source))
        monkeypatch.setattr(
            jobs,
            "_command",
            lambda name, spec, engine: [sys.executable, file, name, "--spec", spec, "--engine", engine],
        )

    return job


@pytest.mark.parametrize(
    ("verdict", "job_code", "code"), [("clean", 0, 0), ("warnings", 0, 0), ("errors", 1, 1), ("unknown", 0, 1)]
)
def test_an_audit_is_run_recorded_and_shown(call, fleet, job, tmp_path, verdict, job_code, code):
    job(AUDIT, VERDICT=verdict, CODE=job_code)
    result = call("audit", "orders", "--engine", "local", "--output", tmp_path / "report")
    assert result.exit_code == code, result.output
    assert f"audit of orders: {verdict}" in result.stdout
    assert str(tmp_path / "report" / "report.html") in result.stdout
    ((run, html),) = fleet.reports.values()
    assert (run.verdict, run.engine, html) == (verdict, "local", "<h1>report</h1>")


def test_a_report_lies_where_it_is_no_part_of_the_source(call, job, tmp_path):
    job(AUDIT, VERDICT="clean", CODE=0)
    report = tmp_path / ".streamfleet" / "audits" / "orders" / "report.html"
    assert f"report: {report}" in call("audit", "orders").stdout and report.is_file()
    assert not [file.path for file in Source(tmp_path).at(None).code_files(()) if "report" in file.path]


def test_an_audit_without_a_result_is_no_audit(call, fleet, job, tmp_path):
    job("import sys; sys.exit(3)")
    result = call("audit", "orders", "--output", tmp_path / "report")
    assert (result.exit_code, "gave no result: exit code 3" in result.stderr) == (1, True)
    assert fleet.reports == {}


def test_a_result_of_an_earlier_run_is_not_taken_for_this_ones(call, fleet, job, tmp_path):
    job(AUDIT, VERDICT="clean", CODE=0)
    call("audit", "orders", "--output", tmp_path / "report")
    job("import sys; sys.exit(1)")
    assert call("audit", "orders", "--output", tmp_path / "report").exit_code == 1
    assert len(fleet.reports) == 1


def test_an_audit_as_json(call, job, tmp_path):
    job(AUDIT, VERDICT="clean", CODE=0)
    result = call("audit", "orders", "--output", tmp_path / "report", "--json")
    assert json.loads(result.stdout)["run"]["verdict"] == "clean"


def test_a_bootstrap_moves_as_its_job_says(call, fleet, job):
    job(BOOTSTRAP, STATES=["computed", "staged", "changelog_written", "verified"], CODE=0)
    result = call("bootstrap", "orders", "from-lake", "--engine", "local")
    assert result.exit_code == 0, result.output
    assert "bootstrap from-lake of orders: published" in result.stdout
    (run,) = fleet.runs.values()
    assert (run.state, run.detail) == ("published", {"rows": 3})


def test_a_bootstrap_that_was_cut_short_goes_on_when_called_again(call, fleet, job):
    job(BOOTSTRAP, STATES=["computed"], CODE=3)
    result = call("bootstrap", "orders", "from-lake")
    assert (result.exit_code, "call it again to go on" in result.stderr) == (1, True)
    job(BOOTSTRAP, STATES=["staged", "changelog_written", "verified"], CODE=0)
    assert call("bootstrap", "orders", "from-lake").exit_code == 0
    (run,) = fleet.runs.values()
    assert (run.state, run.token) == ("published", 2)


def test_a_job_whose_report_is_refused_is_ended(call, fleet, job, monkeypatch):
    job("import json, time\nprint(json.dumps({'state': 'computed'}), flush=True)\ntime.sleep(600)")
    started = fleet.start_bootstrap

    def taken_over(*given, **named):
        run = started(*given, **named)
        fleet.runs[run.id] = run.model_copy(update={"token": run.token + 1})
        return run

    monkeypatch.setattr(fleet, "start_bootstrap", taken_over)
    result = call("bootstrap", "orders", "from-lake")
    assert (result.exit_code, "taken over" in result.stderr) == (1, True)


def test_without_the_jobs_it_says_what_to_install(call, monkeypatch, tmp_path):
    monkeypatch.setattr(jobs, "JOBS", "streamfleet_no_jobs")
    result = call("audit", "orders", "--output", tmp_path / "report")
    assert (result.exit_code, "install streamfleet[spark]" in result.stderr) == (1, True)
