"""What the leader of a group is told about the group's own offsets."""

from types import SimpleNamespace

import pytest
from tests.unit.streamfleet.kafka.scripted_coordinator import HandClock, ScriptedCoordinator

from streamfleet.ids import TopicPartition
from streamfleet.kafka.error_codes import ErrorCode
from streamfleet.kafka.errors import GroupTimeoutError, UnstableOffsetError
from streamfleet.kafka.group_cluster import GroupCluster
from streamfleet.kafka.offset_messages import CommittedOffset, FetchAnswer
from streamfleet.ports import OffsetKind

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
STABLE = FetchAnswer(ErrorCode.NONE, {P0: ErrorCode.NONE, P1: ErrorCode.NONE}, {P1: CommittedOffset(9, "note")})
OPEN = FetchAnswer(ErrorCode.NONE, {P0: ErrorCode.UNSTABLE_OFFSET_COMMIT, P1: ErrorCode.NONE}, {})


@pytest.fixture
def broker():
    return ScriptedCoordinator(HandClock())


@pytest.fixture
def cluster(broker):
    admin = SimpleNamespace(
        list_offsets=lambda partitions, kind: dict.fromkeys(partitions, 7), partition_racks=lambda names: {P0: names}
    )
    return GroupCluster(admin, "group", broker, broker.clock, timeout_ms=1_000)


def test_offsets_of_the_group_are_those_it_has_committed(broker, cluster):
    broker.script("OffsetFetch", STABLE)
    assert cluster.committed({P0, P1}) == {P1: 9}


def test_a_transaction_that_stays_open_does_not_keep_the_leader_from_planning(broker, cluster):
    def answer(call):
        if call.name == "OffsetFetch":
            return OPEN if call.request.require_stable else STABLE
        return ScriptedCoordinator.answer(broker, call)

    broker.answer = answer
    began_ms = broker.clock.now_ms()
    assert cluster.committed({P0, P1}) == {P1: 9}
    assert 1_000 <= broker.clock.now_ms() - began_ms < 2_000


def test_a_coordinator_that_does_not_answer_is_an_error_soon(broker, cluster):
    broker.default("OffsetFetch", FetchAnswer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, {}, {}))
    with pytest.raises(GroupTimeoutError) as raised:
        cluster.committed({P0})
    assert not isinstance(raised.value, UnstableOffsetError)


def test_topics_are_asked_for_as_ever(cluster):
    assert cluster.list_offsets([P0], OffsetKind.HIGH_WATERMARK) == {P0: 7}
    assert cluster.partition_racks(["t"]) == {P0: ["t"]}
