"""Which secrets a server reads: those of the fleet that was accepted, wherever its source lies."""

import logging
import subprocess
from dataclasses import replace

import pytest
import structlog
from tests.unit.streamfleet_platform.simulated_world import FLEET, Lab

from streamfleet_platform.errors import PermanentError
from streamfleet_platform.model.app_policies import SecretReference
from streamfleet_platform.model.fleet_definition import Cluster
from streamfleet_platform.server import process
from streamfleet_platform.server.secret_variables import SecretVariables


@pytest.fixture
def lab(tmp_path):
    lab = Lab(tmp_path)
    yield lab
    lab.server.close()


@pytest.fixture(autouse=True)
def logs():
    root, before = logging.getLogger(), structlog.get_config()
    handlers, level = list(root.handlers), root.level
    yield
    structlog.configure(**before)
    root.handlers[:] = handlers
    root.setLevel(level)


def declare_secrets(lab, names):
    (lab.source / "fleet.yaml").write_text(FLEET + f"  secrets: {{env: [{names}]}}\n")


def test_variables_are_those_of_the_fleet_as_it_was_applied_last(lab):
    declare_secrets(lab, "FIRST")
    lab.deployed()
    told = []
    variables = SecretVariables(lab.server.database, told.append)
    assert variables() == {"FIRST"}
    declare_secrets(lab, "FIRST, SECOND")
    assert variables() == {"FIRST"}  # nobody has applied it
    lab.apply()
    assert variables() == {"FIRST", "SECOND"}
    assert told == [{"FIRST"}, {"FIRST", "SECOND"}]


def test_a_server_on_a_bare_repository_knows_the_secrets_of_its_fleet(lab, tmp_path, monkeypatch, capsys):
    declare_secrets(lab, "KAFKA_PASSWORD")
    lab.deployed()
    subprocess.run(["git", "init", "--quiet", "--bare", str(tmp_path / "bare.git")], check=True)
    monkeypatch.setenv("KAFKA_PASSWORD", "planted-secret")
    monkeypatch.setattr(process, "KafkaCluster", dict)
    outside = process.real_outside(replace(lab.settings, source=tmp_path / "bare.git"), lab.server.database)
    cluster = Cluster(
        bootstrap="b:1", config={"sasl.password": "${kafka}"}, secrets={"kafka": SecretReference(env="KAFKA_PASSWORD")}
    )
    assert outside.cluster_of(cluster)["sasl.password"] == "planted-secret"
    structlog.get_logger().warning("the broker refused planted-secret")
    assert "the broker refused ***" in capsys.readouterr().err
    other = cluster.model_copy(update={"secrets": {"kafka": SecretReference(env="HOME")}})
    with pytest.raises(PermanentError, match="HOME, which apps may not name"):
        outside.cluster_of(other)
