"""One worker process of the ledger app: `python -m tests.ledger.worker --bootstrap ... --app ... --state-dir ... --guarantee ...`.

Started, killed, stopped and continued by fleet.py. SIGUSR1 asks the group for a rebalance; SIGTERM closes the app cleanly. It ends
with status 0 then, and with 1 if the app ended by itself. One JSON line per event goes to standard output, which fleet.py keeps
in a file.
"""

from __future__ import annotations

import argparse
import ctypes
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import structlog
from tests.ledger.app import topology
from tests.ledger.failpoint_actions import ActingFailpoints, FailpointSpec
from tests.ledger.mutations import MUTATIONS, install_late_end

import streamfleet as sf
from streamfleet.kafka_streams import KafkaStreams

log = structlog.get_logger(__name__)

SESSION_TIMEOUT_MS = 6000
PARENT_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of Linux."""


def app_parser(description: str) -> argparse.ArgumentParser:
    """What `config` reads, and where the engine is to fail: for every worker process of the app."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--app", required=True)
    parser.add_argument("--state-dir", required=True, type=Path)
    parser.add_argument("--guarantee", required=True, choices=["exactly_once_v2", "at_least_once"])
    parser.add_argument("--setting", action="append", default=[], type=_setting, help="NAME=VALUE")
    parser.add_argument("--failpoint", action="append", default=[], type=FailpointSpec.parse)
    return parser


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = app_parser("run the ledger app")
    parser.add_argument("--mutation", action="append", default=[], choices=sorted(MUTATIONS))
    return parser.parse_args(words)


def config(options: argparse.Namespace) -> sf.StreamsConfig:
    settings = {
        "application.id": options.app,
        "bootstrap.servers": options.bootstrap,
        "state.dir": options.state_dir,
        "processing.guarantee": options.guarantee,
        "statestore.cache.max.bytes": 0,
        "__emit.interval.ms.kstreams.windowed.aggregation__": 0,
        "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": 0,
        "commit.interval.ms": 100,
        "poll.ms": 20,
        "transaction.timeout.ms": 10_000,
    }
    given = dict(options.setting)
    if given.get("group.protocol") != "streams":
        settings |= {"session.timeout.ms": SESSION_TIMEOUT_MS, "heartbeat.interval.ms": 300}
    return sf.StreamsConfig.from_mapping(settings | given)


def _setting(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def main() -> int:
    options = arguments()
    _die_with_parent()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt=None),
            structlog.processors.dict_tracebacks,
            structlog.processors.JSONRenderer(default=str),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stdout),
    )
    failpoints = ActingFailpoints(options.failpoint)
    if any(spec.action == "late_end" for spec in options.failpoint):
        install_late_end(failpoints)
    for name in options.mutation:
        MUTATIONS[name]()
    asked_to_end = threading.Event()
    streams = KafkaStreams(topology(), config(options), failpoints=failpoints)
    signal.signal(signal.SIGTERM, lambda *_: asked_to_end.set())
    signal.signal(signal.SIGUSR1, lambda *_: _probe(streams))
    streams.set_state_listener(lambda new, _: asked_to_end.set() if new.is_over else None)
    try:
        streams.start()
        log.info("worker started", guarantee=options.guarantee, mutations=options.mutation)
        asked_to_end.wait()
    finally:
        clean = streams.close(timeout_seconds=40)
    log.info("worker ended", clean=clean, failure=None if streams.failure is None else repr(streams.failure))
    return 0 if clean and streams.failure is None else 1


def _probe(streams: KafkaStreams) -> None:
    try:
        streams.probe()
    except sf.StreamsError as error:  # it is about to end
        log.info("not probed", why=str(error))
    else:
        log.info("probed")


def _die_with_parent() -> None:
    """A run that is killed itself must not leave workers behind."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
