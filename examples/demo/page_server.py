"""A web server for the page of `make up`, in the background, on the loopback interface; `make down` finds and ends it.

Called by __main__.py, and started as a process of its own: `python -m examples.demo.page_server DIRECTORY RECORD`.
While it lives it holds a lock on its record file, so that a stale record is never mistaken for a running server.
"""

from __future__ import annotations

import fcntl
import functools
import http.server
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

HOST = "127.0.0.1"
PREFERRED_PORT = 8750
START_SECONDS = 15.0


def running_url(record: Path) -> str | None:
    """Where the server that wrote `record` listens, if it lives."""
    found = _read(record)
    return found["url"] if found else None


def ensure_started(directory: Path, record: Path) -> str:
    """The address of the running server; started now unless it runs already."""
    url = running_url(record)
    if url is not None:
        return url
    command = [sys.executable, "-m", "examples.demo.page_server", str(directory), str(record)]
    with (record.parent / "server.log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 our own interpreter and module
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    deadline = time.monotonic() + START_SECONDS
    while (url := running_url(record)) is None:
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the page's web server did not start; its log is {record.parent / 'server.log'}")
        time.sleep(0.05)
    process.returncode = 0  # it is meant to outlive us: no exit code will be asked for
    return url


def stop(record: Path) -> bool:
    """End the server; whether there was one."""
    found = _read(record)
    if found is None:
        return False
    os.kill(int(found["pid"]), signal.SIGTERM)
    deadline = time.monotonic() + START_SECONDS
    while _read(record) is not None and time.monotonic() < deadline:
        time.sleep(0.05)
    return True


def _read(record: Path) -> dict[str, str] | None:
    try:
        with record.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                text = file.read()
                return dict(json.loads(text)) if text else None
    except FileNotFoundError:
        pass
    return None


def serve(directory: Path, record: Path) -> None:
    """Serve `directory` until a signal ends the process."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(directory))
    try:
        server = http.server.ThreadingHTTPServer((HOST, PREFERRED_PORT), handler)
    except OSError:
        server = http.server.ThreadingHTTPServer((HOST, 0), handler)  # any free port will do
    with record.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        json.dump({"pid": str(os.getpid()), "url": f"http://{HOST}:{server.server_port}/"}, file)
        file.flush()
        server.serve_forever()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), Path(sys.argv[2]))
