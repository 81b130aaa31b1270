"""What an app with `group.protocol=streams` cannot set, because the broker decides it or cannot do it yet. Called by config.py."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from streamfleet.errors import ConfigError

_PLANS = "the broker plans, and does not ask the app"
_NO_WARMUPS = "brokers make no task ready before it moves yet"
_ON_BROKER = "it is a setting of the group on the broker"

REFUSED = {
    "group_instance_id": "brokers know no static members of streams groups yet",
    "task_assignor": _PLANS,
    "acceptable_recovery_lag": _NO_WARMUPS,
    "max_warmup_replicas": _NO_WARMUPS,
    "probing_rebalance_interval_ms": _NO_WARMUPS,
    "probing_when_caught_up": _NO_WARMUPS,
    "rack_aware_assignment_tags": _PLANS,
    "rack_aware_assignment_strategy": _PLANS,
    "rack_aware_assignment_traffic_cost": _PLANS,
    "rack_aware_assignment_non_overlap_cost": _PLANS,
    "session_timeout_ms": f"{_ON_BROKER}, streams.session.timeout.ms",
    "heartbeat_interval_ms": f"{_ON_BROKER}, streams.heartbeat.interval.ms",
}
"""By field of StreamsConfig."""


def refuse_ignored(config: Any) -> None:
    """A setting that would do nothing is refused: somebody counts on it."""
    for entry in fields(config):
        value = getattr(config, entry.name)
        if entry.name in REFUSED and value != entry.default:
            raise ConfigError(
                f"setting {entry.metadata['name']} cannot be {value!r} with group.protocol=streams: {REFUSED[entry.name]}",
                hint="leave it out, or set group.protocol=classic",
            )
