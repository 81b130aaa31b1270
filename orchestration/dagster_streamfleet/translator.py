"""Names of the fleet in Dagster's words: the one place that knows which characters Dagster takes, and how things are grouped.

Used by everything that makes or reports on assets; override `FleetTranslator` to name things otherwise. Keys are
`[app, role, name]`, topics that may be shared are `["topic", name]`, the page of an app is `[app, "app"]`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Literal

from dagster import AssetKey

from streamfleet_platform.views import AppSummary

Role = Literal["app", "sub-topology", "repartition", "changelog", "store"]

APP_TAG = "streamfleet/app"
ROLE_TAG = "streamfleet/role"
SHARED_TOPICS = "source_topics"
"""The group of topics that no app of the fleet writes."""

_NAME = re.compile(r"[^A-Za-z0-9_]+")
_TAG = re.compile(r"[^A-Za-z0-9_.-]+")
_TEAM = re.compile(r"[^A-Za-z0-9_-]+")
_EMAIL = re.compile(r"^[^@\s]+@[^@\s]+\.[^@\s]+$")
_TAG_LENGTH = 63


class FleetTranslator:
    """What an app, a topic and a store are called."""

    def app_key(self, app: str) -> AssetKey:
        return AssetKey([app, "app"])

    def sub_topology_key(self, app: str, number: int) -> AssetKey:
        return AssetKey([app, f"sub-{number}"])

    def internal_key(self, app: str, role: Literal["repartition", "changelog", "store"], name: str) -> AssetKey:
        return AssetKey([app, role, name])

    def topic_key(self, topic: str) -> AssetKey:
        return AssetKey(["topic", topic])

    def domain(self, app: AppSummary) -> str:
        """The first part of the group: the label `domain`, else the owner."""
        return segment(app.labels.get("domain") or app.owner)

    def group(self, app: AppSummary) -> str:
        return f"{self.domain(app)}/{segment(app.name)}"

    def tags(self, app: str, role: str) -> Mapping[str, str]:
        return {APP_TAG: tag_value(app), ROLE_TAG: tag_value(role)}

    def owners(self, app: AppSummary) -> list[str]:
        return [owner(app.owner)]

    def op_name(self, app: str) -> str:
        return f"deploy_{segment(app)}"

    def checks_name(self, app: str) -> str:
        return f"check_{segment(app)}"

    def schedule_name(self, app: str) -> str:
        return f"audit_{segment(app)}"

    def pool(self, app: str) -> str:
        return f"streamfleet_{segment(app)}"


def segment(text: str) -> str:
    """Letters, digits and underscores, for groups, ops, jobs and sensors. What had to be changed gets a mark, so that two
    texts that differ stay two: `a-b` and `a.b`. A dash alone is the fleet's own habit and becomes a plain underscore.
    """
    plain = text.replace("-", "_")
    if not _NAME.search(plain) and plain and ("_" not in text or "-" not in text):
        return plain
    return f"{_NAME.sub('_', plain)}_{_mark(text)}"


def tag_value(text: str) -> str:
    if len(text) <= _TAG_LENGTH and not _TAG.search(text):
        return text
    return f"{_TAG.sub('_', text)[: _TAG_LENGTH - 9]}_{_mark(text)}"


def owner(text: str) -> str:
    """An e-mail address as it is, anything else as a team."""
    return text if _EMAIL.match(text) else f"team:{_TEAM.sub('-', text.removeprefix('team:')) or 'unknown'}"


def _mark(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
