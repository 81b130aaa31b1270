"""Effective values: built-in tier <- fleet.yaml's defaults <- its tier <- the app's file, later ones win. Called by loader.py.

Mappings are merged key by key, everything else is replaced as a whole. Nodes keep their places, so the merged tree still
says which file and line set each value: that is the provenance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from streamfleet_platform.definitions.validation import validate_part
from streamfleet_platform.definitions.yaml_nodes import Entry, Node, node_of
from streamfleet_platform.errors import Place, Problem
from streamfleet_platform.model.app_definition import IDENTITY_FIELDS, AppDefinition
from streamfleet_platform.model.fleet_definition import Tier

BUILT_IN_TIERS: Mapping[str, Tier] = MappingProxyType(
    {
        "gold": Tier(priority=100, defaults={"state": {"standbys": 1}}),
        "silver": Tier(priority=50),
        "bronze": Tier(priority=10),
    }
)

_NOWHERE = Place("an app")
_ANY_APP = node_of(
    {
        "apiVersion": "streamfleet/v1",
        "kind": "StreamsApp",
        "metadata": {"name": "any", "owner": "any"},
        "spec": {
            "code": {"entrypoint": "any:app"},
            "cluster": "any",
            "applicationId": "any",
            "inputs": {"any": {"topic": "any"}},
        },
    },
    _NOWHERE,
)
"""What defaults are tried on."""


@dataclass(frozen=True)
class EffectiveValue:
    """One value of an app and where it was set; None: nowhere, it is the field's default."""

    path: tuple[str, ...]
    value: Any
    place: Place | None


def merged(below: Node, above: Node) -> Node:
    """`above` wins."""
    if not isinstance(below.value, dict) or not isinstance(above.value, dict):
        return above
    entries = dict(below.value)
    for key, entry in above.value.items():
        old = entries.get(key)
        entries[key] = entry if old is None else Entry(entry.place, merged(old.node, entry.node))
    return Node(entries, above.place, above.size)


def with_layers(app: Node, fleet: Node, tier: str | None) -> Node:
    """The app's document with everything that tier and fleet give it."""
    spec = app.get("spec")
    if spec is None:
        return app
    for layer in reversed(_layers(fleet, tier)):
        spec = merged(layer, spec)
    entries = dict(app.entries)
    entries["spec"] = Entry(entries["spec"].place, spec)
    return Node(entries, app.place, app.size)


def _layers(fleet: Node, tier: str | None) -> list[Node]:
    """Weakest first."""
    found = [fleet.get("spec", "defaults")]
    if tier is not None:
        if tier in BUILT_IN_TIERS:
            found.insert(0, node_of(BUILT_IN_TIERS[tier].defaults, Place(f"built-in tier {tier}")))
        found.append(fleet.get("spec", "tiers", tier, "defaults"))
    return [layer for layer in found if layer is not None]


def layer_problems(fleet: Node) -> list[Problem]:
    """What is wrong with defaults, also with those that no app has yet."""
    problems: list[Problem] = []
    for path, layer in _declared_layers(fleet):
        problems += [
            Problem(entry.place, f"{path} cannot give {name}", "it says what an app is: write it there")
            for name, entry in layer.entries.items()
            if name in IDENTITY_FIELDS
        ]
        rest = Node({k: v for k, v in layer.entries.items() if k not in IDENTITY_FIELDS}, layer.place, layer.size)
        document = merged(_ANY_APP, Node({"spec": Entry(layer.place, rest)}, layer.place))
        problems += [
            problem for problem in validate_part(AppDefinition, document) if problem.place.file == layer.place.file
        ]
    return problems


def _declared_layers(fleet: Node) -> Iterator[tuple[str, Node]]:
    defaults = fleet.get("spec", "defaults")
    if defaults is not None:
        yield "spec.defaults", defaults
    tiers = fleet.get("spec", "tiers")
    for name, entry in () if tiers is None else tiers.entries.items():
        layer = entry.node.get("defaults")
        if layer is not None:
            yield f"spec.tiers.{name}.defaults", layer


def effective_values(document: Node, definition: AppDefinition) -> list[EffectiveValue]:
    """Every value the app has, in the order of the fields, as it is written or as its default is."""
    return list(_values((), document, definition.model_dump(by_alias=True)))


def _values(path: tuple[str, ...], node: Node | None, value: Any) -> Iterator[EffectiveValue]:
    if isinstance(value, Mapping) and value and (node is None or isinstance(node.value, dict)):
        for key, below in value.items():
            yield from _values((*path, key), None if node is None else node.get(key), below)
    elif node is None:
        yield EffectiveValue(path, value, None)
    else:
        yield EffectiveValue(path, value, node.place)


def place_of(document: Node, *path: str) -> Place:
    """Where the value below a path is written; of what is above it if it is not."""
    node = document
    for key in path:
        below = node.get(key)
        if below is None:
            break
        node = below
    return node.place
