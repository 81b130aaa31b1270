"""What touches the outside is a port. The parts that decide what happens to records read no clock, draw no number and start no
thread by themselves: whoever owns them passes it in, so that a test can step them by hand (docs/decisions/0017).
"""

import ast
from pathlib import Path

import pytest

import streamfleet

ENGINE = Path(streamfleet.__file__).parent
DECIDING = ("assignment", "changelog", "commit", "compiler", "dsl", "processor", "task", "thread", "topology")
BANNED = {"asyncio", "multiprocessing", "random", "secrets", "socket", "subprocess", "threading", "time", "uuid"}

ALLOWED = {
    (
        "assignment/streams_protocol.py",
        "secrets",
    ): "a name for this start of the process where the owner gives none; KafkaStreams does",
    ("changelog/restore_rate.py", "threading"): "a lock: one rate for all StateUpdaters of a process",
    (
        "changelog/updater_mailbox.py",
        "threading",
    ): "a lock: the StreamThread's and the StateUpdater's threads meet here",
    ("thread/step_gate.py", "threading"): "a lock: queries of other threads wait here for the end of a step",
}

LIBRARIES = {
    "confluent_kafka": {"kafka", "serdes/registered.py"},  # its Schema Registry clients, an extra
    "kafka": {"kafka"},
    "rocksdict": {"state/rocksdb_engine.py"},
}
"""Which part of the engine alone knows a library."""


def imports_of(path):
    """Names of the modules that a source imports, late imports included."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            yield node.module.partition(".")[0]


def sources(*folders):
    return [path for folder in folders for path in sorted((ENGINE / folder).rglob("*.py"))]


def found(folder):
    return {
        (path.relative_to(ENGINE).as_posix(), name)
        for path in sources(folder)
        for name in imports_of(path)
        if name in BANNED
    }


@pytest.mark.parametrize("folder", DECIDING)
def test_what_decides_has_no_clock_no_chance_and_no_thread_of_its_own(folder):
    allowed = {place for place in ALLOWED if place[0].startswith(f"{folder}/")}
    assert sources(folder)
    assert found(folder) == allowed


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_is_known_to_its_adapters_only(library):
    knowing = {path.relative_to(ENGINE).as_posix() for path in sources(".") if library in imports_of(path)}
    homes = LIBRARIES[library]
    assert knowing and {each for each in knowing if each not in homes and each.partition("/")[0] not in homes} == set()
