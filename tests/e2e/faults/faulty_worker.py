"""A worker of the ledger app whose user code misbehaves: `python -m tests.e2e.faults.faulty_worker --bootstrap ...`.

Started by reduced_ledger.py. It ends as `streamfleet run` does (0, 1, or 143 for a dirty end), because the same class runs it. What
can be wrong, besides the failpoints of the ledger's own worker (values are unique, so that a value names one record):

    --user-fault raise:VALUE        the operator raises, whenever it sees that value
    --user-fault raise_once:VALUE   ... only the first time
    --user-fault sleep:VALUE:S      it sleeps that long, the first time
    --user-fault hog:VALUE          it sets a limit to the memory of the process, and takes all there is
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import structlog
from tests.ledger import app
from tests.ledger.failpoint_actions import ActingFailpoints
from tests.ledger.worker import _die_with_parent, app_parser, config

import streamfleet as sf
from streamfleet.kafka_streams import KafkaStreams
from streamfleet.worker.http_door import parse_address
from streamfleet.worker.process import Worker, WorkerSettings

HOG_BYTES = 16 * 2**20
SPARE_BYTES = 256 * 2**20
"""Address space that is left when the limit is set. Threads need some to start, so that is not before the fault."""


@dataclass(frozen=True)
class UserFault:
    kind: str
    value: int
    seconds: float = 0.0

    @classmethod
    def parse(cls, text: str) -> UserFault:
        kind, value, *rest = text.split(":")
        if kind not in ("raise", "raise_once", "sleep", "hog"):
            raise ValueError(f"no such fault: {text}")
        return cls(kind, int(value), *map(float, rest))


class FaultyOperator:
    """Stands before everything else that the app does with an input record."""

    def __init__(self, faults: list[UserFault]) -> None:
        self._faults = {fault.value: fault for fault in faults}
        self._hoard: list[bytearray] = []

    def __call__(self, _key: str, value: int) -> None:
        fault = self._faults.get(value)
        if fault is None:
            return
        if fault.kind in ("raise_once", "sleep"):
            del self._faults[value]
        structlog.get_logger(__name__).warning("user fault acts", fault=str(fault))
        if fault.kind == "sleep":
            time.sleep(fault.seconds)
        elif fault.kind == "hog":
            self._take_everything()
        else:
            raise ValueError(f"cannot bear {value}")

    def _take_everything(self) -> None:
        _limit_memory()
        while True:
            self._hoard.append(bytearray(HOG_BYTES))


def faulty_topology(faults: list[UserFault], offset_reset: str | None = None) -> sf.Topology:
    """The ledger's, with one more operator behind its input. It is there without faults, too: all workers run the same."""
    operator = FaultyOperator(faults)

    class Builder(sf.StreamsBuilder):
        def stream(self, *arguments: Any, **options: Any) -> Any:
            return super().stream(*arguments, offset_reset=offset_reset, **options).peek(operator, name="faulty")

    with mock.patch.object(sf, "StreamsBuilder", Builder):
        return app.topology()


class AnnouncedStreams(KafkaStreams):
    """Says when it is started: the process hears signals by then, and may be asked to end."""

    def start(self) -> None:
        structlog.get_logger(__name__).info("worker started")
        super().start()


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = app_parser("run the ledger app, with faults")
    parser.add_argument("--user-fault", action="append", default=[], type=UserFault.parse)
    parser.add_argument("--processing", default="fail", choices=["fail", "continue"])
    parser.add_argument("--dead-letters")
    parser.add_argument("--offset-reset", help="where the input goes on behind a gap")
    parser.add_argument("--piped-log", action="store_true", help="what limits its files does not limit what it says")
    parser.add_argument("--max-poll-interval-ms", type=int, default=300_000)
    parser.add_argument("--http", type=parse_address)
    parser.add_argument("--grace-seconds", type=float, default=40.0)
    return parser.parse_args(words)


def main() -> int:
    options = arguments()
    _die_with_parent()
    if options.piped_log:
        _say_through_a_pipe()
    _log_as_json()
    settings = config(options).with_(
        processing_handler=options.processing,
        dead_letter_topic=options.dead_letters,
        max_poll_interval_ms=options.max_poll_interval_ms,
    )
    topology = faulty_topology(options.user_fault, options.offset_reset)
    streams = AnnouncedStreams(topology, settings, failpoints=ActingFailpoints(options.failpoint))
    worker = Worker(
        topology, settings, WorkerSettings(http=options.http, grace_seconds=options.grace_seconds), streams=streams
    )
    status = worker.run()
    structlog.get_logger(__name__).info("worker ended", failure=None if worker.failure is None else str(worker.failure))
    return status


def _log_as_json() -> None:
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt=None),
            structlog.processors.dict_tracebacks,
            structlog.processors.JSONRenderer(default=str),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stdout),
    )


def _say_through_a_pipe() -> None:
    """The one who writes the file ends with this process, whose end closes the pipe."""
    writer = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    assert writer.stdin is not None
    for said in (sys.stdout, sys.stderr):
        os.dup2(writer.stdin.fileno(), said.fileno())


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + SPARE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    sys.exit(main())
