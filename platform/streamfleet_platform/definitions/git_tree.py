"""A commit of a Git repository as a tree of files, read by Git's plumbing: no checkout, no hooks, no filters, no network.

`ls-tree` and `cat-file` give what the commit holds, byte for byte; `archive` would apply the attributes the commit itself
brings (export-ignore, export-subst).
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from streamfleet_platform.definitions.tree import (
    MAX_FILE_BYTES,
    MAX_FILES,
    TreeFile,
    checked_content,
    refused_file,
    too_many_files,
)
from streamfleet_platform.errors import InvalidRequestError, NotFoundError

_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_TIMEOUT_SECONDS = 60
_LISTED = re.compile(rb"(\d{6}) (\w+) ([0-9a-f]+) +(\d+|-)\t(.*)", re.DOTALL)


class GitTree:
    """What a commit holds, below `root` of the repository. The revision is resolved once: a branch or tag may move later."""

    def __init__(self, repository: Path, revision: str, root: str = "") -> None:
        if not repository.is_dir():
            raise NotFoundError(f"there is no repository {repository}", hint="name a directory that Git knows")
        self._repository = repository
        self._root = root.strip("/")
        found = self._git(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}", may_fail=True
        )
        commit = found.decode().strip()
        if _COMMIT.fullmatch(commit) is None:
            raise NotFoundError(f"{repository} has no commit {revision!r}", hint="fetch it, or name another")
        self.commit = commit
        self._objects: dict[str, str] = {}

    def has(self, path: str) -> bool:
        directory, _, name = path.rpartition("/")
        return any(self._file(directory, record) for record in self._list(directory, only=name))

    def files(self, under: str = "") -> list[TreeFile]:
        records = self._list(under)
        if len(records) > MAX_FILES:
            raise too_many_files(under)
        return sorted((self._file(under, record) for record in records), key=lambda file: file.path)

    def _list(self, directory: str, *, only: str | None = None) -> list[bytes]:
        """Records of a directory, all the way down, or of one file in it; none if the commit has no such directory."""
        start = "/".join(part for part in (self._root, directory) if part)
        treeish = f"{self.commit}:{start}"
        if not self._git("rev-parse", "--verify", "--quiet", "--end-of-options", treeish, may_fail=True):
            return []
        arguments = ["-r", treeish] if only is None else [treeish, "--", only]
        listed = self._git("ls-tree", "-l", "-z", "--full-tree", *arguments)
        return [record for record in listed.split(b"\0") if record]

    def read(self, paths: list[str]) -> Iterator[bytes]:
        """One process for all of them: a fleet has hundreds of files."""
        command = self._command("cat-file", "--batch")
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment()) as process:
            assert process.stdin is not None and process.stdout is not None
            try:
                for path in paths:
                    process.stdin.write(self._objects[path].encode() + b"\n")
                    process.stdin.flush()
                    size = int(process.stdout.readline().split()[2])
                    data = process.stdout.read(size + 1)[:-1]
                    yield checked_content(path, data)
            finally:
                process.stdin.close()
                process.stdout.close()

    def fingerprints(self, paths: list[str]) -> Iterator[bytes]:
        """Git's own names of the contents."""
        for path in paths:
            yield self._objects[path].encode()

    def _file(self, under: str, record: bytes) -> TreeFile:
        match = _LISTED.fullmatch(record)
        assert match is not None
        mode, kind, name, size, raw_path = match.groups()
        path = "/".join(part for part in (under, os.fsdecode(raw_path)) if part)
        if mode == b"120000":
            raise refused_file(path, "a symbolic link")
        if kind != b"blob":
            raise refused_file(path, "a submodule")
        if int(size) > MAX_FILE_BYTES:
            raise refused_file(path, f"larger than {MAX_FILE_BYTES} bytes")
        self._objects[path] = name.decode()
        return TreeFile(path, int(size), mode == b"100755")

    def _git(self, *arguments: str, may_fail: bool = False) -> bytes:
        try:
            result = subprocess.run(
                self._command(*arguments),
                env=_environment(),
                capture_output=True,
                timeout=_TIMEOUT_SECONDS,
                check=False,
            )
        except FileNotFoundError as error:
            raise NotFoundError(
                "the command git is not installed", hint="install it, or use a plain directory"
            ) from error
        if b"dubious ownership" in result.stderr:  # for Git no repository at all, and nobody would find out why
            raise InvalidRequestError(
                f"git does not read {self._repository}: it belongs to another user",
                hint="run this as its owner, or give the directory to who runs this",
            )
        if result.returncode != 0 and not may_fail:
            detail = result.stderr.decode(errors="replace").strip().splitlines()
            raise NotFoundError(f"git {arguments[0]} failed in {self._repository}: {detail[-1] if detail else '?'}")
        return result.stdout

    def _command(self, *arguments: str) -> list[str]:
        return ["git", "--no-replace-objects", "--literal-pathspecs", "-C", str(self._repository), *arguments]


def _environment() -> dict[str, str]:
    """Only what finds Git, and nothing that changes what it does: no configuration of users, no prompts, no lazy fetching."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
    }
