"""The page of an app in Dagster: a sentence, its topology as a picture, and links that open the verbs' Launchpads filled in.

Dagster draws Markdown with pictures as data URIs; it strips plain SVG. The first line is plain text, because lists show it so.
"""

from __future__ import annotations

from urllib.parse import quote

import yaml

from dagster_streamfleet.picture import data_uri, fitted
from dagster_streamfleet.translator import APP_TAG, FleetTranslator, tag_value
from streamfleet_platform.views import AppDetail


def app_page(app: AppDetail, picture: str | None, control_location: str, translator: FleetTranslator) -> str:
    """Markdown."""
    parts_of_it = _counted(len(app.sub_topologies), "sub-topology", "sub-topologies")
    parts = [
        f"{app.name} of {app.owner}: {parts_of_it}, {_counted(len(app.stores), 'store', 'stores')}.",
        f"Application id `{app.application_id}`, generation {app.generation}, revision `{app.revision[:19]}`.",
    ]
    links = [("Lineage", lineage_link(app, translator)), *verb_links(app, control_location)]
    parts.append(" · ".join(f"[{title}]({link})" for title, link in links))
    if picture:  # at the end: Dagster folds what is high
        parts.append(f"![topology of {app.name}]({data_uri(fitted(picture))})")
    return "\n\n".join(parts)


def _counted(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


def verb_links(app: AppDetail, location: str) -> list[tuple[str, str]]:
    """Titles and addresses. Reset and retire are not filled in completely, on purpose: a person types the confirmation."""
    one = {"app": app.name}
    verbs: list[tuple[str, str, dict[str, object]]] = [
        ("Scale", "scale", {"items": [{**one, "slots": app.slots}]}),
        ("Rebalance", "probe", {"items": [one]}),
        ("Start", "start", {**one}),
        ("Stop", "stop", {**one}),
        ("Upgrade", "upgrade", {**one}),
        ("Reset", "reset", {**one}),
        ("Retire", "retire", {**one}),
    ]
    verbs += [(f"Bootstrap {name}", "bootstrap", {**one, "name": name}) for name in app.bootstraps]
    return [(title, launchpad(location, job, config)) for title, job, config in verbs]


def lineage_link(app: AppDetail, translator: FleetTranslator) -> str:
    """The app alone in the lineage graph, with its groups open: by itself Dagster shows them as one closed box."""
    selection = quote(f'tag:"{APP_TAG}"="{tag_value(app.name)}"', safe="")
    groups = [translator.domain(app), translator.group(app)]
    return f"/asset-groups~{selection}/?expanded={quote(','.join(f'global@global:{each}' for each in groups), safe='')}"


def launchpad(location: str, job: str, config: dict[str, object]) -> str:
    text = yaml.safe_dump({"ops": {job: {"config": config}}}, sort_keys=False)
    return f"/locations/{quote(location)}/jobs/{job}/playground/setup?config={quote(text, safe='')}"
