"""When a cluster is ready: every node is listed in the metadata that a client gets.

Called by cluster.py and service.py. An open port is not enough (a node opens it before the cluster knows the node).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from streamfleet_devbroker.errors import NotReadyError

_silent = logging.getLogger("streamfleet_devbroker.client")
_silent.addHandler(logging.NullHandler())
_silent.propagate = False  # refused connections are expected here, and librdkafka would print each of them


def wait_for_brokers(bootstrap_servers: str, expected: int, seconds: float, check: Callable[[], None]) -> None:
    """Return when `expected` nodes answer; `check` raises if waiting has become pointless."""
    deadline = time.monotonic() + seconds
    client = _client(bootstrap_servers)
    while True:
        check()
        if _known_brokers(client, 0.25) >= expected:
            return
        if time.monotonic() > deadline:
            raise NotReadyError(
                f"the broker at {bootstrap_servers} runs but did not answer within {seconds:.0f} s",
                hint="this machine may be overloaded: try again, and look at the broker's log",
            )
        time.sleep(0.05)


def count_brokers(bootstrap_servers: str, *, seconds: float = 5.0) -> int:
    """How many nodes the cluster lists; 0 when nothing answers."""
    return _known_brokers(_client(bootstrap_servers), seconds)


def _client(bootstrap_servers: str) -> AdminClient:
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap_servers,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 100,
        "error_cb": lambda _: None,
    }
    return AdminClient(settings, logger=_silent)


def _known_brokers(client: AdminClient, seconds: float) -> int:
    try:
        return len(client.list_topics(timeout=seconds).brokers)
    except KafkaException:
        return 0
