"""Which intents a sensor sends in this tick, as one wave, and what it remembers of them. Pure: sensors.py asks and launches.

    unknown ──> sent (attempt 1) ──> its run succeeded: nothing more, the server has the intent
                     └──> its run failed, or never came to be: again, later and later, as another attempt

The server does an intent once, whatever is sent; Dagster launches a run key once, for ever. So a wave that is planned twice (a
replayed tick, a lost cursor) has the same run key and causes nothing, and a failed one gets another key instead of being
forgotten. What the server no longer asks for is dropped from memory.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

RunFate = Literal["going", "succeeded", "failed", "unknown"]
_FIRST_RETRY_SECONDS = 30.0
_LAST_RETRY_SECONDS = 600.0


@dataclass(frozen=True)
class Sent:
    """An intent on its way."""

    run_key: str
    attempt: int
    at: float
    """Seconds since the epoch."""

    @property
    def retry_at(self) -> float:
        return self.at + min(_FIRST_RETRY_SECONDS * 2.0 ** min(self.attempt - 1, 10), _LAST_RETRY_SECONDS)


@dataclass(frozen=True)
class Wave:
    """What to launch; nothing, if there are no intents."""

    run_keys: Mapping[str, str]
    """By intent."""
    cursor: str


def plan_wave(
    asked: Iterable[str],
    cursor: str | None,
    fate_of: Callable[[str], RunFate],
    now: float,
    *,
    together: bool = True,
) -> Wave:
    """`together`: one run for all of them; otherwise one for each."""
    memory = _read(cursor)
    kept = {intent: memory[intent] for intent in sorted(set(asked)) if intent in memory}
    fates = {key: fate_of(key) for key in {sent.run_key for sent in kept.values()}}
    attempts = {intent: 1 for intent in sorted(set(asked)) if intent not in memory}
    for intent, sent in kept.items():
        if fates[sent.run_key] in ("failed", "unknown") and now >= sent.retry_at:
            attempts[intent] = sent.attempt + 1
    keys = {intent: _key(attempts if together else {intent: attempt}) for intent, attempt in attempts.items()}
    kept |= {intent: Sent(keys[intent], attempt, now) for intent, attempt in attempts.items()}
    return Wave(keys, _written(kept))


def run_key_of(intent: str) -> str:
    """Of an intent that was sent alone, for the first time."""
    return _key({intent: 1})


def _key(attempts: Mapping[str, int]) -> str:
    """Of first attempts: of the intents alone, so that who plans them again gets the same."""
    words = [intent if attempt == 1 else f"{intent} attempt {attempt}" for intent, attempt in sorted(attempts.items())]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:24]


def _read(cursor: str | None) -> dict[str, Sent]:
    try:
        return {intent: Sent(*sent) for intent, sent in json.loads(cursor or "{}").items()}
    except (ValueError, TypeError, AttributeError):
        # set by hand, or by another version: intents are sent again, and done once all the same
        return {}


def _written(memory: dict[str, Sent]) -> str:
    return json.dumps({intent: [sent.run_key, sent.attempt, sent.at] for intent, sent in memory.items()})
