"""`validate`, `lock`, `diff`, `schema`: about the definitions in a directory, without a server. What a pull request runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from streamfleet_platform.cli import pages
from streamfleet_platform.cli.connection import ExitCode, Json, errors_told, tell
from streamfleet_platform.definitions.fleet import App, Fleet
from streamfleet_platform.definitions.git_tree import GitTree
from streamfleet_platform.definitions.json_schema import app_schema, fleet_schema
from streamfleet_platform.definitions.loader import APPS_DIRECTORY, load_fleet
from streamfleet_platform.definitions.tree import DirectoryTree
from streamfleet_platform.errors import InvalidDefinitionError, NotFoundError, Place, Problem
from streamfleet_platform.topologies.build_settings import build_settings
from streamfleet_platform.topologies.compiler import compile_topology
from streamfleet_platform.topologies.declarations import declaration_problems
from streamfleet_platform.topologies.lock import TopologyLock
from streamfleet_platform.topologies.lock_diff import diff_locks
from streamfleet_platform.topologies.verdicts import LockDiff

Source = Annotated[
    Path,
    typer.Option(
        "--source",
        metavar="DIR",
        envvar="STREAMFLEET_SOURCE",
        help="The directory or repository that holds code and definitions: modules are named from here.",
    ),
]
FleetPath = Annotated[
    Path,
    typer.Option(
        "--fleet", metavar="PATH", envvar="STREAMFLEET_FLEET", help="Where in it the definitions are, with fleet.yaml."
    ),
]
Apps = Annotated[list[str] | None, typer.Argument(metavar="[APP]...", help="Only these (default: all).")]
HERE = Path()


def validate(source: Source = HERE, fleet: FleetPath = HERE, as_json: Json = False) -> None:
    """Check the definitions: every problem of every file, with its line; and that locks fit what is declared.

    Exit code 1 if something is wrong, 3 if only locks are missing (write them with `streamfleet lock`), 0 if all is well.

    Example: streamfleet validate --fleet fleets/production
    """
    with errors_told():
        problems, missing, apps = _validated(source / fleet)
    if as_json:
        pages.print_json({"apps": apps, "problems": [_told(problem) for problem in problems], "missing_locks": missing})
    else:
        for problem in sorted(problems):
            pages.print_line(problem)
        if missing:
            pages.print_line(f"no lock yet: {', '.join(missing)}; write it with `streamfleet lock`")
        if not problems:
            pages.print_line(f"valid: {apps} {'app' if apps == 1 else 'apps'}")
    raise typer.Exit(ExitCode.FAILED if problems else ExitCode.PENDING if missing else ExitCode.OK)


def _validated(definitions: Path) -> tuple[list[Problem], list[str], int]:
    """What is wrong, which apps have no lock, and how many there are."""
    try:
        loaded = load_fleet(DirectoryTree(definitions))
    except InvalidDefinitionError as error:
        return list(error.problems), [], 0
    problems: list[Problem] = []
    missing = []
    for app in loaded.apps.values():
        found = _lock(definitions, app)
        if found is None:
            missing.append(app.name)
        else:
            problems += declaration_problems(app, loaded.apps, found)
    return problems, missing, len(loaded.apps)


def lock(
    apps: Apps = None,
    source: Source = HERE,
    fleet: FleetPath = HERE,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit code 3 if something would be.")] = False,
) -> None:
    """Compile the apps' topologies and write their lock files, for review beside the code.

    Example: streamfleet lock orders --fleet fleets/production

    Example: streamfleet lock --check
    """
    with errors_told():
        changed = []
        loaded = load_fleet(DirectoryTree(source / fleet))
        for app in _chosen(loaded, apps):
            new = _compiled(loaded, app, source)
            path = _lock_path(source / fleet, app)
            if path.exists() and path.read_bytes() == new.to_file():
                continue
            changed.append(app.name)
            if not check:
                path.write_bytes(new.to_file())
            tell(f"{'out of date' if check else 'written'}: {path}")
    raise typer.Exit(ExitCode.PENDING if check and changed else ExitCode.OK)


def diff(
    apps: Apps = None,
    source: Source = HERE,
    fleet: FleetPath = HERE,
    against: Annotated[
        str | None,
        typer.Option(
            "--against", metavar="REF", help="The locks of this branch, tag or commit (default: the lock files here)."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare what the code compiles to with its lock: what changes, what it means for the state, what would be lost.

    Exit code 3 if something differs, 0 if not.

    Example: streamfleet diff --against main
    """
    with errors_told():
        loaded = load_fleet(DirectoryTree(source / fleet))
        chosen = _chosen(loaded, apps)
        old = _Locks(source / fleet, against)
        found = {
            app.name: diff_locks(before, _compiled(loaded, app, source))
            for app in chosen
            if (before := old.of(app)) is not None
        }
        new = [app.name for app in chosen if app.name not in found]
    if as_json:
        pages.print_json({"new": new, "apps": {name: _diff_content(each) for name, each in found.items()}})
    else:
        _print_diffs(found, new)
    raise typer.Exit(ExitCode.PENDING if new or any(each.changes for each in found.values()) else ExitCode.OK)


def schema(
    kind: Annotated[Literal["app", "fleet"], typer.Argument(metavar="app|fleet", help="Of which file.")],
) -> None:
    """Print the JSON Schema of a definition file, for editors.

    Example: streamfleet schema app > app.schema.json
    """
    print(json.dumps(app_schema() if kind == "app" else fleet_schema(), indent=2))


def repository_of(source: Path) -> Path | None:
    """The nearest directory above that Git knows."""
    here = source.resolve()
    return next((directory for directory in (here, *here.parents) if (directory / ".git").exists()), None)


class _Locks:
    """Lock files as they are here, or as they are in a commit."""

    def __init__(self, source: Path, ref: str | None) -> None:
        self._source = source
        self._tree: GitTree | None = None
        if ref is not None:
            repository = repository_of(source)
            if repository is None:
                raise NotFoundError(f"{source} is in no Git repository", hint="leave --against away")
            inside = source.resolve().relative_to(repository)
            self._tree = GitTree(repository, ref, "" if inside == Path() else inside.as_posix())

    def of(self, app: App) -> TopologyLock | None:
        if self._tree is None:
            return _lock(self._source, app)
        path = f"{APPS_DIRECTORY}/{_lock_name(app)}"
        if not self._tree.has(path):
            return None
        (data,) = self._tree.read([path])
        return TopologyLock.from_file(data)


def _chosen(fleet: Fleet, names: list[str] | None) -> list[App]:
    for name in names or ():
        if name not in fleet.apps:
            raise NotFoundError(f"there is no app {name}", hint=f"the fleet has {', '.join(fleet.apps) or 'none'}")
    return [app for app in fleet.apps.values() if not names or app.name in names]


def _compiled(fleet: Fleet, app: App, code: Path) -> TopologyLock:
    cluster = fleet.definition.spec.clusters[app.spec.cluster]
    settings = build_settings(app.spec.run.config, cluster.config)
    names = app.spec.topology.require_names
    return compile_topology(code, app.spec.code.entrypoint, settings=settings, require_names=names).lock


def _lock_name(app: App) -> str:
    return app.spec.topology.lock or f"{app.name}.lock.json"


def _lock_path(source: Path, app: App) -> Path:
    return source / APPS_DIRECTORY / _lock_name(app)


def _lock(source: Path, app: App) -> TopologyLock | None:
    path = _lock_path(source, app)
    return TopologyLock.from_file(path.read_bytes()) if path.exists() else None


def _told(problem: Problem) -> dict[str, Any]:
    place: Place = problem.place
    return {"file": place.file, "line": place.line, "column": place.column, "fact": problem.fact, "hint": problem.hint}


def _diff_content(found: LockDiff) -> dict[str, Any]:
    changes = [
        {"what": each.what, "subject": each.subject, "verdict": each.verdict.name, "reason": each.reason}
        for each in found.changes
    ]
    return {"verdict": found.verdict.name, "lost_state": list(found.lost_state), "changes": changes}


def _print_diffs(found: dict[str, LockDiff], new: list[str]) -> None:
    for name in new:
        pages.print_line(f"{name}: new, there is no lock to compare with")
    for name, each in found.items():
        first, *rest = each.lines()
        pages.print_line(f"{name}: {first}", "bold" if rest else "")
        for line in rest:
            pages.print_line(f"  {line}")
