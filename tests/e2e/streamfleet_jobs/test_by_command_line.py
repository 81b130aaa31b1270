"""An app is bootstrapped and audited by the platform's own commands, with a server and its workers running."""

import json

import pytest
from confluent_kafka import Producer
from tests.audit_lab.fleet_user import FleetUser

from streamfleet.partitioner import partition_for

WORDS = [f"word-{number % 1000}" for number in range(20_000)]
SAMPLE = ("word-0", "word-17", "word-999")


@pytest.fixture
def user(broker, tmp_path):
    user = FleetUser(tmp_path, broker.bootstrap_servers)
    yield user
    user.run("down", "--workers", "--data", user.data)


def tamper(broker, topic, word):
    """Somebody else's record in the changelog."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(topic, (10**6).to_bytes(8, "big"), word.encode(), partition_for(word.encode(), 2))
    assert producer.flush(30) == 0


def test_an_app_is_bootstrapped_and_audited_at_a_terminal(user, broker):
    user.write(WORDS, land=True)
    user.run("lock", "words")
    user.run("up", "--data", user.data, "--port", 0)
    user.run("apply")
    user.until_counted(*SAMPLE)
    assert "stop it" in user.run("bootstrap", "words", "lake", "--engine", "local", expected=1)[1]
    assert "declares no bootstrap lakes" in user.run("bootstrap", "words", "lakes", expected=1)[1]

    user.run("stop", "words")
    user.write(WORDS[:3000], land=False)
    out, told = user.run("bootstrap", "words", "lake", "--engine", "spark-local", "--start")
    assert "2 partitions by files" in out
    assert all(f": {state}" in told for state in ("computed, 1,000 records", "staged", "changelog_written", "verified"))
    user.until_counted(*SAMPLE)

    out, _ = user.run("audit", "words", "--engine", "local")
    assert "audit of words: clean, 0 findings" in out
    (user.source / ".streamfleet" / "audits" / "words" / "report.html").read_text("utf-8")
    assert user.json("plan")["changes"][0]["action"] == "none", "a report is no file of the app"
    tamper(broker, "words-app-counts-e1-changelog", "word-17")
    user.write(["later"] * 50 + ["more", "and more"] * 25, land=False)  # commits move past what was planted
    user.until_counted("later", "more", "and more")
    found = user.json("audit", "words", "--engine", "spark-local", "--output", user.source / "second", expected=1)
    (finding,) = found["findings"]
    assert (finding["rule"], finding["store"], found["run"]["verdict"]) == ("equivalence", "counts", "errors")
    assert "1 key of the store is not what its changelog says" in finding["summary"]
    result = json.loads((user.source / "second" / "result.json").read_text())
    assert result["engine"] == "spark-local" and "word-17" not in json.dumps(result)  # keys are hashed
