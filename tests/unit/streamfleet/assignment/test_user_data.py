from __future__ import annotations

import uuid
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfleet.assignment import directory as directory_module
from streamfleet.assignment import user_data
from streamfleet.assignment.directory import decode_directory, encode_directory
from streamfleet.assignment.snapshot import Member, MemberReport, Plan, SubTopologyInfo, TaskKey
from streamfleet.assignment.user_data import ReceivedReport, decode_plan, decode_report, encode_plan, encode_report
from streamfleet.kafka.errors import MalformedGroupDataError

names = st.text(max_size=6)
tasks = st.builds(TaskKey, names, st.integers(0, 1000))
infos = st.builds(
    SubTopologyInfo,
    names,
    st.dictionaries(names, st.integers(1, 9), max_size=3),
    st.booleans(),
    st.lists(names, max_size=2).map(tuple),
)
reports = st.builds(
    MemberReport,
    process_id=names,
    topology_hash=names,
    sub_topologies=st.lists(infos, max_size=3, unique_by=lambda info: info.content_id).map(tuple),
    owned=st.frozensets(tasks, max_size=5),
    restoring=st.frozensets(tasks, max_size=5),
    standby=st.frozensets(tasks, max_size=5),
    offset_sums=st.dictionaries(tasks, st.integers(0, 2**60), max_size=5),
    transactional_id=st.none() | names,
    endpoint=st.none() | names,
    tags=st.dictionaries(names, names, max_size=2),
    rack=st.none() | names,
    shutdown_requested=st.booleans(),
)
task_tuples = st.frozensets(tasks, max_size=5).map(lambda s: tuple(sorted(s)))
plans = st.builds(
    Plan,
    active=task_tuples,
    standby=task_tuples,
    warmup=task_tuples,
    fence=st.lists(names, max_size=2).map(tuple),
    follow_up=st.booleans(),
    owners=st.dictionaries(tasks, names, max_size=5),
    endpoints=st.dictionaries(names, task_tuples, max_size=3),
    standby_endpoints=st.dictionaries(names, task_tuples, max_size=3),
    next_probe_ms=st.none() | st.integers(0, 2**40),
    shutdown=st.booleans(),
)
REPORT = MemberReport(process_id="p", topology_hash="h", sub_topologies=())
EMPTY = Plan(active=(), standby=(), fence=(), follow_up=False, owners={}, endpoints={}, shutdown=False)
SEEN = ReceivedReport(Member(member_id="m", report=REPORT), "digest", "incarnation")


def encoded(report: MemberReport = REPORT, counter: int = 0) -> bytes:
    return encode_report(report, generation_id=7, counter=counter, digest="digest", incarnation="incarnation")


@given(reports)
def test_reports_read_back(report):
    received = decode_report("m", encoded(report))
    assert received == ReceivedReport(Member(member_id="m", report=report, generation_id=7), "digest", "incarnation")


def test_peers_travel_with_a_report_and_older_reports_have_none():
    told = encode_report(REPORT, generation_id=7, counter=0, digest="d", incarnation="i", peers=("id-b", "id-c"))
    assert decode_report("m", told).member.peers == ("id-b", "id-c")
    assert decode_report("m", encoded()).member.peers == ()


@given(st.frozensets(tasks, max_size=3))
def test_promises_travel_both_ways(promised):
    plan = Plan(active=(), standby=(), fence=(), follow_up=True, owners={}, endpoints={}, shutdown=False)
    told = decode_plan(encode_plan(plan, seen=SEEN, promised=promised)).promised
    assert set(told) == promised
    bytes_ = encode_report(REPORT, generation_id=7, counter=0, digest="d", incarnation="i", promised=told)
    assert decode_report("m", bytes_).member.promised == promised


@given(st.frozensets(tasks, max_size=3), st.frozensets(tasks, max_size=3))
def test_what_a_member_had_before_is_told(previous, previous_standby):
    bytes_ = encode_report(
        REPORT,
        generation_id=7,
        counter=0,
        digest="d",
        incarnation="i",
        previous=previous,
        previous_standby=previous_standby,
    )
    member = decode_report("m", bytes_).member
    assert (member.previous, member.previous_standby) == (previous, previous_standby)


@given(plans)
def test_plans_read_back(plan):
    received = decode_plan(encode_plan(plan, seen=SEEN))
    assert (received.plan, received.seen_digest, received.seen_incarnation) == (plan, "digest", "incarnation")
    assert received.refusal is None


def test_a_directory_that_was_encoded_before_is_taken_as_it_is():
    plan = Plan(active=(), standby=(), fence=(), follow_up=False, owners={}, endpoints={"h:1": ()}, shutdown=False)
    directory = encode_directory(plan)
    assert encode_plan(plan, seen=SEEN, directory=directory) == encode_plan(plan, seen=SEEN)


@pytest.mark.parametrize("damage", [b"garbage", encode_directory(EMPTY)[:-2], zlib.compress(b"no")], ids=repr)
def test_a_damaged_directory_is_malformed(damage):
    with pytest.raises(MalformedGroupDataError, match="the directory in a plan"):
        decode_directory(damage)


def test_a_directory_that_unpacks_without_end_is_malformed(monkeypatch):
    monkeypatch.setattr(directory_module, "MAX_BYTES", 100)
    with pytest.raises(MalformedGroupDataError, match="more than 100 bytes"):
        decode_directory(zlib.compress(b"\0" * 10_000))


def test_the_plans_of_fifty_members_with_a_thousand_tasks_fit_into_one_record():
    tasks_of = {f"app-{uuid.uuid4().hex}-0": range(n * 20, n * 20 + 20) for n in range(50)}
    owners = {TaskKey(f"content-{p % 5}", p): owner for owner, ps in tasks_of.items() for p in ps}
    endpoints = {
        f"10.0.3.{number}:8080": tuple(task for task, name in owners.items() if name == owner)
        for number, owner in enumerate(tasks_of)
    }
    plan = Plan(active=(), standby=(), fence=(), follow_up=False, owners=owners, endpoints=endpoints, shutdown=False)
    assert 50 * len(encode_plan(plan, seen=SEEN)) < 500_000  # brokers allow a million


def test_a_refusal_reads_back():
    assert decode_plan(user_data.encode_refusal("too old")).refusal == "too old"


def test_user_data_is_never_empty():
    assert encoded()
    assert encode_plan(EMPTY, seen=SEEN)


def test_another_counter_makes_other_bytes():
    assert encoded(counter=1) != encoded(counter=2)


@pytest.mark.parametrize(
    ("received", "message"),
    [
        (b"", "is empty"),
        (b"\x01", "is empty"),
        (b"\x09\x02" + encoded()[2:], "has version 9, and this is version 1"),
        (b"\x01\x01not messagepack", "cannot be read"),
        (encoded()[:-3], "cannot be read"),
        (b"\x01\x01\x80", "cannot be read"),
    ],
    ids=["nothing", "one byte", "from the future", "garbage", "cut off", "nothing in it"],
)
def test_what_cannot_be_read_says_so(received, message):
    with pytest.raises(MalformedGroupDataError, match=message):
        decode_report("m", received)


def test_a_newer_version_that_can_be_read_is_read():
    assert decode_report("m", b"\x02\x01" + encoded()[2:]).member.report == REPORT


def test_a_thousand_tasks_take_a_few_kilobytes():
    owned = frozenset(TaskKey(f"content-{sub}", partition) for sub in range(10) for partition in range(100))
    assert len(encoded(MemberReport(process_id="p", topology_hash="h", sub_topologies=(), owned=owned))) < 4_000
