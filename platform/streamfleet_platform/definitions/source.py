"""The source of definitions and code: one directory or Git repository, fixed when the server starts. Callers only name a ref.

    Source(path, fleet="fleet").at(ref)   a state of it: definitions to load, code to export

Code is what fleet.yaml includes, without the definitions themselves: editing a definition changes no code. What of it is one app's,
and whether that app has to be compiled again, is said by app_code.py.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from streamfleet_platform.definitions.app_code import AppCode, CodeTree, KnownImports
from streamfleet_platform.definitions.code_export import export_files
from streamfleet_platform.definitions.fleet import Fleet
from streamfleet_platform.definitions.git_tree import GitTree
from streamfleet_platform.definitions.loader import APPS_DIRECTORY, FLEET_FILE, load_fleet
from streamfleet_platform.definitions.tree import DirectoryTree, Tree, TreeFile
from streamfleet_platform.errors import InvalidRequestError, NotFoundError


@dataclass(frozen=True)
class Source:
    """Where everything comes from."""

    path: Path
    fleet: str = "."
    """The directory below it that holds fleet.yaml."""

    @property
    def is_git(self) -> bool:
        return (self.path / ".git").exists() or (self.path / "HEAD").is_file()

    def head_of(self, branch: str) -> str:
        """The commit that a branch is at: one of this repository, or, as `origin/main`, one that was fetched."""
        if not self.is_git:
            raise InvalidRequestError(
                f"the definitions are in a plain directory, which has no branch {branch!r}",
                hint="keep them in a Git repository, or take spec.follow out of fleet.yaml",
            )
        for place in ("heads", "remotes"):
            try:
                return GitTree(self.path, f"refs/{place}/{branch}").commit
            except NotFoundError:
                continue
        raise NotFoundError(f"{self.path} has no branch {branch!r}", hint="make it, or follow another")

    def at(self, ref: str | None) -> SourceState:
        """None: the directory as it is."""
        below = "" if self.fleet == "." else PurePosixPath(self.fleet).as_posix()
        if ref is None:
            return SourceState(DirectoryTree(self.path), DirectoryTree(self.path / below), below)
        if not self.is_git:
            raise InvalidRequestError(
                f"the definitions are in a plain directory, which has no {ref!r}", hint="leave the ref out"
            )
        tree = GitTree(self.path, ref)
        assert tree.commit is not None
        return SourceState(tree, GitTree(self.path, tree.commit, below), below)


class SourceState:
    """One state: a commit, or a directory as it is now."""

    def __init__(self, code: Tree, definitions: Tree, below: str) -> None:
        self._code = code
        self.definitions = definitions
        self._below = below

    def load(self) -> Fleet:
        return load_fleet(self.definitions)

    def lock_file(self, app_file: str, lock: str) -> bytes | None:
        """The lock beside a definition; None if it is not there."""
        path = (PurePosixPath(app_file).parent / lock).as_posix()
        if not self.definitions.has(path):
            return None
        (data,) = self.definitions.read([path])
        return data

    def lock_files(self) -> dict[str, bytes]:
        """All locks, by path: one listing and one reader for a thousand apps."""
        paths = [file.path for file in self.definitions.files(APPS_DIRECTORY) if file.path.endswith(".lock.json")]
        return dict(zip(paths, self.definitions.read(paths), strict=True))

    def code_files(self, include: tuple[str, ...]) -> list[TreeFile]:
        files = self._code.files()
        return [file for file in files if _is_included(file.path, include) and not self._is_definition(file.path)]

    def _is_definition(self, path: str) -> bool:
        prefix = f"{self._below}/" if self._below else ""
        if not path.startswith(prefix):
            return False
        inner = path.removeprefix(prefix)
        return inner == FLEET_FILE or (
            inner.startswith(f"{APPS_DIRECTORY}/") and inner.endswith((".yaml", ".yml", ".lock.json"))
        )

    def code_tree(self, include: tuple[str, ...], known: KnownImports) -> CodeTree:
        """`known` is what was read before, of the same or another state."""
        files = self.code_files(include)
        paths = [file.path for file in files]
        prints = dict(zip(paths, self._code.fingerprints(paths), strict=True))
        return CodeTree(files, prints, self._code.read, known)

    def revision_id(self, code_id: str) -> str:
        """The commit, or the hash of code and definitions."""
        if self._code.commit is not None:
            return self._code.commit
        digest = hashlib.sha256(code_id.encode())
        files = [file.path for file in self.definitions.files(APPS_DIRECTORY)]
        for path, print_ in zip([FLEET_FILE, *files], self.definitions.fingerprints([FLEET_FILE, *files]), strict=True):
            digest.update(os.fsencode(path) + b"\0" + print_)
        return f"sha256-{digest.hexdigest()}"

    def export(self, code: AppCode, into: Path) -> Path:
        return export_files(self._code, list(code.files), into, code.id)


def _is_included(path: str, include: tuple[str, ...]) -> bool:
    return not include or any(path == each or path.startswith(f"{each.rstrip('/')}/") for each in include)
