"""The settings of the topics an app creates by itself. Library defaults < `topic.*` of the app < the store's own log settings."""

from __future__ import annotations

from streamfleet.config import StreamsConfig
from streamfleet.state.api import StateStore, StoreBuilder

CREATE_TIME = {"message.timestamp.type": "CreateTime"}
REPARTITION = {"cleanup.policy": "delete", "segment.bytes": "52428800", "retention.ms": "-1"} | CREATE_TIME
COMPACTED = {"cleanup.policy": "compact"} | CREATE_TIME
WINDOWED = {"cleanup.policy": "compact,delete"} | CREATE_TIME

_MAX_LONG = 2**63 - 1


def repartition_settings(config: StreamsConfig) -> dict[str, str]:
    """Records are purged once they are processed, never by age: a slow consumer must not lose them."""
    return REPARTITION | dict(config.topic_overrides)


def changelog_settings(builder: StoreBuilder[StateStore], config: StreamsConfig) -> dict[str, str]:
    if not builder.is_windowed:
        return COMPACTED | dict(config.topic_overrides) | dict(builder.log_config)
    settings = WINDOWED | dict(config.topic_overrides) | dict(builder.log_config)
    if "retention.ms" not in builder.log_config and builder.retention_ms is not None:
        settings["retention.ms"] = _windowed_retention(builder.retention_ms, config)
    return settings


def _windowed_retention(retention_ms: int, config: StreamsConfig) -> str:
    return str(min(retention_ms + config.windowstore_changelog_additional_retention_ms, _MAX_LONG))
