"""The directory: what every member is told about all the others, as bytes. The same for all, so it is made once.

Used by user_data.py and streams_protocol.py. In a large group this is nearly all of a plan, and the broker keeps the plans of
a group in one record, of a megabyte by default: so it is compressed.
"""

from __future__ import annotations

import zlib

import msgspec

from streamfleet.assignment.packed_tasks import PackedTasks, pack, unpack
from streamfleet.assignment.snapshot import Plan, TaskKey
from streamfleet.kafka.errors import MalformedGroupDataError

MAX_BYTES = 64 * 2**20
"""Unpacked. A million tasks are less."""


class Directory(msgspec.Struct, frozen=True, omit_defaults=True):
    """See Plan for what each is."""

    owners: dict[str, PackedTasks] = {}
    endpoints: dict[str, PackedTasks] = {}
    standby_endpoints: dict[str, PackedTasks] = {}

    def owner_of(self) -> dict[TaskKey, str]:
        return {task: owner for owner, packed in self.owners.items() for task in unpack(packed)}


def encode_directory(plan: Plan) -> bytes:
    by_owner: dict[str, list[TaskKey]] = {}
    for task, transactional_id in plan.owners.items():
        by_owner.setdefault(transactional_id, []).append(task)
    directory = Directory(
        owners={transactional_id: pack(tasks) for transactional_id, tasks in by_owner.items()},
        endpoints={endpoint: pack(tasks) for endpoint, tasks in plan.endpoints.items()},
        standby_endpoints={endpoint: pack(tasks) for endpoint, tasks in plan.standby_endpoints.items()},
    )
    encoded = zlib.compress(msgspec.msgpack.encode(directory))
    if decode_directory(encoded) != directory:
        raise MalformedGroupDataError(
            "the directory would not be read as it was meant", hint="it was not sent; this is a defect"
        )
    return encoded


def decode_directory(received: bytes) -> Directory:
    if not received:
        return Directory()
    try:
        unpacker = zlib.decompressobj()
        plain = unpacker.decompress(received, MAX_BYTES)
        if not unpacker.eof:
            raise MalformedGroupDataError(
                f"the directory in a plan is cut off, or has more than {MAX_BYTES} bytes",
                hint="is another kind of client in this group?",
            )
        return msgspec.msgpack.decode(plain, type=Directory)
    except (zlib.error, msgspec.MsgspecError) as error:
        raise MalformedGroupDataError(
            f"the directory in a plan cannot be read: {error}", hint="is another kind of client in this group?"
        ) from error
