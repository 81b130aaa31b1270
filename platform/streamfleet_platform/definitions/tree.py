"""Where definitions and code come from: a tree of files, either a directory or a commit (git_tree.py).

A tree is read without following anything: symbolic links, submodules and pointers to files kept elsewhere are refused,
because what they lead to is not what was reviewed.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from streamfleet_platform.errors import InvalidDefinitionError, NotFoundError, Place, Problem

MAX_FILES = 20_000
MAX_FILE_BYTES = 64 * 2**20

_LFS = b"version https://git-lfs.github.com/spec/"


@dataclass(frozen=True, slots=True)
class TreeFile:
    """One regular file: its path with `/`, relative to the tree."""

    path: str
    size: int
    is_executable: bool = False


class Tree(Protocol):
    """Files under a root."""

    @property
    def commit(self) -> str | None:
        """The commit, of a tree that is one."""

    def has(self, path: str) -> bool:
        """Whether there is a file of this path."""

    def files(self, under: str = "") -> list[TreeFile]:
        """All files below a directory, sorted by path; none if there is no such directory."""

    def read(self, paths: list[str]) -> Iterator[bytes]:
        """The contents of files that `has` or `files` found, in that order."""

    def fingerprints(self, paths: list[str]) -> Iterator[bytes]:
        """What tells one content of such a file from another, without reading more than is needed."""


class DirectoryTree:
    """A directory as it is now. Names that begin with a dot and `__pycache__` are not looked at."""

    commit = None

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise NotFoundError(f"there is no directory {root}", hint="name the directory that holds fleet.yaml")
        self._root = root

    def has(self, path: str) -> bool:
        try:
            _regular(path, (self._root / path).lstat())
        except FileNotFoundError:
            return False
        return True

    def files(self, under: str = "") -> list[TreeFile]:
        found: list[TreeFile] = []
        directories = [Path(under)] if (self._root / under).is_dir() else []
        while directories:
            directory = directories.pop()
            with os.scandir(self._root / directory) as entries:
                for entry in entries:
                    if entry.name.startswith(".") or entry.name == "__pycache__":
                        continue
                    path = directory / entry.name
                    if entry.is_dir(follow_symlinks=False):
                        directories.append(path)
                    else:
                        found.append(_regular(path.as_posix(), entry.stat(follow_symlinks=False)))
            if len(found) + len(directories) > MAX_FILES:
                raise too_many_files(under)
        return sorted(found, key=lambda file: file.path)

    def read(self, paths: list[str]) -> Iterator[bytes]:
        for path in paths:
            # A link could have taken the file's place since it was listed.
            descriptor = os.open(self._root / path, os.O_RDONLY | os.O_NOFOLLOW)
            with os.fdopen(descriptor, "rb") as file:
                yield checked_content(path, file.read(MAX_FILE_BYTES + 1))

    def fingerprints(self, paths: list[str]) -> Iterator[bytes]:
        for data in self.read(paths):
            yield hashlib.sha256(data).digest()


def _regular(path: str, status: os.stat_result) -> TreeFile:
    if not stat.S_ISREG(status.st_mode):
        kind = "a symbolic link" if stat.S_ISLNK(status.st_mode) else "no regular file"
        raise refused_file(path, kind)
    return TreeFile(path, status.st_size, bool(status.st_mode & stat.S_IXUSR))


def checked_content(path: str, data: bytes) -> bytes:
    if len(data) > MAX_FILE_BYTES:
        raise refused_file(path, f"larger than {MAX_FILE_BYTES} bytes")
    if data.startswith(_LFS):
        raise refused_file(path, "a pointer to a file in Git LFS")
    return data


def refused_file(path: str, kind: str) -> InvalidDefinitionError:
    return InvalidDefinitionError([Problem(Place(path), f"this is {kind}", "put the file itself there")])


def too_many_files(under: str) -> InvalidDefinitionError:
    place = Place(under or ".")
    return InvalidDefinitionError(
        [Problem(place, f"there are more than {MAX_FILES} files", "keep apps in their own tree")]
    )
