"""`make up` and `make down` as a newcomer meets them, with a home directory that is empty."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from examples.demo.live_orders import RESULTS_SECONDS, TOPICS, running_pid
from streamfleet_devbroker.directories import cache_directory

ROOT = Path(__file__).resolve().parents[3]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class Demo:
    """Runs the demonstration with directories of its own."""

    def __init__(self, directory: Path) -> None:
        self._pages = directory / "pages"
        self.worker_directory = directory / "pages-worker"
        home = {"HOME": str(directory), "XDG_STATE_HOME": str(directory / "state")}
        self._environment = {**os.environ, **home, "XDG_CACHE_HOME": str(cache_directory().parent)}

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "examples.demo", command, str(self._pages)]
        return subprocess.run(line, cwd=ROOT, env=self._environment, capture_output=True, text=True, timeout=240)

    def up(self) -> tuple[str, str]:
        """The addresses of the page and of the broker."""
        result = self.run("up")
        assert result.returncode == 0, result.stdout + result.stderr
        page = re.search(r"http://127\.0\.0\.1:\d+/", result.stdout)
        broker = re.search(r"broker\s+(127\.0\.0\.1:\d+)", result.stdout)
        assert page and broker, result.stdout
        return page.group(0), broker.group(1)


@pytest.fixture
def demo(tmp_path):
    demo = Demo(tmp_path)
    yield demo
    demo.run("down")


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        text: str = answer.read().decode()
        return text


def worker_of(page: str) -> str:
    worker = re.search(r'href="(http://[^"]+)/status"', read(page))
    assert worker
    return worker.group(1)


def retention_of(admin: AdminClient, topics: tuple[str, ...]) -> set[str]:
    described = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic) for topic in topics])
    return {future.result(30)["retention.ms"].value for future in described.values()}


def test_up_shows_the_app_can_be_repeated_and_survives_a_killed_worker_and_down_leaves_nothing(demo):
    page, broker = demo.up()
    assert "revenue-per-country" in read(page)
    assert read(page + "orders.svg").lstrip().startswith("<svg")
    admin = AdminClient({"bootstrap.servers": broker})
    assert len(admin.list_topics(timeout=30).brokers) == 1
    assert retention_of(admin, TOPICS) == {"-1"}, "the sample is old: the broker would delete it before long"

    pid, worker = running_pid(demo.worker_directory), worker_of(page)
    assert pid is not None and "running" in read(worker + "/status")
    assert demo.up() == (page, broker)
    assert running_pid(demo.worker_directory) == pid

    os.kill(pid, signal.SIGKILL)
    began = time.monotonic()
    assert demo.up() == (page, broker)
    assert time.monotonic() - began < RESULTS_SECONDS / 2, "it waited for the session of the worker that was killed"
    worker = worker_of(page)
    assert running_pid(demo.worker_directory) not in (None, pid) and "running" in read(worker + "/status")

    down = demo.run("down")
    assert down.returncode == 0
    assert "stopping the worker" in down.stdout
    with pytest.raises(urllib.error.URLError):
        read(worker + "/livez")
    with pytest.raises(urllib.error.URLError):
        read(page)
    assert "no broker is running" in demo.run("down").stdout


@pytest.mark.browser
def test_a_browser_shows_the_picture_and_the_results(demo, tmp_path):
    browser = next(path for name in BROWSERS if (path := shutil.which(name)))
    page, broker = demo.up()
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    shown = subprocess.run([browser, *options, "--dump-dom", page], capture_output=True, text=True, timeout=120).stdout
    assert f'<code id="broker">{broker}</code>' in shown
    assert shown.count("<table>") == 5  # two of the running app, two of the test driver, the internal topics
    assert "<svg" in shown
