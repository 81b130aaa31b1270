"""How an internal topic's settings differ from what the app would create today, and which differences lose data.

Pure; called by internal_topic_manager.py for topics that were there before. Somebody changed them by hand, or an older
version of the app created them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

_FOREVER = -1
_POLICY, _RETENTION_MS, _RETENTION_BYTES = "cleanup.policy", "retention.ms", "retention.bytes"
_COMPACTION_LAG_MS = "min.compaction.lag.ms"


class SettingDrift(msgspec.Struct, frozen=True):
    """One setting of one internal topic is not what the app needs."""

    topic: str
    setting: str
    expected: str
    actual: str
    loses_data: bool
    """Whether Kafka may delete records under it that the app still needs."""


def find_drift(topic: str, expected: Mapping[str, str], actual: Mapping[str, str]) -> Iterator[SettingDrift]:
    """`actual` holds every setting of the topic; settings that `expected` does not name are free, except size limits."""
    deletes = "delete" in _policies(actual.get(_POLICY, ""))
    needed = ({_RETENTION_BYTES: str(_FOREVER)} if deletes else {}) | dict(expected)
    for setting, wanted in needed.items():
        found = actual.get(setting, "")
        if _same(setting, wanted, found):
            continue
        yield SettingDrift(topic, setting, wanted, found, _loses_data(setting, wanted, found, deletes=deletes))


def _same(setting: str, expected: str, actual: str) -> bool:
    return _policies(expected) == _policies(actual) if setting == _POLICY else expected == actual


def _loses_data(setting: str, expected: str, actual: str, *, deletes: bool) -> bool:
    if setting == _POLICY:
        # A policy more than wanted: delete takes keys from a table's changelog, compact takes records from a repartition topic.
        return not _policies(actual) <= _policies(expected)
    if setting in (_RETENTION_MS, _RETENTION_BYTES):
        return deletes and _is_shorter(actual, expected)
    return setting == _COMPACTION_LAG_MS and _number(actual) < _number(expected)


def _is_shorter(actual: str, expected: str) -> bool:
    kept, wanted = _number(actual), _number(expected)
    return kept != _FOREVER and (wanted == _FOREVER or kept < wanted)


def _policies(text: str) -> frozenset[str]:
    return frozenset(part.strip() for part in text.split(",") if part.strip())


def _number(text: str) -> int:
    return int(text) if text else 0
