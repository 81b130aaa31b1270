"""What a Python file may import, read from its text: without running it, and whenever it would. Called by app_code.py.

Counted is every import statement, wherever it stands (in a function, under TYPE_CHECKING), and every text that is written like a
module's name (`"apps.orders:topology"`). What can load modules that no text names makes a file open: it may import anything.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass

_OPENING = frozenset(
    {
        "__import__",
        "__path__",
        "cloudpickle",
        "dill",
        "eval",
        "exec",
        "exec_module",
        "import_module",
        "joblib",
        "load_module",
        "meta_path",
        "multiprocessing",
        "path_hooks",
        "pickle",
        "pkg_resources",
        "pkgutil",
        "runpy",
        "shelve",
        "spec_from_file_location",
        "subprocess",
        "zipimport",
    }
)
"""Names of functions and modules; `sys.path` is looked for by itself."""
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?::[\w.]+)?|[A-Za-z_]\w*:[A-Za-z_][\w.]*")


@dataclass(frozen=True)
class Imports:
    """Of one file."""

    names: frozenset[str] = frozenset()
    """Modules, or something in them: `a.b.c`. One dot in front per level of a relative import."""
    packages: frozenset[str] = frozenset()
    """Imported with `*`: what a package lists is loaded with it."""
    is_open: bool = False


ANYTHING = Imports(is_open=True)


def imports_of(source: bytes) -> Imports:
    """A file that cannot be read this way may import anything."""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ANYTHING
    names: set[str] = set()
    packages: set[str] = set()
    for node in ast.walk(tree):
        if _opens(node):
            return ANYTHING
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = "." * node.level + (node.module or "")
            between = "." if node.module else ""
            names.add(origin)
            names.update(f"{origin}{between}{alias.name}" for alias in node.names)
            packages.update(origin for alias in node.names if alias.name == "*")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names |= named_modules(node.value)
    return Imports(frozenset(names), frozenset(packages))


def named_modules(text: str) -> set[str]:
    """The module that a text may name, as settings do."""
    return {text.partition(":")[0]} if _DOTTED.fullmatch(text) else set()


def _opens(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return node.id in _OPENING
    if isinstance(node, ast.Attribute):
        is_sys_path = node.attr == "path" and isinstance(node.value, ast.Name) and node.value.id == "sys"
        return is_sys_path or node.attr in _OPENING
    if isinstance(node, ast.Import):
        return any(not _OPENING.isdisjoint(alias.name.split(".")) for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        parts = {*(node.module or "").split("."), *(alias.name for alias in node.names)}
        return not _OPENING.isdisjoint(parts) or (node.module == "sys" and "path" in parts)
    return False
