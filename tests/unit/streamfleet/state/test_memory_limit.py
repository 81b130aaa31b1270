"""The memory a process may use, from pretended /proc and /sys, and what the databases get of it."""

import resource
import subprocess
import sys

import pytest

from streamfleet.state.memory_limit import database_memory_bytes, memory_limit_bytes

MIB = 2**20


def system(tmp_path, groups, **files):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("".join(f"{line}\n" for line in groups))
    for name, content in files.items():
        path = tmp_path / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n")
    return tmp_path


@pytest.fixture(autouse=True)
def no_other_limit(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def test_a_container_has_its_limit_at_the_root_of_what_it_sees(tmp_path):
    assert memory_limit_bytes(system(tmp_path, ["0::/"], **{"memory.max": 512 * MIB})) == 512 * MIB


def test_the_least_limit_of_the_own_group_and_those_above_holds(tmp_path):
    limits = {"memory.max": "max", "pods/memory.max": 300 * MIB, "pods/mine/memory.max": 400 * MIB}
    assert memory_limit_bytes(system(tmp_path, ["0::/pods/mine"], **limits)) == 300 * MIB


def test_the_first_version_has_a_hierarchy_for_memory(tmp_path):
    groups = ["9:name=systemd:/", "4:memory:/outer/name", "1:cpu:/"]
    limits = {"memory/memory.limit_in_bytes": 256 * MIB, "memory/outer/name/memory.limit_in_bytes": 9223372036854771712}
    assert memory_limit_bytes(system(tmp_path, groups, **limits)) == 256 * MIB


@pytest.mark.parametrize("said", ["max", "9223372036854771712"])
def test_no_limit_is_none(tmp_path, said):
    assert memory_limit_bytes(system(tmp_path, ["0::/"], **{"memory.max": said})) is None


def test_a_system_without_control_groups_has_no_limit(tmp_path):
    assert memory_limit_bytes(tmp_path) is None


def test_a_limit_of_the_address_space_counts():
    program = (
        "import resource; from streamfleet.state.memory_limit import memory_limit_bytes;"
        "resource.setrlimit(resource.RLIMIT_AS, (3 << 28, resource.RLIM_INFINITY)); print(memory_limit_bytes())"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert 0 < int(said) <= 3 << 28


@pytest.mark.parametrize(
    ("limit", "share"),
    [
        (None, 128 * MIB),
        (32 * MIB, 16 * MIB),
        (256 * MIB, 64 * MIB),
        (2048 * MIB, 512 * MIB),
        (64 * 1024 * MIB, 1024 * MIB),
    ],
)
def test_databases_get_a_quarter_within_bounds(limit, share):
    assert database_memory_bytes(limit) == share
