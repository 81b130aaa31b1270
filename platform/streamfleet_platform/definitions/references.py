"""What apps say about one another and about the fleet: clusters, tiers, inputs, secrets, application ids. Called by loader.py
with definitions that are right by themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from streamfleet_platform.definitions.fleet import App
from streamfleet_platform.definitions.layers import BUILT_IN_TIERS, place_of
from streamfleet_platform.definitions.validation import unknown_hint
from streamfleet_platform.errors import Place, Problem
from streamfleet_platform.model.fleet_definition import FleetDefinition


def reference_problems(
    fleet: FleetDefinition, apps: Mapping[str, App], broken: Collection[str] = ()
) -> Iterator[Problem]:
    """`broken` apps are there but could not be read: what refers to them is not looked at."""
    for app in apps.values():
        yield from _fleet_problems(fleet, app)
        yield from _input_problems(apps, app, broken)
    yield from _ambiguous_ids(apps)
    yield from _budget_problems(fleet, apps)


def tier_problem(fleet: FleetDefinition, app: App) -> Problem | None:
    tier = app.definition.metadata.tier
    known = BUILT_IN_TIERS.keys() | fleet.spec.tiers.keys()
    if tier is None or tier in known:
        return None
    return Problem(place_of(app.document, "metadata", "tier"), f"there is no tier {tier}", unknown_hint(tier, known))


def _fleet_problems(fleet: FleetDefinition, app: App) -> Iterator[Problem]:
    if (problem := tier_problem(fleet, app)) is not None:
        yield problem
    clusters = fleet.spec.clusters
    if app.spec.cluster not in clusters:
        place = place_of(app.document, "spec", "cluster")
        yield Problem(place, f"there is no cluster {app.spec.cluster}", unknown_hint(app.spec.cluster, clusters))
    if app.spec.code.image is not None:
        place = place_of(app.document, "spec", "code", "image")
        fact = "code.image is for a runtime that runs images, and there is none yet"
        yield Problem(place, fact, "leave image and digest out: workers run the code of the source")
    for name, secret in app.spec.run.secrets.items():
        if secret.env is not None and secret.env not in fleet.spec.secrets.env:
            place = place_of(app.document, "spec", "run", "secrets", name, "env")
            yield Problem(
                place, f"apps may not read the variable {secret.env}", "list it in fleet.yaml under spec.secrets.env"
            )


def _input_problems(apps: Mapping[str, App], app: App, broken: Collection[str]) -> Iterator[Problem]:
    for label, source in app.spec.inputs.items():
        if source.app is None or source.output is None or source.app in broken:
            continue
        place = place_of(app.document, "spec", "inputs", label, "app")
        upstream = apps.get(source.app)
        if upstream is None:
            yield Problem(place, f"input {label}: there is no app {source.app}", unknown_hint(source.app, apps))
        elif source.output not in upstream.spec.outputs:
            outputs = upstream.spec.outputs
            hint = unknown_hint(source.output, outputs) if outputs else f"declare it in {upstream.file}"
            place = place_of(app.document, "spec", "inputs", label, "output")
            yield Problem(place, f"input {label}: app {source.app} has no output {source.output}", hint)
        elif upstream.spec.cluster != app.spec.cluster:
            fact = f"input {label}: app {source.app} writes to cluster {upstream.spec.cluster}, this app reads {app.spec.cluster}"
            yield Problem(place, fact, "both must be on one cluster; mirror the topic")


def _budget_problems(fleet: FleetDefinition, apps: Mapping[str, App]) -> Iterator[Problem]:
    budget, least = fleet.spec.budgets.slots, sum(app.spec.scale.min for app in apps.values())
    if budget is not None and least > budget:
        fact = f"the apps want {least} slots at least, the fleet's budget is {budget}"
        yield Problem(Place("fleet.yaml"), fact, "raise spec.budgets.slots, or lower scale.min of apps")


def _ambiguous_ids(apps: Mapping[str, App]) -> Iterator[Problem]:
    """App `a` with store `b-c` and app `a-b` with store `c` would share the changelog `a-b-c-changelog`."""
    owners: dict[tuple[str, str], App] = {}
    for app in sorted(apps.values(), key=lambda app: app.file):
        first = owners.setdefault((app.spec.cluster, app.spec.application_id), app)
        if first is not app:
            place = place_of(app.document, "spec", "applicationId")
            fact = f"application id {app.spec.application_id} is also that of app {first.name}"
            yield Problem(place, fact, "they would share topics, group and state: choose another")
    for (cluster, application_id), app in owners.items():
        words = application_id.split("-")
        for count in range(1, len(words)):
            shorter = owners.get((cluster, "-".join(words[:count])))
            if shorter is not None:
                yield Problem(
                    place_of(app.document, "spec", "applicationId"),
                    f"application id {application_id} begins with that of app {shorter.name}, {shorter.spec.application_id}",
                    "internal topics of the two could have the same name: choose another",
                )
