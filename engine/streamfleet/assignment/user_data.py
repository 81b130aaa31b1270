"""Reports and plans as the bytes that travel through the group. Our own format: versioned, and never empty.

Called by streams_protocol.py. Two header bytes, the version that wrote the rest and the oldest version that can read it,
then MessagePack. Unknown fields are skipped, so a new field does not need a new oldest version. Tasks are packed as
partitions by content id, which keeps a thousand tasks in a few kilobytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from streamfleet.assignment.directory import decode_directory, encode_directory
from streamfleet.assignment.packed_tasks import PackedTasks, pack, unpack
from streamfleet.assignment.snapshot import Member, MemberReport, Plan, SubTopologyInfo, TaskKey
from streamfleet.kafka.errors import MalformedGroupDataError

VERSION = 1
READABLE_SINCE = 1

BodyT = TypeVar("BodyT")


class ReportBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    process_id: str
    topology_hash: str
    digest: str
    incarnation: str
    generation_id: int
    counter: int
    sub_topologies: list[tuple[str, dict[str, int], bool]] = []
    changelogs: dict[str, list[str]] = {}
    owned: PackedTasks = {}
    restoring: PackedTasks = {}
    standby: PackedTasks = {}
    promised: PackedTasks = {}
    previous: PackedTasks = {}
    previous_standby: PackedTasks = {}
    offset_sums: dict[str, dict[int, int]] = {}
    transactional_id: str | None = None
    peers: list[str] = []
    endpoint: str | None = None
    tags: dict[str, str] = {}
    rack: str | None = None
    shutdown_requested: bool = False


class PlanBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    active: PackedTasks = {}
    standby: PackedTasks = {}
    warmup: PackedTasks = {}
    promised: PackedTasks = {}
    fence: list[str] = []
    follow_up: bool = False
    directory: bytes = b""
    next_probe_ms: int | None = None
    shutdown: bool = False
    seen_digest: str = ""
    seen_incarnation: str = ""
    refusal: str | None = None


class ReceivedReport(msgspec.Struct, frozen=True):
    member: Member
    digest: str
    """Of the parts of the report that outlive a restart."""
    incarnation: str
    """Of the process that sent it."""


class ReceivedPlan(msgspec.Struct, frozen=True):
    plan: Plan
    seen_digest: str
    """Of the report the leader decided by."""
    seen_incarnation: str
    promised: tuple[TaskKey, ...]
    """What the next plan will probably add: to be told in the next report."""
    refusal: str | None


def encode_report(
    report: MemberReport,
    *,
    generation_id: int,
    counter: int,
    digest: str,
    incarnation: str,
    promised: Iterable[TaskKey] = (),
    previous: Iterable[TaskKey] = (),
    previous_standby: Iterable[TaskKey] = (),
    peers: Iterable[str] = (),
) -> bytes:
    body = ReportBody(
        process_id=report.process_id,
        topology_hash=report.topology_hash,
        digest=digest,
        incarnation=incarnation,
        generation_id=generation_id,
        counter=counter,
        sub_topologies=[(info.content_id, dict(info.sources), info.stateful) for info in report.sub_topologies],
        changelogs={info.content_id: list(info.changelogs) for info in report.sub_topologies if info.changelogs},
        owned=pack(report.owned),
        restoring=pack(report.restoring),
        standby=pack(report.standby),
        promised=pack(promised),
        previous=pack(previous),
        previous_standby=pack(previous_standby),
        offset_sums=_pack_sums(report.offset_sums),
        transactional_id=report.transactional_id,
        peers=list(peers),
        endpoint=report.endpoint,
        tags=dict(report.tags),
        rack=report.rack,
        shutdown_requested=report.shutdown_requested,
    )
    return _framed(body)


def decode_report(member_id: str, received: bytes) -> ReceivedReport:
    body = _read(received, ReportBody, "report")
    report = MemberReport(
        process_id=body.process_id,
        topology_hash=body.topology_hash,
        sub_topologies=tuple(
            SubTopologyInfo(*entry, changelogs=tuple(body.changelogs.get(entry[0], ())))
            for entry in body.sub_topologies
        ),
        owned=frozenset(unpack(body.owned)),
        restoring=frozenset(unpack(body.restoring)),
        standby=frozenset(unpack(body.standby)),
        offset_sums={TaskKey(c, p): n for c, sums in body.offset_sums.items() for p, n in sums.items()},
        transactional_id=body.transactional_id,
        endpoint=body.endpoint,
        tags=body.tags,
        rack=body.rack,
        shutdown_requested=body.shutdown_requested,
    )
    member = Member(
        member_id=member_id,
        report=report,
        generation_id=body.generation_id,
        promised=frozenset(unpack(body.promised)),
        previous=frozenset(unpack(body.previous)),
        previous_standby=frozenset(unpack(body.previous_standby)),
        peers=tuple(body.peers),
    )
    return ReceivedReport(member, body.digest, body.incarnation)


def encode_plan(
    plan: Plan, *, seen: ReceivedReport, promised: Iterable[TaskKey] = (), directory: bytes | None = None
) -> bytes:
    """`seen`: the member's report that the plan was made from; it finds in its plan whether that was its last word. `directory`:
    the plan's, if it was encoded before.
    """
    body = PlanBody(
        active=pack(plan.active),
        standby=pack(plan.standby),
        warmup=pack(plan.warmup),
        promised=pack(promised),
        fence=list(plan.fence),
        follow_up=plan.follow_up,
        directory=encode_directory(plan) if directory is None else directory,
        next_probe_ms=plan.next_probe_ms,
        shutdown=plan.shutdown,
        seen_digest=seen.digest,
        seen_incarnation=seen.incarnation,
    )
    return _framed(body)


def encode_refusal(reason: str) -> bytes:
    """For a member the leader cannot have in the group."""
    return _framed(PlanBody(refusal=reason))


def decode_plan(received: bytes) -> ReceivedPlan:
    body = _read(received, PlanBody, "plan")
    directory = decode_directory(body.directory)
    plan = Plan(
        active=unpack(body.active),
        standby=unpack(body.standby),
        warmup=unpack(body.warmup),
        fence=tuple(body.fence),
        follow_up=body.follow_up,
        owners=directory.owner_of(),
        endpoints={endpoint: unpack(tasks) for endpoint, tasks in directory.endpoints.items()},
        standby_endpoints={endpoint: unpack(tasks) for endpoint, tasks in directory.standby_endpoints.items()},
        next_probe_ms=body.next_probe_ms,
        shutdown=body.shutdown,
    )
    return ReceivedPlan(plan, body.seen_digest, body.seen_incarnation, unpack(body.promised), body.refusal)


def _pack_sums(sums: Mapping[TaskKey, int]) -> dict[str, dict[int, int]]:
    packed: dict[str, dict[int, int]] = {}
    for (content_id, partition), offset_sum in sorted(sums.items()):
        packed.setdefault(content_id, {})[partition] = offset_sum
    return packed


def _framed(body: ReportBody | PlanBody) -> bytes:
    encoded = bytes((VERSION, READABLE_SINCE)) + msgspec.msgpack.encode(body)
    if _read(encoded, type(body), "own") != body:
        raise MalformedGroupDataError(
            "user data would not be read as it was meant", hint="it was not sent; this is a defect"
        )
    return encoded


def _read(received: bytes, body_class: type[BodyT], what: str) -> BodyT:
    if len(received) < 2:
        raise MalformedGroupDataError(f"the {what} user data is empty", hint="is another kind of client in this group?")
    version, readable_since = received[0], received[1]
    if readable_since > VERSION:
        raise MalformedGroupDataError(
            f"the {what} user data has version {version}, and this is version {VERSION}",
            hint="finish the upgrade: all members of a group must understand its leader",
        )
    try:
        return msgspec.msgpack.decode(received[2:], type=body_class)
    except msgspec.MsgspecError as error:
        raise MalformedGroupDataError(
            f"the {what} user data cannot be read: {error}", hint="is another kind of client in this group?"
        ) from error
