"""Section 4 of docs/first-hour.md as a newcomer follows it: the files, the worker's command and `try_it.py`, on a real broker."""

import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from streamfleet_devbroker.pytest_plugin import temporary_cluster

PAGE = (Path(__file__).resolve().parents[3] / "docs/first-hour.md").read_text("utf-8")


@pytest.fixture
def broker():
    """The page's topics have the names that a newcomer would choose first, and so have those of other tests."""
    with temporary_cluster(nodes=1) as cluster:
        yield cluster


@pytest.fixture
def directory(tmp_path, broker):
    """With the two files and the settings of the page; only the address is that of the tests' broker."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    for name, word in (("named_orders.py", "def named_orders"), ("try_it.py", "def try_it")):
        (code,) = (block for block in blocks if word in block)
        (tmp_path / name).write_text(code.replace("127.0.0.1:9092", broker.bootstrap_servers))
    (settings,) = re.findall(r"^printf .*$", PAGE, re.MULTILINE)
    settings = settings.replace("127.0.0.1:9092", broker.bootstrap_servers)
    subprocess.run(["/bin/sh", "-c", settings], cwd=tmp_path, check=True)
    return tmp_path


def test_the_third_app_of_the_page_runs_and_names_an_order(directory):
    (run,) = re.findall(r"^streamfleet (run .*)$", PAGE, re.MULTILINE)
    command = [sys.executable, "-c", "from streamfleet.cli import main; main()", *shlex.split(run)]
    log = (directory / "worker.log").open("w")
    worker = subprocess.Popen(command, cwd=directory, stdout=log, stderr=log)
    try:
        tried = subprocess.run(
            [sys.executable, "try_it.py"], cwd=directory, capture_output=True, text=True, timeout=100
        )
        assert (tried.returncode, tried.stdout) == (0, '{"name":"Ada","cents":100}\n'), (
            tried.stderr + (directory / "worker.log").read_text()
        )
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(40) == 0
    finally:
        worker.kill()
        worker.wait()
        log.close()
