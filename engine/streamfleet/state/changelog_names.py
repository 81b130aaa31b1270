"""How a store's changelog topic is called. Epoch 0 has Kafka Streams' name; a store that was built anew from data at rest has a
topic of its own for each epoch, so that the former one stays as it is.

    <application id>-<store>-changelog           epoch 0
    <application id>-<store>-e<n>-changelog      epoch n
"""

from __future__ import annotations

import re


def changelog_name(application_id: str, store: str, epoch: int = 0) -> str:
    return f"{application_id}-{store}{f'-e{epoch}' if epoch else ''}-changelog"


def is_changelog_of(topic: str, application_id: str, store: str) -> bool:
    """Whether a topic is the store's changelog, of whatever epoch."""
    return re.fullmatch(rf"{re.escape(application_id)}-{re.escape(store)}(-e[1-9]\d*)?-changelog", topic) is not None
