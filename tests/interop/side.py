"""A side: an engine in a process of its own, ours or Java's, that runs one app after the other. Told what to do line by line."""

from __future__ import annotations

import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from tests.interop.build import java_command

PATIENCE_SECONDS = 150
"""Longer than a side itself waits for its app to run, so that its own reason is heard."""


_NEIGHBOURS = re.compile(r"(?<=--> |<-- )(\S+(?:, \S+)+)")


def _sorted(neighbours: re.Match[str]) -> str:
    return ", ".join(sorted(neighbours[0].split(", ")))


class SideError(Exception):
    """The side did not do what it was told; the message has its reason, or its last log lines."""


class Side:
    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name = name
        self._log = log
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True, bufsize=1
            )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, name=f"{name}-lines", daemon=True)
        self._reader.start()

    @classmethod
    def java(cls, directory: Path) -> Self:
        return cls("java", java_command(), directory / "java.log")

    @classmethod
    def ours(cls, directory: Path) -> Self:
        return cls("ours", [sys.executable, "-m", "tests.interop.worker"], directory / "ours.log")

    def start(self, topology: str, topics: str, settings: Mapping[str, object]) -> None:
        """Returns when the app runs, with all its tasks restored."""
        self.begin(topology, topics, settings)
        self._expect("running")

    def begin(self, topology: str, topics: str, settings: Mapping[str, object]) -> None:
        """Like start, without waiting."""
        words = [f"{name}={value}" for name, value in settings.items()]
        self._say(f"start topology={topology} topics={topics} {' '.join(words)}")

    def close(self) -> None:
        """Commit and leave the group."""
        self._say("close")
        self._expect("closed")

    def describe(self, topology: str, topics: str) -> str:
        """Nodes that follow one node, or go before it, have no order of their own in Java: here they are sorted."""
        self._say(f"describe topology={topology} topics={topics}")
        return _NEIGHBOURS.sub(_sorted, "\n".join(self._answer("described")))

    def kill(self) -> None:
        """With signal 9: nobody is told, transactions stay open."""
        self._process.kill()
        self.end()

    def end(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        if self._process.poll() is None:
            self._process.stdin.close()  # which ends it
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        self._process.stdin.close()
        self._process.stdout.close()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def _expect(self, answer: str) -> None:
        *_, last = self._answer(answer, "failed")
        if last != answer:
            raise SideError(f"{self.name}: {last}")

    def _answer(self, *ends: str) -> list[str]:
        lines: list[str] = []
        while not lines or not lines[-1].startswith(ends):
            try:
                lines.append(self._lines.get(timeout=PATIENCE_SECONDS))
            except queue.Empty:
                raise SideError(f"{self.name} does not answer; its log ends with\n{self._tail()}") from None
            if not lines[-1]:
                raise SideError(f"{self.name} ended; its log ends with\n{self._tail()}")
        return [line.rstrip("\n") for line in lines]

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def _tail(self) -> str:
        return "\n".join(self._log.read_text("utf-8", "replace").splitlines()[-15:])


@contextmanager
def both_sides(directory: Path) -> Iterator[dict[str, Side]]:
    """`java` and `ours`, ended at the end of the block."""
    sides = {"java": Side.java(directory), "ours": Side.ours(directory)}
    try:
        yield sides
    finally:
        for side in sides.values():
            side.end()
