import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.apps.orders import topology
from streamfleet_platform.errors import InvalidLockError
from streamfleet_platform.topologies.lock import TopologyLock

EXAMPLE = Path(__file__).parent / "fleet/apps/orders.lock.json"


def test_the_example_lock_is_up_to_date():
    assert TopologyLock.from_file(EXAMPLE.read_bytes()) == TopologyLock.from_topology_json(topology().to_json())


def test_a_lock_survives_its_file():
    lock = TopologyLock.from_topology_json(topology().to_json())
    assert TopologyLock.from_file(lock.to_file()) == lock
    assert json.loads(lock.to_file())["hash"] == lock.hash


def test_a_lock_that_was_edited_is_refused():
    edited = EXAMPLE.read_bytes().replace(b'"rocksdb"', b'"in_memory"', 1)
    with pytest.raises(InvalidLockError, match="says its hash is"):
        TopologyLock.from_file(edited)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"format": 1}', b'{"format": 2}', b"\xff", b"[" * 100_000])
def test_what_is_no_lock_is_refused(data):
    with pytest.raises(InvalidLockError):
        TopologyLock.from_file(data)


@given(st.data())
def test_a_lock_with_a_part_missing_is_refused_and_never_a_surprise(data):
    content = json.loads(topology().to_json())
    target = content
    while isinstance(target, dict | list) and target:
        keys = list(target) if isinstance(target, dict) else list(range(len(target)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(target[key], dict | list) or data.draw(st.booleans()):
            target[key] = data.draw(st.sampled_from([None, 5, "x", [], {}]))
            break
        target = target[key]
    try:
        lock = TopologyLock.from_topology_json(json.dumps(content))
    except InvalidLockError:
        return
    lock.generated_names()
    assert isinstance(lock.sources() | lock.sinks(), frozenset)
    assert TopologyLock.from_file(lock.to_file()) == lock
