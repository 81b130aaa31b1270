"""The code of a revision in a directory of its own, from which it is locked and run: two revisions can run side by side, and
going back to the old one is going back to its directory.

A commit is exported under its id; a plain directory is copied and named after what it holds. A directory is either
complete or not there: it is filled under another name and renamed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from streamfleet_platform.definitions.tree import Tree, TreeFile

_READ_ONLY, _EXECUTABLE = 0o444, 0o555


@dataclass(frozen=True)
class Revision:
    """Code that does not change any more."""

    id: str
    """The commit, or `sha256-` and the hash of all paths and contents."""
    directory: Path


def export_code(tree: Tree, into: Path) -> Revision:
    """Once per revision: a second export finds the first one's directory."""
    into.mkdir(mode=0o700, parents=True, exist_ok=True)
    if tree.commit is not None and (into / tree.commit).is_dir():
        return Revision(tree.commit, into / tree.commit)
    partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=into))
    try:
        digest = _write(tree, tree.files(), partial)
        revision = tree.commit or f"sha256-{digest}"
        return Revision(revision, _published(partial, into / revision))
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def export_files(tree: Tree, files: list[TreeFile], into: Path, name: str) -> Path:
    """Some files of a tree, in a directory of a name that says what they are."""
    into.mkdir(mode=0o700, parents=True, exist_ok=True)
    if (into / name).is_dir():
        return into / name
    partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=into))
    try:
        _write(tree, files, partial)
        return _published(partial, into / name)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _write(tree: Tree, files: list[TreeFile], root: Path) -> str:
    digest = hashlib.sha256()
    for file, data in zip(files, tree.read([file.path for file in files]), strict=True):
        target = root / file.path
        if not target.resolve().is_relative_to(root.resolve()):
            raise AssertionError(f"{file.path} leads out of its tree")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        target.chmod(_EXECUTABLE if file.is_executable else _READ_ONLY)
        path = os.fsencode(file.path)
        # Lengths first, or a path could pass for the end of another file's content.
        digest.update(b"%d %d %d\n" % (len(path), len(data), file.is_executable))
        digest.update(path)
        digest.update(data)
    return digest.hexdigest()


def _published(partial: Path, directory: Path) -> Path:
    try:
        partial.rename(directory)
    except OSError:
        if not directory.is_dir():  # else somebody else was faster, with the same content
            raise
    return directory
