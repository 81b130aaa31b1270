"""A tree of files becomes a fleet, or InvalidDefinitionError with everything that is wrong.

    fleet.yaml            clusters, runtime, tiers, budgets
    apps/NAME.yaml        one app
    apps/NAME.lock.json   its topology lock (topologies/)

Syntax is in yaml_nodes.py, fields in validation.py, defaults in layers.py, settings and secrets in client_config.py,
what apps say about one another in references.py. A problem in one file does not hide those in others.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import PurePosixPath

from streamfleet_platform.definitions.client_config import (
    HOW_TO_REFER,
    app_config_problems,
    cluster_config_problems,
    literal_secrets,
)
from streamfleet_platform.definitions.fleet import App, Fleet, lineage_of
from streamfleet_platform.definitions.layers import layer_problems, with_layers
from streamfleet_platform.definitions.references import reference_problems
from streamfleet_platform.definitions.tree import Tree, TreeFile
from streamfleet_platform.definitions.validation import MAX_PROBLEMS, validate
from streamfleet_platform.definitions.yaml_nodes import MAX_BYTES, Node, parse_yaml
from streamfleet_platform.errors import InvalidDefinitionError, Place, Problem
from streamfleet_platform.model.app_definition import AppDefinition
from streamfleet_platform.model.fleet_definition import FleetDefinition
from streamfleet_platform.model.names import is_name

FLEET_FILE = "fleet.yaml"
APPS_DIRECTORY = "apps"
MAX_APP_FILES = 5000


def load_fleet(tree: Tree) -> Fleet:
    loading = _Loading(tree)
    fleet = loading.fleet()
    apps = loading.apps()
    if fleet is not None:
        loading.problems += islice(reference_problems(fleet, apps, loading.broken), MAX_PROBLEMS)
    if fleet is None or loading.problems:
        raise InvalidDefinitionError(loading.told_problems())
    return Fleet(fleet, apps, lineage_of(apps), tree.commit, loading.document)


class _Loading:
    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._fleet = Node(None, Place(FLEET_FILE))
        self._secrets: set[Place] = set()
        self.problems: list[Problem] = []
        self.broken: set[str] = set()
        """Apps whose files could not be read: what refers to them is not wrong for that."""

    @property
    def document(self) -> Node:
        return self._fleet

    def told_problems(self) -> list[Problem]:
        """Where a secret stands nothing else is told: it might repeat the value."""
        return [
            problem for problem in self.problems if problem.place not in self._secrets or problem.hint == HOW_TO_REFER
        ]

    def fleet(self) -> FleetDefinition | None:
        if not self._tree.has(FLEET_FILE):
            hint = "a definitions directory has one at its root, with spec.clusters"
            self.problems.append(Problem(Place(FLEET_FILE), "there is no fleet.yaml", hint))
            return None
        (data,) = self._tree.read([FLEET_FILE])
        document = self._parsed(data, FLEET_FILE)
        if document is None:
            return None
        self._fleet = document
        definition, problems = validate(FleetDefinition, document)
        self.problems += problems
        self.problems += layer_problems(document)
        self.problems += _cluster_problems(document)
        self._look_for_secrets(document)
        return definition

    def apps(self) -> dict[str, App]:
        files = list(self._app_files())
        found: dict[str, App] = {}
        for file, data in zip(files, self._tree.read([file.path for file in files]), strict=True):
            app = self._app(file.path, data)
            if app is None:
                self.broken.add(PurePosixPath(file.path).stem)
            else:
                found[app.name] = app
        return found

    def _app_files(self) -> Iterator[TreeFile]:
        files = self._tree.files(APPS_DIRECTORY)
        if len(files) > MAX_APP_FILES:
            fact = f"there are {len(files)} files, more than {MAX_APP_FILES}"
            self.problems.append(Problem(Place(APPS_DIRECTORY), fact, "make it several fleets"))
            return
        for file in files:
            path = PurePosixPath(file.path)
            if path.suffix not in (".yaml", ".yml"):
                continue
            if file.size > MAX_BYTES:
                self._refuse(file, f"the file has {file.size} bytes", f"a definition has at most {MAX_BYTES}")
            elif path.suffix == ".yml" or len(path.parts) != 2 or not is_name(path.stem):
                self._refuse(
                    file, "definitions are named apps/NAME.yaml", "move it, with lower-case letters, digits and -"
                )
            else:
                yield file

    def _app(self, file: str, data: bytes) -> App | None:
        written = self._parsed(data, file)
        if written is None:
            return None
        tier = written.get("metadata", "tier")
        document = with_layers(
            written, self._fleet, tier.value if tier is not None and isinstance(tier.value, str) else None
        )
        definition, problems = validate(AppDefinition, document)
        self.problems += self._about_app(problems, file, written)
        self._look_for_secrets(written)
        self.problems += app_config_problems(
            document.get("spec", "run", "config"), document.get("spec", "run", "secrets")
        )
        if definition is None:
            return None
        name = definition.metadata.name
        if name != PurePosixPath(file).stem:
            name_node = written.get("metadata", "name")
            assert name_node is not None
            self.problems.append(
                Problem(name_node.place, f"app {name} is in the file {file}", f"name the file {name}.yaml")
            )
        return App(file, definition, document)

    def _about_app(self, problems: list[Problem], file: str, written: Node) -> Iterator[Problem]:
        """What is wrong in fleet.yaml by itself is told once. What only this app makes of its defaults is told here."""
        told = set(self.problems)
        spec = written.entries["spec"].place if "spec" in written.entries else written.place
        for problem in problems:
            if problem.place.file == file:
                yield problem
            elif problem not in told:
                yield Problem(spec, f"with what {problem.place} gives: {problem.fact}", problem.hint)

    def _look_for_secrets(self, document: Node) -> None:
        found = list(literal_secrets(document))
        self._secrets |= {problem.place for problem in found}
        self.problems += found

    def _parsed(self, data: bytes, file: str) -> Node | None:
        try:
            return parse_yaml(data, file)
        except InvalidDefinitionError as error:
            self.problems += error.problems
            return None

    def _refuse(self, file: TreeFile, fact: str, hint: str) -> None:
        self.problems.append(Problem(Place(file.path), fact, hint))


def _cluster_problems(fleet: Node) -> Iterator[Problem]:
    clusters = fleet.get("spec", "clusters")
    for entry in () if clusters is None else clusters.entries.values():
        allow = entry.node.get("allowInsecure")
        yield from cluster_config_problems(
            entry.node.get("config"),
            entry.node.get("secrets"),
            allow_insecure=allow is not None and allow.value is True,
        )
