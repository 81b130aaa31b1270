"""The same jobs on a Spark Connect server that runs elsewhere: by their commands, with the same results as without Spark."""

import json
import os
import subprocess
import sys
import uuid

import msgspec
import pytest
from tests.audit_lab.bootstrap_world import World
from tests.audit_lab.connect_server import connect_server


@pytest.fixture(scope="module")
def remote(tmp_path_factory):
    with connect_server(tmp_path_factory.mktemp("connect")) as address:
        yield address


def by_command(spec, engine, remote):
    path = spec.directory.with_suffix(".json")
    path.write_bytes(msgspec.json.encode(spec))
    command = [sys.executable, "-m", "streamfleet_jobs", "audit", "--spec", str(path), "--engine", engine]
    environment = os.environ | {"SPARK_REMOTE": remote}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.returncode in (0, 1), done.stderr
    return json.loads((spec.directory / "result.json").read_text())


def test_an_audit_over_connect_says_what_the_local_engine_says(running_app, lab, remote):
    app = running_app()
    app.write((f"k{n}", f"text {n}") for n in range(5000))
    app.until_rows(5000)
    lab.write(app.changelogs["last"], [(b"stray", b"x", 0), (b"stray", b"x", 1)])
    app.write((f"later{n}", "x") for n in range(20))
    app.until_rows(5020)
    over_connect, local = (by_command(app.spec(), engine, remote) for engine in ("spark-connect", "local"))
    assert over_connect["engine"] == "spark-connect"
    assert {finding["rule"] for finding in local["findings"]} == {"equivalence", "placement"}
    for part in ("verdict", "findings", "partitions"):
        assert over_connect[part] == local[part]


def test_a_bootstrap_over_connect_computes_what_the_local_engine_computes(broker, tmp_path, remote):
    world = World(broker, tmp_path, f"connect-{uuid.uuid4().hex[:8]}")
    world.land(world.produce(30_000))
    local, told = world.run()
    over_connect, told_over_connect = world.run("spark-connect", remote=remote, **world.second_run())
    assert (local.returncode, over_connect.returncode) == (0, 0), over_connect.stderr
    digests = [
        json.loads((tmp_path / run / "computed.json").read_text())["detail"]["digests"] for run in ("run", "run-2")
    ]
    assert digests[0] == digests[1]
    assert told[-1]["detail"]["offsets"] == told_over_connect[-1]["detail"]["offsets"]
