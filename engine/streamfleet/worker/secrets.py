"""Which settings are secrets, and how a text is cleaned of their values. Used by the logs and wherever a worker prints
an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

MASK = "***"
_SECRET_NAME = re.compile(r"password|secret|token(?!\.endpoint)|\.pem$|oauthbearer\.config|jaas", re.IGNORECASE)
_SHORTEST = 3
"""A shorter value is in so many words that masking it would hide the text and show the value by where the gaps are."""

Redact = Callable[[str], str]


def is_secret(name: str) -> bool:
    """Whether a setting of this name holds something that must not be shown."""
    return _SECRET_NAME.search(name) is not None


def secrets_of(settings: Mapping[str, Any]) -> frozenset[str]:
    """The values of all secret settings."""
    return frozenset(str(value) for name, value in settings.items() if is_secret(name) and value is not None)


def redactor(secrets: Iterable[str]) -> Redact:
    """A function that masks these values wherever they are in a text."""
    known = sorted((secret for secret in secrets if len(secret) >= _SHORTEST), key=len, reverse=True)
    if not known:
        return lambda text: text
    pattern = re.compile("|".join(re.escape(secret) for secret in known))
    return lambda text: pattern.sub(MASK, text)
