"""The local runtime with real processes: a small worker that does what a file in its slot says."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contracts.runtime_contract import RuntimeContract, until

from streamfleet_platform.errors import NotFoundError, PermanentError, StaleError
from streamfleet_platform.model.app_policies import SecretReference
from streamfleet_platform.runtime import keeper
from streamfleet_platform.runtime.api import WorkerPhase, WorkerSpec
from streamfleet_platform.runtime.local import LocalRuntime, LocalSettings, RestartPolicy

WORKER = """
import os, signal, sys, time
from pathlib import Path

def main():
    state = Path(sys.argv[sys.argv.index("--state-dir") + 1])
    with (state / "starts").open("a") as starts:
        starts.write(f"{os.getpid()}\\n")
    print("began", sys.argv, os.getcwd(), sys.path[0], sorted(os.environ.items()), flush=True)
    print(Path(sys.argv[sys.argv.index("--config") + 1]).read_text(), flush=True)
    if (state / "deaf").exists():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if (state / "greedy").exists():
        ballast = bytearray(80 << 20)
    while not (state / "end").exists():
        time.sleep(0.01)
    code, words = (state / "end").read_text().split(" ", 1)
    if not (state / "again").exists():
        (state / "end").unlink()
    print(words, file=sys.stderr)
    sys.exit(int(code))
"""
QUICK = RestartPolicy(first_pause=0.3, longest_pause=0.6, quick_failures=3)


def gone(pid):
    return keeper.started_at(pid) is None


def wait_for(condition, what, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@pytest.fixture
def code(tmp_path):
    directory = tmp_path / "code"
    directory.mkdir()
    (directory / "small_worker.py").write_text(WORKER)
    return directory


@pytest.fixture
def settings(tmp_path):
    return LocalSettings(tmp_path / "runtime", worker="small_worker:main", restarts=QUICK)


@pytest.fixture
def runtime(settings):
    runtime = LocalRuntime(settings)
    yield runtime
    for state in runtime.list():
        runtime.kill(state.app, state.slot, token=1 << 40)
    wait_for(lambda: not any(slot.is_taken() for slot in runtime._all()), "processes are left")


@pytest.fixture
def spec(code):
    base = WorkerSpec("orders", "orders-app", 0, "r1", code, "app:topology", {"commit.interval.ms": 100})
    return lambda slot=0, revision="r1": replace(base, slot=slot, revision=revision)


@pytest.fixture
def slot(settings):
    return settings.root / "slots" / "orders" / "0"


@pytest.fixture
def end(slot):
    def let_end(_spec, code, words):
        (slot / "state" / ".end").write_text(f"{code} {words}")
        (slot / "state" / ".end").rename(slot / "state" / "end")

    return let_end


@pytest.fixture
def lose(slot):
    def kill_both(_spec):
        record = keeper.read_json(slot / keeper.RECORD)
        keeper.send_signal(record["keeper"], signal.SIGKILL)
        keeper.send_signal(record["worker"], signal.SIGKILL)

    return kill_both


def starts(slot):
    return (slot / "state" / "starts").read_text().split()


class TestLocalRuntime(RuntimeContract):
    """All of the contract."""


def test_a_crashed_worker_comes_back_without_a_server_and_its_state_directory_stays(runtime, spec, slot, end):
    runtime.start(spec(), token=1)
    first = until(runtime, spec(), WorkerPhase.RUNNING).pid
    wait_for(lambda: (slot / "state" / "starts").exists(), "it never began")
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: len(starts(slot)) == 2, "it was not started again")
    state = until(runtime, spec(), WorkerPhase.RUNNING)
    assert state.pid != first and state.restarts == 1 and state.exit_code == -signal.SIGKILL


def test_quick_failures_are_a_crash_loop_that_a_new_server_sees(settings, runtime, spec, slot, end):
    runtime.start(spec(), token=1)
    until(runtime, spec(), WorkerPhase.RUNNING)
    (slot / "state" / "again").touch()
    end(spec(), 1, "error: poison at orders-0 offset 42")
    until(runtime, spec(), WorkerPhase.CRASH_LOOP)
    state = LocalRuntime(settings).describe("orders", 0)
    assert state.phase is WorkerPhase.CRASH_LOOP and state.restarts >= 3
    assert "poison at orders-0 offset 42" in state.reason and "times soon after its start" in state.reason
    assert len(starts(slot)) >= 3


def test_a_keeper_that_is_killed_takes_its_worker_along_and_its_successor_goes_on_counting(runtime, spec, slot, end):
    runtime.start(spec(), token=1)
    until(runtime, spec(), WorkerPhase.RUNNING)
    end(spec(), 1, "error: once")
    until(runtime, spec(), WorkerPhase.BACK_OFF)
    until(runtime, spec(), WorkerPhase.RUNNING)
    record = keeper.read_json(slot / keeper.RECORD)
    wait_for(lambda: len(starts(slot)) == 2, "it was not started again")
    keeper.send_signal(record["keeper"], signal.SIGKILL)
    until(runtime, spec(), WorkerPhase.LOST)
    assert gone(record["worker"]["pid"])
    runtime.start(spec(), token=1)
    assert until(runtime, spec(), WorkerPhase.RUNNING).restarts == 1


def test_a_worker_that_does_not_listen_is_killed_after_its_grace_period(runtime, spec, slot):
    slot.joinpath("state").mkdir(parents=True)
    (slot / "state" / "deaf").touch()
    runtime.start(spec(), token=1)
    pid = until(runtime, spec(), WorkerPhase.RUNNING).pid
    wait_for(lambda: "began" in runtime.logs("orders", 0, 100), "it never began")
    assert runtime.stop("orders", 0, token=1, grace_seconds=0.5).phase is WorkerPhase.STOPPING
    assert "grace period was over" in until(runtime, spec(), WorkerPhase.STOPPED).reason
    assert gone(pid)


def test_a_worker_with_too_much_memory_is_killed_and_said_so(runtime, spec, slot):
    slot.joinpath("state").mkdir(parents=True)
    (slot / "state" / "greedy").touch()
    runtime.start(replace(spec(), memory_bytes=60 << 20), token=1)
    state = until(runtime, spec(), WorkerPhase.BACK_OFF, WorkerPhase.CRASH_LOOP)
    assert "may use 60 MiB" in state.reason


STEPS = ["fenced", "locked", "prepared", "ordered", "spawned"]
KILLED_SERVER = """
import os, signal, sys
from pathlib import Path
from streamfleet_platform.runtime.api import WorkerSpec
from streamfleet_platform.runtime.local import LocalRuntime, LocalSettings

root, code, at, verb = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4]
def step(name):
    if name == at:
        os.kill(os.getpid(), signal.SIGKILL)
runtime = LocalRuntime(LocalSettings(root, worker="small_worker:main"), on_step=step)
if verb == "start":
    runtime.start(WorkerSpec("orders", "orders-app", 0, "r1", code, "app:topology", {"commit.interval.ms": 100}), token=1)
else:
    runtime.stop("orders", 0, token=1, grace_seconds=5)
"""


def killed_server(settings, code, step, verb):
    done = subprocess.run([sys.executable, "-c", KILLED_SERVER, settings.root, code, step, verb], check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize("step", STEPS)
def test_a_server_killed_anywhere_in_start_leaves_one_worker_or_none_and_its_successor_has_one(
    settings, runtime, spec, slot, code, step
):
    killed_server(settings, code, step, "start")
    runtime.start(spec(), token=2)
    pid = until(runtime, spec(), WorkerPhase.RUNNING).pid
    wait_for(lambda: (slot / "state" / "starts").exists(), "it never began")
    runtime.start(spec(), token=2)
    assert starts(slot) == [str(pid)] and runtime.describe("orders", 0).restarts == 0


@pytest.mark.parametrize("step", ["fenced", "ordered"])
def test_a_server_killed_anywhere_in_stop_leaves_a_worker_that_its_successor_stops(
    settings, runtime, spec, slot, code, step
):
    runtime.start(spec(), token=1)
    pid = until(runtime, spec(), WorkerPhase.RUNNING).pid
    killed_server(settings, code, step, "stop")
    runtime.stop("orders", 0, token=2, grace_seconds=5)
    until(runtime, spec(), WorkerPhase.STOPPED)
    assert gone(pid)


def test_an_app_whose_slots_are_all_forgotten_leaves_no_directory(runtime, spec, slot):
    for number in (0, 1):
        runtime.start(spec(slot=number), token=1)
        until(runtime, spec(slot=number), WorkerPhase.RUNNING)
        runtime.kill("orders", number, token=1)
        until(runtime, spec(slot=number), WorkerPhase.STOPPED)
    runtime.forget("orders", 1, token=1)
    assert slot.is_dir(), "another slot is there"
    runtime.forget("orders", 0, token=1)
    assert not slot.parent.exists()


def test_servers_that_start_a_slot_at_the_same_time_start_one_worker(settings, spec, slot, runtime):
    script = KILLED_SERVER.replace("if name == at:", "if False:")
    command = [sys.executable, "-c", script, settings.root, spec().code, "-", "start"]
    servers = [subprocess.Popen(command) for _ in range(4)]
    assert [server.wait(30) for server in servers] == [0, 0, 0, 0]
    pid = until(runtime, spec(), WorkerPhase.RUNNING).pid
    wait_for(lambda: (slot / "state" / "starts").exists(), "it never began")
    assert starts(slot) == [str(pid)]


def test_no_signal_goes_to_a_process_that_only_has_the_same_number(runtime, spec, slot):
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        assert not keeper.send_signal({"pid": bystander.pid, "started": "1"}, signal.SIGKILL)
        runtime.start(spec(), token=1)
        until(runtime, spec(), WorkerPhase.RUNNING)
        record = keeper.read_json(slot / keeper.RECORD)
        keeper.send_signal(record["keeper"], signal.SIGKILL)
        until(runtime, spec(), WorkerPhase.LOST)
        keeper.write_json(slot / keeper.RECORD, record | {"keeper": {"pid": bystander.pid, "started": "1"}})
        (slot / keeper.WORKER).write_text(json.dumps({"pid": bystander.pid}))
        runtime.kill("orders", 0, token=1)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_the_environment_is_an_allow_list_and_a_secret_is_in_no_file_and_no_output(settings, spec, slot, tmp_path):
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "kafka").write_text("file-s3cret\n")
    environment = {
        "PATH": os.environ["PATH"],
        "REGISTRY_PASSWORD": "planted-s3cret",
        "OTHER": "not-allowed",
        "LD_PRELOAD": "/evil.so",
        "PYTHONPATH": "/evil",
        "PYTHONSTARTUP": "/evil.py",
    }
    settings = replace(settings, secret_directory=tmp_path / "secrets", secret_variables=lambda: ["REGISTRY_PASSWORD"])
    runtime = LocalRuntime(settings, environment=environment)
    wanted = replace(
        spec(),
        settings={"sasl.username": "${user}", "sasl.password": "${kafka}", "client.id": "a;$(touch x)\n`y`"},
        secrets={"user": SecretReference(env="REGISTRY_PASSWORD"), "kafka": SecretReference(file="kafka")},
    )
    runtime.start(wanted, token=1)
    try:
        until(runtime, wanted, WorkerPhase.RUNNING)
        wait_for(lambda: "client.id" in runtime.logs("orders", 0, 100), "it never began")
        told = runtime.logs("orders", 0, 100)
        assert "STREAMFLEET_SECRET_user', '***'" in told and "('OTHER'" not in told
        assert "evil" not in told and "not-allowed" not in told
        everything = told + repr(runtime.describe("orders", 0)) + wanted.digest
        for path in settings.root.rglob("*"):
            if path.is_file():
                everything += path.read_text(errors="replace")
                assert path.stat().st_mode & 0o077 == 0 or path.name == "keeper.log", path
        assert "s3cret" not in everything
    finally:
        runtime.kill("orders", 0, token=1)
        until(runtime, wanted, WorkerPhase.STOPPED)


def test_a_secret_that_may_not_be_named_or_is_not_there_keeps_a_worker_from_starting(runtime, spec):
    for reference, error in (
        ({"env": "HOME"}, PermanentError),
        ({"file": "none/here"}, NotFoundError),
    ):
        wanted = replace(spec(), settings={"sasl.password": "${p}"}, secrets={"p": SecretReference(**reference)})
        with pytest.raises(error):
            runtime.start(wanted, token=1)
    assert runtime.list() == []


def test_a_token_that_another_server_has_surpassed_is_refused_after_a_restart_too(settings, runtime, spec):
    runtime.start(spec(), token=5)
    with pytest.raises(StaleError):
        LocalRuntime(settings).stop("orders", 0, token=4)


def test_logs_are_rotated_by_size_and_read_across_files(tmp_path):
    log = keeper.Log(tmp_path, max_bytes=100, files=3, secrets=[b"hidden"])
    for number in range(40):
        log.write(b"line %d hid" % number)
        log.write(b"den\n")
    log.close()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["worker.log", "worker.log.1", "worker.log.2"]
    from streamfleet_platform.runtime.slot_directory import SlotDirectory

    tail = SlotDirectory(tmp_path, "a", 0).log_tail(8, 3).splitlines()
    assert tail == [f"line {number} ***" for number in range(32, 40)]
    assert all(path.stat().st_size <= 101 for path in Path(tmp_path).iterdir())
