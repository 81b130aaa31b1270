"""Runs apps on this engine, one after the other, as side.py tells it on standard input: `python -m tests.interop.worker`.

The same lines as java/src/main/java/interop/Worker.java understands; they are explained there.
"""

from __future__ import annotations

import logging
import os
import sys

import structlog
from tests.interop.topologies import topology

import streamfleet as sf

START_SECONDS = 120


class Worker:
    def __init__(self) -> None:
        self._streams: sf.KafkaStreams | None = None

    def obey(self, line: str) -> str:
        order, *words = line.split()
        settings = dict(word.split("=", 1) for word in words)
        if order == "close":
            return self._close()
        built = topology(settings.pop("topology"), settings.pop("topics"))
        return f"{built.describe()}described" if order == "describe" else self._start(built, settings)

    def _start(self, built: sf.Topology, settings: dict[str, str]) -> str:
        string = sf.serdes.string()
        config = sf.StreamsConfig.from_mapping(settings | {"default.key.serde": string, "default.value.serde": string})
        self._streams = sf.KafkaStreams(built, config)
        try:
            self._streams.start()
            self._streams.wait_until_running(START_SECONDS)
        except (sf.StreamsError, TimeoutError) as error:
            self._streams.close()
            return f"failed {error}"
        return "running"

    def _close(self) -> str:
        assert self._streams is not None
        return "closed" if self._streams.close() else "failed a thread did not stop"


def main() -> None:
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    worker = Worker()
    for line in sys.stdin:
        print(worker.obey(line), flush=True)
    os._exit(0)  # as a process that was killed: the group hears nothing


if __name__ == "__main__":
    main()
