"""Which settings `config` of an app or a cluster may have, and that no secret is written out. Called by loader.py.

The engine's allow-list decides which settings there are (librdkafka has some that load code or run commands). On top of it:
what the platform sets itself, what reads files or calls addresses on behalf of the app, what weakens the connection, and
secrets, which are references only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice

import streamfleet
from streamfleet_platform.definitions.scalars import Scalar
from streamfleet_platform.definitions.validation import unknown_hint
from streamfleet_platform.definitions.yaml_nodes import Node
from streamfleet_platform.errors import Problem
from streamfleet_platform.model.app_policies import MAX_SETTINGS
from streamfleet_platform.model.section import shown

_OF_THE_PLATFORM: Mapping[str, str] = {
    "application.id": "write spec.applicationId",
    "application.server": "the platform knows where workers are",
    "bootstrap.servers": "name a cluster of fleet.yaml in spec.cluster",
    "deserialization.exception.handler": "write spec.errors.onBadRecord",
    "ensure.explicit.internal.resource.naming": "write spec.topology.requireNames",
    "errors.dead.letter.queue.topic.name": "write spec.errors.deadLetterTopic",
    "group.instance.id": "it is the slot's",
    "num.standby.replicas": "write spec.state.standbys",
    "processing.exception.handler": "write spec.errors.onBadRecord",
    "processing.guarantee": "write spec.run.guarantee",
    "state.dir": "it is the slot's",
    "state.snapshot.dir": "it is the slot's",
    "store.epochs": "bootstraps count them",
}
_OF_THE_ENGINE: Mapping[str, str] = {
    "group.id": "it is the application id",
    "isolation.level": "it follows from the guarantee",
    "transactional.id": "it follows from the application id",
}
"""Nobody may set them: nothing near them was meant."""
_READS_OR_CALLS = (".location", "sasl.kerberos.keytab", "sasl.oauthbearer.token.endpoint.url")
_OF_THE_CLUSTER = (
    "enable.ssl.certificate.verification",
    "security.protocol",
    "ssl.endpoint.identification.algorithm",
)
_INSECURE: Mapping[str, tuple[object, ...]] = {
    "enable.ssl.certificate.verification": (False, "false"),
    "ssl.endpoint.identification.algorithm": ("none", ""),
}
HOW_TO_REFER = "write ${NAME}, with NAME under secrets"

_CLIENT = re.compile(r"^((main|restore|global)\.)?(consumer|producer|admin)\.")
"""What narrows a setting to some clients."""
_REFERENCE = re.compile(r"\$\{([^}]*)\}")
_LITERAL_SECRET = re.compile(
    r"-----BEGIN [A-Z ]{0,40}-----|\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{30}|\beyJ[\w-]{10,200}\.eyJ"
    r"|[a-z][a-z0-9+.-]{1,20}://[^/\s:@]{0,100}:[^/\s@]{1,200}@|\b(?:password|passwd|secret)\s{0,8}=\s{0,8}\S",
    re.IGNORECASE,
)
"""Repetitions are bounded: without that a long text would take its length squared."""


def app_config_problems(config: Node | None, secrets: Node | None) -> Iterator[Problem]:
    """Of `spec.run` of an app."""
    for name, node in _settings(config):
        if name in _OF_THE_PLATFORM:
            yield Problem(node.place, f"setting {name} is the platform's", _OF_THE_PLATFORM[name])
        elif name.endswith(_READS_OR_CALLS):
            yield Problem(
                node.place, f"setting {name} reads files or calls addresses", "the cluster may have it, an app may not"
            )
        elif name.endswith(_OF_THE_CLUSTER):
            yield Problem(node.place, f"setting {name} is the cluster's", "leave it out")
        else:
            yield from _setting_problems(name, node, secrets)


def cluster_config_problems(config: Node | None, secrets: Node | None, *, allow_insecure: bool) -> Iterator[Problem]:
    """Of one cluster of fleet.yaml."""
    for name, node in _settings(config):
        if name == "bootstrap.servers":
            yield Problem(node.place, f"setting {name} has its own field", "write bootstrap")
        elif not allow_insecure and _is_insecure(name, node):
            yield Problem(
                node.place, f"setting {name} switches a check off", "leave it out; for development: allowInsecure: true"
            )
        else:
            yield from _setting_problems(name, node, secrets)


def _is_insecure(name: str, node: Node) -> bool:
    """With any prefix: `consumer.` and the like narrow a setting to one client."""
    return any(name.endswith(insecure) and node.value in values for insecure, values in _INSECURE.items())


def literal_secrets(document: Node) -> Iterator[Problem]:
    """Values that look like secrets, wherever they are. The value itself is never repeated."""
    for key, node in _texts("", document):
        assert isinstance(node.value, str)
        is_reference = _REFERENCE.fullmatch(node.value) is not None
        if _LITERAL_SECRET.search(node.value) is not None or (streamfleet.is_secret(key) and not is_reference):
            yield Problem(node.place, f"the value of {key or 'this item'} is a secret", HOW_TO_REFER)


def _settings(config: Node | None) -> Iterator[tuple[str, Node]]:
    entries = {} if config is None else config.entries
    return ((name, entry.node) for name, entry in islice(entries.items(), MAX_SETTINGS))


def _setting_problems(name: str, node: Node, secrets: Node | None) -> Iterator[Problem]:
    value = node.value
    if isinstance(value, tuple | dict):  # told by validation
        return
    if (why := _OF_THE_ENGINE.get(_CLIENT.sub("", name))) is not None:
        yield Problem(node.place, f"setting {name} is the engine's", f"leave it out: {why}")
        return
    if isinstance(value, str) and (len(value) > 4096 or any(ord(character) < 32 for character in value)):
        yield Problem(node.place, f"setting {name} has control characters or is too long", "write one line")
        return
    if isinstance(value, str) and "$" in value:
        yield from _reference_problems(name, node, value, secrets)
        value = "a secret"
    if (refusal := _engine_refusal(name, value)) is not None:
        yield Problem(node.place, *refusal)


@lru_cache(maxsize=1024, typed=True)
def _engine_refusal(name: str, value: Scalar) -> tuple[str, str | None] | None:
    """The apps of a fleet say much the same."""
    try:
        streamfleet.check_setting(name, value)
    except streamfleet.ConfigError as error:
        return error.fact, error.hint
    return None


def _reference_problems(name: str, node: Node, value: str, secrets: Node | None) -> Iterator[Problem]:
    match = _REFERENCE.fullmatch(value)
    known = () if secrets is None else secrets.entries.keys()
    if match is None:
        yield Problem(node.place, f"setting {name} mixes text and ${{...}}", "the whole value is ${NAME}, or has no $")
    elif match[1] not in known:
        yield Problem(
            node.place,
            f"setting {name} wants the secret {shown(match[1])}, which is not under secrets",
            unknown_hint(match[1], known) if known else "add it there, as {env: VARIABLE} or {file: PATH}",
        )


def _texts(key: str, node: Node) -> Iterator[tuple[str, Node]]:
    if isinstance(node.value, dict):
        for name, entry in node.value.items():
            yield from _texts(name, entry.node)
    elif isinstance(node.value, tuple):
        for item in node.value:
            yield from _texts(key, item)
    elif isinstance(node.value, str):
        yield key, node
