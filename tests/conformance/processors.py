"""Suppliers of the named processors and transformers: `ops` and `papi_ops` ask for them, the engine calls them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.conformance import behaviours, specs
from tests.conformance.behaviours import Behaviour, StoreKinds
from tests.conformance.kit import Json, MalformedScenarioError

import streamfleet as sf

_ANYWHERE: dict[str, type[Behaviour]] = {
    "route": behaviours.Route,
    "count": behaviours.Count,
    "dedup": behaviours.Dedup,
    "put": behaviours.Put,
    "lookup": behaviours.Lookup,
    "buffer": behaviours.Buffer,
    "punctuate": behaviours.Punctuate,
    "header": behaviours.Header,
    "with_timestamp": behaviours.WithTimestamp,
    "commit": behaviours.Commit,
    "fail_on": behaviours.FailOn,
    "store_script": behaviours.StoreScript,
}
_PROCESSORS = {**_ANYWHERE, "apply": behaviours.Apply}
_FIXED_KEY = {**_ANYWHERE, "apply": behaviours.ApplyToValue}
_TRANSFORMERS: dict[str, type[Behaviour]] = {"apply": behaviours.ApplyTransformer, "count": behaviours.CountTransformer}


class Supplier:
    """Makes a new processor at every call: the named behaviour on top of one of the engine's base classes."""

    def __init__(self, base: type, behaviour: type[Behaviour], spec: Mapping[str, Json], stores: StoreKinds) -> None:
        behaviour(spec, stores)  # finds a mistake in the file now rather than in a task
        self._class = type(behaviour.__name__, (behaviour, base), {})
        self._arguments = (spec, stores)

    def __call__(self) -> Any:
        return self._class(*self._arguments)


class ConnectedSupplier(Supplier):
    """A supplier that brings its stores."""

    def stores(self) -> list[Any]:
        return [specs.store(spec) for spec in self._arguments[0]["provides"]]


def _supplier(
    base: type, known: Mapping[str, type[Behaviour]], spec: Mapping[str, Json], stores: StoreKinds
) -> Supplier:
    name = str(spec.get("name"))
    if name not in known:
        raise MalformedScenarioError(f"unknown processor {name}")
    make = ConnectedSupplier if "provides" in spec else Supplier
    return make(base, known[name], spec, stores)


def processor(spec: Mapping[str, Json], stores: StoreKinds) -> Supplier:
    return _supplier(sf.Processor, _PROCESSORS, spec, stores)


def fixed_key_processor(spec: Mapping[str, Json], stores: StoreKinds) -> Supplier:
    return _supplier(sf.FixedKeyProcessor, _FIXED_KEY, spec, stores)


def transformer(spec: Mapping[str, Json], stores: StoreKinds) -> Supplier:
    return _supplier(sf.ValueTransformer, _TRANSFORMERS, spec, stores)
