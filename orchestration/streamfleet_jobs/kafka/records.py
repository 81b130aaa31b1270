"""Records of one partition between two offsets, in pieces of columns. The local engine's reader, and that of tails.

Plain confluent-kafka with a short queue back-off: with librdkafka's own, a reader that is faster than its fetcher waits a second
again and again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from streamfleet_jobs.columns.row_digest import row_hashes
from streamfleet_jobs.columns.slim import SLIM
from streamfleet_jobs.errors import UnavailableError
from streamfleet_jobs.kafka.topics import client_settings

PIECE_RECORDS = 20_000
_SILENCE_SECONDS = 30.0
_POLL_SECONDS = 0.1  # consume() waits for all of a piece, or that long, also when the end is reached

_READER_SETTINGS: dict[str, str | int | float | bool] = {
    "group.id": "streamfleet-audit",  # librdkafka wants one; nothing is ever committed
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",  # what retention deletes meanwhile is not missed
    "isolation.level": "read_committed",
    "check.crcs": True,
    "fetch.queue.backoff.ms": 2,
    "queued.min.messages": 200_000,
    "queued.max.messages.kbytes": 65_536,
    "max.partition.fetch.bytes": 4 << 20,
}


def read_slim(
    bootstrap_servers: str,
    client_config: Mapping[str, str],
    place: tuple[str, int],
    offsets: tuple[int, int],
    *,
    timestamps: bool,
) -> Iterator[pa.RecordBatch]:
    """The committed records with offsets in [start, end), in slim columns."""
    start, end = offsets
    if start >= end:
        return
    consumer = Consumer(client_settings(bootstrap_servers, client_config) | _READER_SETTINGS)
    try:
        consumer.assign([TopicPartition(*place, start)])
        yield from (_slim(piece, timestamps=timestamps) for piece in _pieces(consumer, place, end))
    finally:
        consumer.close()


def _pieces(consumer: Consumer, place: tuple[str, int], end: int) -> Iterator[list[Message]]:
    silent = 0.0
    while True:
        records: list[Message] = []
        is_over = False
        try:
            polled = consumer.consume(PIECE_RECORDS, _POLL_SECONDS)
        except KafkaException as error:
            raise _unreadable(place, str(error)) from error
        for message in polled:
            problem = message.error()
            if problem is not None:
                if problem.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 -- its name
                    raise _unreadable(place, str(problem))
                is_over = True  # at the last stable offset, which is not before the pinned end
            elif (message.offset() or 0) >= end:
                is_over = True
            else:
                records.append(message)
        if records:
            yield records
        if is_over or (records and records[-1].offset() == end - 1):
            return
        silent = 0.0 if polled else silent + _POLL_SECONDS
        if silent >= _SILENCE_SECONDS:
            raise _unreadable(place, "nothing came")


def _unreadable(place: tuple[str, int], why: str) -> UnavailableError:
    return UnavailableError(
        f"{place[0]} partition {place[1]} cannot be read to its pinned end: {why}", hint="run the audit again"
    )


def _slim(records: list[Message], *, timestamps: bool) -> pa.RecordBatch:
    keys = [record.key() for record in records]
    values = [record.value() for record in records]
    stamps = [record.timestamp()[1] for record in records]
    return pa.record_batch(
        [
            pa.array([record.partition() for record in records], pa.int32()),
            pa.array([record.offset() for record in records], pa.int64()),
            pa.array(stamps, pa.int64()),
            pa.array(keys, pa.binary()),
            pa.array([None if value is None else len(value) for value in values], pa.int32()),
            pa.array(row_hashes(keys, values, stamps if timestamps else None), pa.int64()),
        ],
        schema=SLIM,
    )
