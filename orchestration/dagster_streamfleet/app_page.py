"""The page of an app in Dagster: a sentence, its topology as a picture, and links that open the verbs' Launchpads filled in.

Dagster draws Markdown with pictures as data URIs; it strips plain SVG. The first line is plain text, because lists show it so.
"""

from __future__ import annotations

import base64
import re
from urllib.parse import quote

import yaml

from streamfleet_platform.views import AppDetail

MAX_PIXELS = 700
"""What is larger is clipped."""
_TAG = re.compile(r"<svg\b[^>]*>", re.DOTALL)
_SIZE = re.compile(r'\b(width|height)="([\d.]+)(?:px|pt)?"')


def app_page(app: AppDetail, picture: str | None, control_location: str) -> str:
    """Markdown."""
    parts = [
        f"{app.name} of {app.owner}: {len(app.sub_topologies)} sub-topologies, {len(app.stores)} stores.",
        f"Application id `{app.application_id}`, generation {app.generation}, revision `{app.revision[:19]}`.",
    ]
    if picture:
        parts.append(f"![topology of {app.name}]({data_uri(fitted(picture))})")
    parts.append(" · ".join(f"[{title}]({link})" for title, link in verb_links(app, control_location)))
    return "\n\n".join(parts)


def verb_links(app: AppDetail, location: str) -> list[tuple[str, str]]:
    """Titles and addresses. Reset is not filled in completely, on purpose: its confirmation is typed by a person."""
    one = {"app": app.name}
    verbs: list[tuple[str, str, dict[str, object]]] = [
        ("Scale", "scale", {"items": [{**one, "slots": app.slots}]}),
        ("Rebalance", "probe", {"items": [one]}),
        ("Start", "start", {**one}),
        ("Stop", "stop", {**one}),
        ("Upgrade", "upgrade", {**one}),
        ("Reset", "reset", {**one}),
    ]
    verbs += [(f"Bootstrap {name}", "bootstrap", {**one, "name": name}) for name in app.bootstraps]
    return [(title, launchpad(location, job, config)) for title, job, config in verbs]


def launchpad(location: str, job: str, config: dict[str, object]) -> str:
    text = yaml.safe_dump({"ops": {job: {"config": config}}}, sort_keys=False)
    return f"/locations/{quote(location)}/jobs/{job}/playground/setup?config={quote(text, safe='')}"


def fitted(svg: str) -> str:
    """The picture, no larger than Dagster shows whole."""
    tag = _TAG.search(svg)
    sizes = dict(_SIZE.findall(tag.group())) if tag else {}
    if tag is None or set(sizes) != {"width", "height"}:
        return svg
    width, height = float(sizes["width"]), float(sizes["height"])
    scale = min(1.0, MAX_PIXELS / max(width, height, 1.0))
    fit = _SIZE.sub(lambda found: f'{found[1]}="{float(found[2]) * scale:.0f}"', tag.group())
    if "viewBox" not in fit:
        fit = f'{fit[:-1]} viewBox="0 0 {width:g} {height:g}">'
    return svg[: tag.start()] + fit + svg[tag.end() :]


def data_uri(svg: str) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
