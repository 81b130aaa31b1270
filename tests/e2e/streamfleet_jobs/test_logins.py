"""A cluster that wants TLS and a login: the spec refers to the password, the job has it, and it is shown nowhere."""

import json
import os
import subprocess
import sys

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AclOperation, ResourceType
from tests.integration.streamfleet.kafka.secure_broker import SecureBroker

from streamfleet_jobs.secrets import DIRECTORY

PASSWORD = "app-secret"


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    broker = SecureBroker(tmp_path_factory.mktemp("secure"))
    try:
        for operation in (AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS):
            broker.allow("app", ResourceType.TOPIC, broker.topic, operation)
        for group in ("streamfleet-audit", "*"):
            broker.allow("app", ResourceType.GROUP, group, AclOperation.READ)
        producer = Producer({"bootstrap.servers": broker.admin_servers, "partitioner": "murmur2"})
        for n in range(1000):
            producer.produce(broker.topic, b"v", b"k%d" % (n % 100))
        assert producer.flush(30) == 0
        yield broker
    finally:
        broker.cluster.stop()


@pytest.mark.parametrize("engine", ["local", "spark-local"])
def test_an_audit_logs_in_with_a_secret_that_only_it_has(secure, tmp_path, engine):
    (tmp_path / "secrets" / "kafka").mkdir(parents=True)
    (tmp_path / "secrets" / "kafka" / "password").write_text(PASSWORD + "\n")
    config = secure.settings(password="${login}")
    partitions = len(secure.admin.list_topics(secure.topic, timeout=20).topics[secure.topic].partitions)
    spec = {
        "run_id": "r",
        "app": "shop",
        "application_id": "shop",
        "bootstrap_servers": config.pop("bootstrap.servers"),
        "output": str(tmp_path / "result"),
        "stores": [{"name": "s", "changelog": secure.topic, "partitions": partitions}],
        "guarantee": "at_least_once",
        "client_config": config,
        "secrets": {"login": {"file": "kafka/password"}},
    }
    (tmp_path / "spec.in.json").write_text(json.dumps(spec))
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "streamfleet_jobs",
            "audit",
            "--spec",
            str(tmp_path / "spec.in.json"),
            "--engine",
            engine,
        ],
        env={**os.environ, DIRECTORY: str(tmp_path / "secrets")},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "result" / "result.json").read_text())
    assert sum(row["records"] for row in result["partitions"]) == 1000
    assert [finding["rule"] for finding in result["findings"]] == ["log_unread"]  # headers want a plain listener
    written = [path.read_text("utf-8") for path in (tmp_path / "result").rglob("*") if path.is_file()]
    assert not any(PASSWORD in text for text in [done.stdout, done.stderr, *written])
