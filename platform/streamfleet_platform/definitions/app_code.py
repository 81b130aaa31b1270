"""Which files of a source are one app's code, and their id: an app whose code is the same is not compiled and not restarted because
another app's was edited. Called by reconcile/planner.py, for one state of the source at a time.

    entry point and settings that name modules ──> their files ──> what these import (imports.py) ──> ...
    and every file that is no Python: data, of which nobody can tell who reads it

An app is exported with these files and no others. So what this reading has missed is not there, and fails by its name where it is
imported; it is never there in a version that nobody asked for.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from streamfleet_platform.definitions.imports import Imports, imports_of, named_modules
from streamfleet_platform.definitions.tree import TreeFile

_SUFFIX = ".py"
KnownImports = dict[bytes, Imports]
"""By a file's print: kept from plan to plan."""
Read = Callable[[list[str]], Iterator[bytes]]


@dataclass(frozen=True)
class AppCode:
    """`id` is the same for the same files, whatever commit they are in."""

    id: str
    files: tuple[TreeFile, ...]


class CodeTree:
    """All code of one state. `prints` tell contents apart, `read` gives them, `known` is what was read of an earlier state."""

    def __init__(self, files: Sequence[TreeFile], prints: Mapping[str, bytes], read: Read, known: KnownImports) -> None:
        self._files = {file.path: file for file in files}
        self._prints = prints
        self._read = read
        self.imports = {print_: known[print_] for print_ in prints.values() if print_ in known}
        """What was read so far."""
        self._data = [file for file in files if not file.path.endswith(_SUFFIX)]
        self._found: dict[frozenset[str], AppCode] = {}
        self.id = self._id(files)

    @property
    def ids(self) -> set[str]:
        """Of the apps that were asked for."""
        return {code.id for code in self._found.values()}

    def of(self, entrypoint: str, settings: Iterable[object]) -> AppCode:
        """`settings` are values of an app's configuration: some name modules."""
        named = [entrypoint, *(value for value in settings if isinstance(value, str))]
        roots = frozenset(path for text in named for name in named_modules(text) for path in self._paths(name))
        if roots not in self._found:
            reached = self._reached(roots)
            files = sorted([*self._data, *map(self._files.__getitem__, reached)], key=lambda file: file.path)
            self._found[roots] = AppCode(self._id(files), tuple(files))
        return self._found[roots]

    def _reached(self, roots: frozenset[str]) -> set[str]:
        """Python files, from these on; all of them where one may import anything."""
        reached: set[str] = set()
        waiting = set(roots)
        while waiting:
            reached |= waiting
            found = self._imports(sorted(waiting))
            if any(imports.is_open for imports in found.values()):
                return {path for path in self._files if path.endswith(_SUFFIX)}
            waiting = {named for path, imports in found.items() for named in self._named(path, imports)} - reached
        return reached

    def _imports(self, paths: list[str]) -> dict[str, Imports]:
        unknown = [path for path in paths if self._prints[path] not in self.imports]
        for path, source in zip(unknown, self._read(unknown), strict=True):
            self.imports[self._prints[path]] = imports_of(source)
        return {path: self.imports[self._prints[path]] for path in paths}

    def _named(self, path: str, imports: Imports) -> Iterator[str]:
        for name in imports.names:
            yield from self._paths(_absolute(path, name))
        for name in imports.packages:
            directory = _absolute(path, name).replace(".", "/")
            inside = (path for path in self._files if path.rpartition("/")[0] == directory)
            yield from (path for path in inside if path.endswith(_SUFFIX))

    def _paths(self, name: str) -> Iterator[str]:
        """Of a module, of the packages it is in, and of the module that an attribute of this name would be in."""
        parts = [part for part in name.split(".") if part]
        for length in range(1, len(parts) + 1):
            place = "/".join(parts[:length])
            yield from (path for path in (f"{place}{_SUFFIX}", f"{place}/__init__{_SUFFIX}") if path in self._files)

    def _id(self, files: Iterable[TreeFile]) -> str:
        digest = hashlib.sha256()
        for file in files:
            path, print_ = os.fsencode(file.path), self._prints[file.path]
            digest.update(b"%d %d %d\n" % (len(path), len(print_), file.is_executable))
            digest.update(path + print_)
        return f"sha256-{digest.hexdigest()}"


def _absolute(path: str, name: str) -> str:
    """A relative import starts at the package that the file is in."""
    level = len(name) - len(name.lstrip("."))
    if not level:
        return name
    package = path.split("/")[:-1]
    return ".".join([*package[: len(package) - level + 1], name[level:]])
