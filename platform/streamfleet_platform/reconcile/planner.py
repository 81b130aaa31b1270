"""Definitions at a ref against the registry: what applying them would mean for each app. Called by server/ for plan and apply.

Apps are compiled only where their code or entry point is another than that of the revision they are at, or where there is no lock
to compare; everything else is a comparison of hashes. A lock file beside a definition is a claim: it has to be what the code gives.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from streamfleet_platform.definitions.app_code import AppCode, CodeTree, KnownImports
from streamfleet_platform.definitions.fleet import App as DeclaredApp
from streamfleet_platform.definitions.fleet import Fleet
from streamfleet_platform.definitions.source import Source, SourceState
from streamfleet_platform.definitions.yaml_nodes import plain
from streamfleet_platform.errors import CompileError, FleetError, InvalidDefinitionError, InvalidLockError
from streamfleet_platform.reconcile.changes import Known, change_of, unchanged
from streamfleet_platform.reconcile.fleet_state import definition_of
from streamfleet_platform.reconcile.input_counts import CountingInputs, InputCounts, Resized
from streamfleet_platform.reconcile.measured import last_restart_seconds
from streamfleet_platform.registry import apps
from streamfleet_platform.registry.database import Database
from streamfleet_platform.registry.tables import App, Revision
from streamfleet_platform.topologies.build_settings import build_settings
from streamfleet_platform.topologies.compiler import Compiled, compile_topology
from streamfleet_platform.topologies.declarations import declaration_problems
from streamfleet_platform.topologies.lock import TopologyLock
from streamfleet_platform.views import AppChange, PlanView

Compile = Callable[..., Compiled]


@dataclass(frozen=True)
class Planned:
    """A plan, and what it takes to carry it out."""

    view: PlanView
    fleet: Fleet | None = None
    revisions: Mapping[str, Revision] = field(default_factory=dict)
    """Of apps that change."""


@dataclass(frozen=True)
class Sketch:
    """What the registry has of an app, as far as it takes to see that nothing has changed."""

    app: App
    code_id: str
    definition_hash: str


class Planner:
    """`code` is where revisions' code is exported to; `inputs` knows what became of the topics that apps read."""

    def __init__(
        self,
        source: Source,
        database: Database,
        code: Path,
        clock: Callable[[], datetime],
        inputs: CountingInputs,
        compile_app: Compile = compile_topology,
    ) -> None:
        self._source = source
        self._database = database
        self._code = code
        self._clock = clock
        self._inputs = inputs
        self._compile = compile_app
        self._compiled: dict[tuple[str, str, str], Compiled] = {}
        self._imports: KnownImports = {}

    def plan(self, ref: str | None, *, only: frozenset[str] | None = None) -> Planned:
        """`only` these apps are looked at closely; the definitions are loaded, and have to be right, as a whole."""
        state = self._source.at(ref or self._followed())
        try:
            fleet = state.load()
        except InvalidDefinitionError as error:
            return Planned(PlanView(revision="", changes=(), problems=tuple(map(str, error.problems))))
        planning = _Planning(self, state, fleet, self._sketches())
        planned = planning.planned(only)
        self._remember(planning)
        return planned

    def _remember(self, planning: _Planning) -> None:
        """What the next plan may use again: of this state, and nothing of those before."""
        self._imports = planning.tree.imports
        codes = planning.tree.ids
        self._compiled = {key: value for key, value in list(self._compiled.items()) if key[0] in codes}

    def _followed(self) -> str | None:
        """The head of the branch that is followed, which is what the fleet is to be; None: the directory as it is."""
        if not self._source.is_git:
            return None
        with self._database.read() as session:
            definition = definition_of(apps.fleet_state(session))
        follow = None if definition is None else definition.spec.follow
        return None if follow is None else self._source.head_of(follow.branch)

    def _sketches(self) -> dict[str, Sketch]:
        with self._database.read() as session:
            rows = list(apps.all_apps(session))
            hashes = apps.revision_hashes(session, [(row.name, row.revision) for row in rows])
        return {row.name: Sketch(row, *hashes[row.name, row.revision]) for row in rows}

    def known(self, row: App) -> Known:
        with self._database.read() as session:
            revision = apps.get_revision(session, row.name, row.revision)
            return Known(row, revision, last_restart_seconds(session, row.name))

    def input_counts(self, rows: Sequence[App]) -> InputCounts:
        return self._inputs.look(rows)

    def compiled(self, state: SourceState, code: AppCode, app: DeclaredApp, settings: Mapping[str, Any]) -> Compiled:
        built_with = json.dumps([settings, app.spec.topology.require_names], sort_keys=True)
        key = (code.id, app.spec.code.entrypoint, built_with)
        directory = self.exported(state, code)  # each time: what no revision names is deleted
        if key not in self._compiled:
            self._compiled[key] = self._compile(
                directory,
                app.spec.code.entrypoint,
                settings=settings,
                require_names=app.spec.topology.require_names,
            )
        return self._compiled[key]

    def code_tree(self, state: SourceState, include: tuple[str, ...]) -> CodeTree:
        return state.code_tree(include, self._imports)

    def exported(self, state: SourceState, code: AppCode) -> Path:
        """Nothing is done where it is there."""
        return state.export(code, self._code)

    def new_revision(self, **values: Any) -> Revision:
        return Revision(created_at=self._clock(), **values)


class _Planning:
    def __init__(self, planner: Planner, state: SourceState, fleet: Fleet, known: Mapping[str, Sketch]) -> None:
        self._planner = planner
        self._state = state
        self._fleet = fleet
        self._known = known
        self.tree = planner.code_tree(state, fleet.definition.spec.code.include)
        self._revision_id = state.revision_id(self.tree.id)
        self._lock_files = state.lock_files()

    def planned(self, only: frozenset[str] | None) -> Planned:
        changes: list[AppChange] = []
        revisions: dict[str, Revision] = {}
        chosen = [each.app for each in self._known.values() if only is None or each.app.name in only]
        inputs = self._planner.input_counts(chosen)
        warnings = [f"apps feed one another in a circle: {', '.join(c)}" for c in self._fleet.lineage.cycles]
        warnings += inputs.unknown
        for name, app in self._fleet.apps.items():
            if only is not None and name not in only:
                continue
            change, revision = self._app(app, inputs.resized.get(name))
            changes.append(change)
            if revision is not None:
                revisions[name] = revision
        changes.extend(
            AppChange(app=name, action="absent", changes=("no longer declared; retire it to end it",))
            for name in sorted(self._known.keys() - self._fleet.apps.keys())
            if only is None or name in only
        )
        view = PlanView(revision=self._revision_id, changes=tuple(changes), warnings=tuple(warnings))
        return Planned(view, self._fleet, revisions)

    def _app(self, app: DeclaredApp, resized: Resized | None) -> tuple[AppChange, Revision | None]:
        sketch = self._known.get(app.name)
        definition = plain(app.document)
        cluster = self._fleet.definition.spec.clusters[app.spec.cluster].model_dump(by_alias=True, mode="json")
        hash_ = hashlib.sha256(json.dumps([definition, cluster], sort_keys=True).encode()).hexdigest()
        settings = {**cluster["config"], **app.spec.run.config}
        code = self.tree.of(app.spec.code.entrypoint, settings.values())
        is_same_code = sketch is not None and sketch.code_id == code.id
        if is_same_code:
            self._planner.exported(self._state, code)  # it may have been lost, and the app runs from it
        if sketch is not None and is_same_code and sketch.definition_hash == hash_:
            return unchanged(app, None if resized is None else self._planner.known(sketch.app), resized), None
        known = None if sketch is None else self._planner.known(sketch.app)
        try:
            lock, picture = self._lock(app, code, known, build_settings(app.spec.run.config, cluster["config"]))
        except FleetError as error:
            return _refused(app, known, str(error)), None
        if problems := declaration_problems(app, self._fleet.apps, lock):
            return _refused(app, known, "\n".join(map(str, problems))), None
        revision = self._planner.new_revision(
            app=app.name,
            id=self._revision_id,
            code_id=code.id,
            definition_hash=hash_,
            topology_hash=lock.hash,
            definition=definition,
            lock=lock.to_file().decode(),
            picture=picture,
            provenance=[[".".join(v.path), str(v.value), str(v.place or "default")] for v in app.values()],
            cluster_settings=cluster,
        )
        downstream = self._fleet.lineage.downstream_of(app.name)
        spec = self._fleet.definition.spec
        change = change_of(app, lock, known, downstream, spec, is_same_code=is_same_code, resized=resized)
        return change, revision

    def _lock(
        self, app: DeclaredApp, code: AppCode, known: Known | None, settings: Mapping[str, Any]
    ) -> tuple[TopologyLock, str]:
        """What the code gives, with its picture; without compiling where that is known."""
        if known is not None and known.has_same_code(code.id, app, settings):
            lock, picture = known.lock, known.revision.picture
        else:
            compiled = self._planner.compiled(self._state, code, app, settings)
            lock, picture = compiled.lock, compiled.svg
        self._check_lock_file(app, lock)
        return lock, picture

    def _check_lock_file(self, app: DeclaredApp, lock: TopologyLock) -> None:
        name = app.spec.topology.lock
        if name is None:
            return
        path = (PurePosixPath(app.file).parent / name).as_posix()
        how = f"write it with `streamfleet lock {app.name}`, and review the difference"
        if path not in self._lock_files:
            raise InvalidLockError(f"there is no lock {path}", hint=how)
        written = TopologyLock.from_file(self._lock_files[path])
        if written.hash != lock.hash:
            raise CompileError(f"{path} has hash {written.hash}, the code gives {lock.hash}", hint=how)


def _refused(app: DeclaredApp, known: Known | None, why: str) -> AppChange:
    owner, action = app.definition.metadata.owner, "create" if known is None else "update"
    return AppChange.model_validate({"app": app.name, "owner": owner, "action": action, "blocked": why})
