from __future__ import annotations

import pytest

from streamfleet.assignment import user_data
from streamfleet.assignment.slot_memory import SlotMemory, SlotTasks
from streamfleet.assignment.snapshot import MemberReport, SubTopologyInfo, TaskKey
from streamfleet.assignment.streams_protocol import StreamsProtocol
from streamfleet.kafka.group_protocol import Subscriber

INFO = SubTopologyInfo("content", {"topic": 2}, stateful=True)
T0, T1 = INFO.tasks()
ONE = SlotTasks(frozenset({T0}))


def test_what_was_saved_is_loaded_by_the_next_process(tmp_path):
    tasks = SlotTasks(frozenset({T0}), frozenset({T1}))
    SlotMemory(tmp_path / "slot").save(tasks)
    assert SlotMemory(tmp_path / "slot").load() == tasks


def test_there_is_nothing_at_first(tmp_path):
    assert SlotMemory(tmp_path / "slot").load() == SlotTasks()


@pytest.mark.parametrize("damaged", [b"", b"[]", b'{"active": {"content": ["x"]}}', b"\xff\xfe"], ids=repr)
def test_a_damaged_file_is_nothing(tmp_path, damaged):
    (tmp_path / "slot").write_bytes(damaged)
    assert SlotMemory(tmp_path / "slot").load() == SlotTasks()


def test_a_directory_that_cannot_be_written_to_is_no_error_and_is_tried_again(tmp_path):
    memory = SlotMemory(tmp_path / "missing" / "slot")
    memory.save(ONE)
    (tmp_path / "missing").mkdir()
    memory.save(ONE)
    assert memory.load() == ONE


def test_the_same_tasks_are_written_once(tmp_path):
    memory = SlotMemory(tmp_path / "slot")
    memory.save(ONE)
    (tmp_path / "slot").unlink()
    memory.save(ONE)
    assert not (tmp_path / "slot").exists()


def test_a_member_tells_what_it_had_unless_it_still_has_it(tmp_path):
    report = MemberReport(process_id="a", topology_hash="h", sub_topologies=(INFO,))

    def previous(protocol: StreamsProtocol, told: MemberReport) -> frozenset[TaskKey]:
        data = protocol.subscribe(told, generation_id=-1, counter=0).user_data
        return user_data.decode_report("a", data).member.previous

    first = StreamsProtocol(memory=SlotMemory(tmp_path / "slot"))
    assert previous(first, report) == frozenset()
    plans = first.assign([Subscriber("a", None, first.subscribe(report, generation_id=-1, counter=0))])
    first.receive(report, plans["a"])
    owning = MemberReport(process_id="a", topology_hash="h", sub_topologies=(INFO,), owned=frozenset({T0}))
    assert previous(first, owning) == {T1}
    assert previous(StreamsProtocol(memory=SlotMemory(tmp_path / "slot")), report) == {T0, T1}
