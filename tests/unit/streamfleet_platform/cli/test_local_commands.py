"""Commands about files here: definitions, locks, schemas, tokens, and the state of the machine."""

import json
import socket
import stat
import subprocess

import pytest

APP = """
apiVersion: streamfleet/v1
kind: StreamsApp
metadata: {name: orders, owner: payments}
spec:
  code: {entrypoint: "shop:topology"}
  cluster: main
  applicationId: orders
  inputs: {orders: {topic: orders}}
  outputs: {totals: {topic: totals}}
"""
FLEET = """
apiVersion: streamfleet/v1
kind: Fleet
metadata: {name: shop}
spec:
  clusters: {main: {bootstrap: "127.0.0.1:9"}}
"""
CODE = """
import streamfleet as sf

text = sf.serdes.string()


def topology():
    builder = sf.StreamsBuilder()
    orders = builder.stream("orders", key_serde=text, value_serde=text)
    counts = orders.group_by_key(key_serde=text, value_serde=text).count(store="STORE")
    counts.to_stream().to("totals", key_serde=text, value_serde=sf.serdes.long())
    return builder.build()
"""


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A repository with code and definitions, as a team has it."""
    root = tmp_path / "shop"
    (root / "fleet" / "apps").mkdir(parents=True)
    (root / "fleet" / "fleet.yaml").write_text(FLEET)
    (root / "fleet" / "apps" / "orders.yaml").write_text(APP)
    (root / "shop.py").write_text(CODE.replace("STORE", "counts"))
    monkeypatch.setenv("STREAMFLEET_SOURCE", str(root))
    monkeypatch.setenv("STREAMFLEET_FLEET", "fleet")
    return root


def git(root, *arguments):
    config = ["-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *config, "-C", str(root), *arguments], check=True, capture_output=True)


def test_definitions_are_valid_but_want_their_locks(run, shop):
    result = run("validate")
    assert (result.exit_code, "no lock yet: orders" in result.stdout) == (3, True)
    assert run("lock").exit_code == 0
    assert run("validate").exit_code == 0
    assert json.loads(run("validate", "--json").stdout) == {"apps": 1, "problems": [], "missing_locks": []}


def test_problems_are_told_with_their_lines(run, shop):
    (shop / "fleet" / "apps" / "orders.yaml").write_text(APP + "  standby: 1\n")
    result = run("validate")
    assert result.exit_code == 1
    assert "apps/orders.yaml:11:3: unknown field 'standby'" in result.stdout
    (problem,) = json.loads(run("validate", "--json").stdout)["problems"]
    assert (problem["file"], problem["line"]) == ("apps/orders.yaml", 11)


def test_a_lock_that_does_not_fit_what_is_declared_is_a_problem(run, shop):
    run("lock")
    declared = (shop / "fleet" / "apps" / "orders.yaml").read_text()
    (shop / "fleet" / "apps" / "orders.yaml").write_text(declared.replace("topic: totals", "topic: sums"))
    result = run("validate")
    assert result.exit_code == 1
    assert "topic totals is written by the code, but not among outputs" in result.stdout


def test_no_directory_is_an_error_and_not_a_trace(run, tmp_path):
    result = run("validate", "--source", tmp_path / "nowhere")
    assert (result.exit_code, "there is no directory" in result.stderr) == (1, True)


def test_a_lock_is_written_once_and_checked_afterwards(run, shop):
    assert run("lock", "--check").exit_code == 3
    assert not (shop / "fleet" / "apps" / "orders.lock.json").exists()
    assert run("lock").exit_code == 0
    assert run("lock", "--check").exit_code == 0
    assert run("lock", "nowhere").exit_code == 1


def test_code_that_gives_no_topology_is_told_with_its_trace(run, shop):
    (shop / "shop.py").write_text("def topology():\n    raise ValueError('no orders today')\n")
    result = run("lock")
    assert result.exit_code == 1
    assert "no orders today" in result.stderr and "shop.py" in result.stderr


def test_diff_says_what_a_change_means_for_the_state(run, shop):
    run("lock")
    assert (run("diff").exit_code, run("diff").stdout) == (0, "orders: UNCHANGED\n")
    (shop / "shop.py").write_text(CODE.replace("STORE", "sums"))
    result = run("diff")
    assert result.exit_code == 3
    assert "orders: MIGRATE; the state of counts is lost" in result.stdout
    told = json.loads(run("diff", "--json").stdout)["apps"]["orders"]
    assert (told["verdict"], told["lost_state"]) == ("MIGRATE", ["counts"])


def test_diff_against_a_commit_is_what_a_pull_request_shows(run, shop):
    run("lock")
    git(shop, "init")
    git(shop, "add", ".")
    git(shop, "commit", "-m", "first")
    (shop / "shop.py").write_text(CODE.replace("STORE", "sums"))
    run("lock")
    assert run("diff").exit_code == 0
    result = run("diff", "--against", "main")
    assert (result.exit_code, "MIGRATE" in result.stdout) == (3, True)
    assert run("diff", "--against", "nowhere").exit_code == 1


def test_an_app_without_a_lock_is_new(run, shop):
    result = run("diff")
    assert (result.exit_code, "orders: new" in result.stdout) == (3, True)


@pytest.mark.parametrize("kind", ["app", "fleet"])
def test_schemas_are_json(run, kind):
    schema = json.loads(run("schema", kind).stdout)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert "spec" in schema["properties"]


class TestTokens:
    @pytest.fixture
    def file(self, tmp_path):
        return tmp_path / "data" / "tokens.json"

    def test_a_token_is_shown_once(self, run, file):
        made = run("token", "create", "ci", "--tokens", file, "--role", "operator", "--team", "payments")
        token = made.stdout.strip()
        assert token.startswith("sft_")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        listed = run("token", "list", "--tokens", file)
        assert "ci" in listed.stdout and "payments" in listed.stdout
        as_json = run("token", "list", "--tokens", file, "--json").stdout
        assert token not in listed.stdout + as_json + file.read_text()
        assert "sha256" not in as_json

    def test_it_can_be_revoked(self, run, file):
        run("token", "create", "ci", "--tokens", file)
        assert run("token", "create", "ci", "--tokens", file).exit_code == 1
        assert run("token", "revoke", "ci", "--tokens", file).exit_code == 0
        assert run("token", "revoke", "ci", "--tokens", file).exit_code == 1
        assert json.loads(run("token", "list", "--tokens", file, "--json").stdout) == []

    def test_teams_and_all_teams_exclude_each_other(self, run, file):
        assert run("token", "create", "ci", "--tokens", file, "--team", "a", "--all-teams").exit_code == 1
        assert not file.exists()


class TestDoctor:
    def findings(self, result):
        return {each["what"]: each for each in json.loads(result.stdout)}

    def test_it_says_what_is_wrong_and_what_to_do(self, run, shop):
        result = run("doctor", "--json")
        found = self.findings(result)
        assert result.exit_code == 1
        assert found["definitions"]["level"] == "ok"
        assert found["cluster main"]["level"] == "bad" and "fleet.yaml" in found["cluster main"]["advice"]
        assert found["librdkafka"]["level"] == "ok"

    def test_a_machine_that_has_what_it_needs_is_well(self, run, tmp_path):
        result = run("doctor", "--source", tmp_path)
        assert result.exit_code == 0, result.stdout

    def test_files_that_others_can_read_are_found(self, run, tmp_path):
        file = tmp_path / "tokens.json"
        file.write_text("{}")
        file.chmod(0o644)
        result = run("doctor", "--source", tmp_path, "--data", tmp_path)
        assert result.exit_code == 1
        assert f"chmod 600 {file}" in result.stdout

    def test_invalid_definitions_are_found(self, run, shop):
        (shop / "fleet" / "fleet.yaml").write_text("spec: 1\n")
        assert self.findings(run("doctor", "--json"))["definitions"]["level"] == "bad"


def test_down_without_anything_is_harmless(run, tmp_path):
    result = run("down", "--data", tmp_path / "nothing")
    assert (result.exit_code, "there is nothing" in result.stderr) == (0, True)
    (tmp_path / "data").mkdir()
    for _ in range(2):
        result = run("down", "--data", tmp_path / "data", "--workers")
        assert (result.exit_code, "did not run" in result.stderr) == (0, True)


def test_a_directory_that_cannot_be_one_is_an_error_and_not_a_trace(run, tmp_path):
    (tmp_path / "file").write_text("")
    for verb in ("up", "server"):
        result = run(verb, "--data", tmp_path / "file" / "data")
        assert (result.exit_code, "cannot be the data directory" in result.stderr) == (1, True)


def test_a_port_that_is_taken_is_said_before_somebody_else_is_taken_for_the_server(run, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = run("up", "--data", tmp_path / "data", "--port", port)
    assert result.exit_code == 1
    assert f"port {port} cannot be used" in result.stderr and "another --port" in result.stderr
    assert not (tmp_path / "data" / "server.json").exists()


def test_links_have_a_name_and_an_address(run, tmp_path):
    result = run("up", "--data", tmp_path / "data", "--link", "nonsense")
    assert (result.exit_code, "is no link" in result.stderr) == (1, True)
