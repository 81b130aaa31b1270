"""The counting app in a process with less than it needs: small files, few open files, little memory, no rights.

Started by tests as `python -m tests.integration.faults.limited_worker '<settings as JSON>'`. Runs until the app fails or
standard input ends, and says on standard output how it went: one line of JSON. A line on standard input lifts the limit on files.
"""

import json
import os
import resource
import sys
import threading
from pathlib import Path

import structlog
from tests.integration.faults.counting import STRING, counting_topology

import streamfleet as sf
from streamfleet.kafka_streams import ClientState, KafkaStreams

NOBODY = 65534


def main(settings):
    renderer = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(
        processors=[structlog.processors.TimeStamper(), renderer],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    config = sf.StreamsConfig(
        application_id=settings["app"],
        bootstrap_servers=settings["bootstrap"],
        default_key_serde=STRING,
        default_value_serde=STRING,
        state_dir=Path(settings["state_dir"]),
        processing_guarantee="exactly_once_v2",
        session_timeout_ms=6000,
        heartbeat_interval_ms=100,
        rocksdb_memory_max_bytes=4 * 2**20,
    )
    streams = KafkaStreams(
        counting_topology(settings["source"], settings["outputs"]), config, failpoints=LimitAt(settings)
    )
    asked_to_stop, over = threading.Event(), threading.Event()
    streams.set_state_listener(lambda state, _: over.set() if state is ClientState.ERROR else None)

    def obey():
        for _ in sys.stdin:
            limit_files(resource.RLIM_INFINITY)
        asked_to_stop.set()
        over.set()

    threading.Thread(target=obey, daemon=True).start()
    try:
        with streams:
            if not settings.get("keeps_rights"):
                give_up_rights()
            streams.start()
            over.wait()
            failure = streams.failure
    except Exception as error:
        failure = error
    limit_files(resource.RLIM_INFINITY)
    kinds = [kind.__name__ for kind in type(failure).__mro__] if failure else []
    print(json.dumps({"kinds": kinds, "message": str(failure or ""), "stopped": asked_to_stop.is_set()}), flush=True)


class LimitAt:
    """Takes resources away at a named point of the engine, once."""

    def __init__(self, settings):
        self._settings = dict(settings)

    def hit(self, name):
        if name != self._settings.get("at"):
            return
        del self._settings["at"]
        if "file_bytes" in self._settings:
            limit_files(self._settings["file_bytes"])
        if "more_memory_bytes" in self._settings:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            limit = pages * resource.getpagesize() + self._settings["more_memory_bytes"]
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        if "more_open_files" in self._settings:
            limit = len(list(Path("/proc/self/fd").iterdir())) + self._settings["more_open_files"]
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))


def limit_files(size_bytes):
    """The soft limit alone, which everybody may set back."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, resource.RLIM_INFINITY))


def give_up_rights():
    "".encode("idna")  # loaded now: the files of the interpreter may be out of reach afterwards
    if os.geteuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
