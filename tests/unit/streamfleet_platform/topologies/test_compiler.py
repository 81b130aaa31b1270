import hashlib
import sys
from pathlib import Path

import pytest

from examples.apps.orders import topology
from streamfleet_platform.errors import CompileError
from streamfleet_platform.topologies.compiler import CompileLimits, compile_topology

ROOT = Path(__file__).parents[4]

GOOD = """
import streamfleet as sf

def topology():
    builder = sf.StreamsBuilder()
    builder.stream("in").to("out")
    return builder.build()
"""


@pytest.fixture
def app(tmp_path):
    def compile(body, **options):
        (tmp_path / "app.py").write_text(body)
        return compile_topology(tmp_path, "app:topology", **options)

    return compile


def test_the_lock_of_an_app_is_what_the_engine_writes_and_its_workers_report():
    compiled = compile_topology(ROOT, "examples.apps.orders:topology")
    assert compiled.lock.hash == hashlib.sha256(topology().to_json().encode()).hexdigest()[:16]
    assert compiled.lock.sources() == {"orders", "customers"}
    assert "examples.apps.orders" in sys.modules  # by this test, not by compiling


def test_a_builder_and_a_topology_itself_are_entry_points_too(app):
    assert app(GOOD + "topology = topology()\n").lock.sinks() == {"out"}
    builder = "import streamfleet as sf\ntopology = sf.StreamsBuilder()\ntopology.stream('in').to('out')\n"
    assert app(builder).lock.sinks() == {"out"}


def test_the_errors_of_an_app_come_with_the_end_of_their_traceback(app):
    with pytest.raises(CompileError, match=r"app:topology raised ZeroDivisionError: division by zero") as error:
        app("def topology():\n    return helper()\n\ndef helper():\n    return 1 / 0\n")
    tail = error.value.traceback_tail
    assert "in helper" in tail and "compile_child" not in tail and tail.endswith("ZeroDivisionError: division by zero")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("x = 1\n", "has no topology"),
        ("def topology(): return 5\n", "returned a int, not a Topology"),
        ("import nowhere\n", "No module named 'nowhere'"),
        ("def topology(\n", "SyntaxError"),
        ("import sys; sys.exit(3)\n", "SystemExit"),
        ("import os; os._exit(3)\n", "exit code 3"),
        ("import os, signal; signal.raise_signal(signal.SIGSEGV)\n", "SIGSEGV"),
    ],
)
def test_code_that_gives_no_topology_is_refused(app, body, message):
    with pytest.raises(CompileError, match=message):
        app(body)


DEEDS = [
    "import socket; socket.create_connection(('127.0.0.1', 9))",
    "import socket; socket.socket().bind(('127.0.0.1', 0))",
    "import socket; socket.getaddrinfo('localhost', 80)",
    "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9/')",
    "import subprocess; subprocess.run(['true'])",
    "import os; os.system('true')",
    "import os; os.fork()",
    "import os; os.execv('/bin/true', ['true'])",
    "import os; os.kill(os.getppid(), 0)",
    "import ctypes; ctypes.CDLL('libc.so.6')",
    "open('{outside}/written', 'w')",
    "import os; os.open('{outside}/written', os.O_CREAT | os.O_WRONLY)",
    "import os; os.remove('{outside}/secret')",
    "import os; os.rename('{outside}/secret', 'x')",
    "open('{outside}/secret').read()",
    "import pathlib; pathlib.Path('{outside}/secret').read_text()",
]
TRY_EACH = """
def topology():
    outcomes = []
    for deed in {deeds!r}:
        try:
            exec(deed, {{}})
        except BaseException as error:
            if "is not possible while a topology is compiled" in str(error):
                continue
            deed = f"{{deed}} raised {{error!r}}"
        outcomes.append(deed)
    raise ValueError(outcomes)
"""


def test_what_a_topology_does_not_need_is_refused(app, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret").write_text("hunter2")
    with pytest.raises(CompileError) as error:
        app(TRY_EACH.format(deeds=[deed.format(outside=outside) for deed in DEEDS]))
    assert error.value.fact == "app:topology raised ValueError: []"
    assert [path.name for path in outside.iterdir()] == ["secret"]


def test_the_child_has_no_network_where_namespaces_are_allowed(app):
    """Asked of the kernel, past Python's hooks: the only interface is a loopback that is down."""
    body = GOOD + "\ntopology().__class__\nraise SystemExit(open('/proc/self/net/dev').read().count(':'))\n"
    with pytest.raises(CompileError, match="SystemExit") as error:
        app(body)
    interfaces = int(error.value.fact.rpartition(": ")[2])
    assert interfaces == 1 if app(GOOD).has_network_namespace else interfaces >= 1


def test_the_child_sees_nothing_of_our_environment(app, monkeypatch):
    monkeypatch.setenv("KAFKA_PASSWORD", "hunter2")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    with pytest.raises(CompileError) as error:
        app("import os\nraise ValueError(sorted(os.environ))\n")
    assert error.value.fact.endswith("['HOME', 'LC_ALL', 'TMPDIR']")


def test_an_app_that_takes_too_long_is_ended(app):
    with pytest.raises(CompileError, match=r"took longer than 1.5 s"):
        app("import time\ntime.sleep(600)\n", limits=CompileLimits(seconds=1.5))


def test_an_app_that_takes_too_much_memory_is_ended(app):
    with pytest.raises(CompileError, match="MemoryError"):
        app("x = bytearray(3 * 2**30)\n")


def test_an_app_may_change_its_own_environment_and_directory(app):
    assert app("import os\nos.environ['TZ'] = 'UTC'\nos.mkdir('d')\nos.rmdir('d')\n" + GOOD).lock.sources() == {"in"}


def test_what_an_app_prints_does_not_disturb_the_answer(app):
    assert app("print('{}')\nimport sys; sys.stderr.write('x' * 100_000)\n" + GOOD).lock.sources() == {"in"}


def test_threads_that_an_app_leaves_running_do_not_keep_the_child(app):
    body = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\n"
    assert app(body + GOOD, limits=CompileLimits(seconds=20)).lock.sources() == {"in"}


def test_generated_names_are_refused_unless_allowed(app):
    counting = GOOD.replace('.to("out")', ".group_by(lambda k, v: v).count().to_stream().to('out')")
    with pytest.raises(CompileError, match="generated names: KSTREAM-AGGREGATE-STATE-STORE-"):
        app(counting)
    assert len(app(counting, require_names=False).lock.generated_names()) == 2


def test_nothing_is_left_behind(app, tmp_path, monkeypatch):
    workplace = tmp_path / "tmp"
    workplace.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(workplace))
    app("open('scratch', 'w').write('x')\n" + GOOD)
    assert list(workplace.iterdir()) == []
