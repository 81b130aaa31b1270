"""Turns the log of a node that ended into the error that says why.

Called by cluster.py when a process is found dead before the cluster was ready.
"""

from __future__ import annotations

import re

from streamfleet_devbroker.errors import BrokerCrashedError, BrokerError, NoSpaceError, PortTakenError
from streamfleet_devbroker.storage import NodeSpec

_FULL_DISK = re.compile(r"No space left on device|File too large|Disk quota exceeded")
_TELLING = re.compile(r"\b(?:ERROR|FATAL)\b|(?:Exception|Error): ")
_BIND_FAILED = re.compile(r"failed to bind to \S*?:(\d+)|Address already in use")


def explain_end(node: NodeSpec) -> BrokerError:
    """Why a node's process ended, read from its log."""
    lines = node.log_path.read_text("utf-8", errors="replace").splitlines() if node.log_path.exists() else []
    text = "\n".join(lines)
    if full := _FULL_DISK.search(text):
        return NoSpaceError(
            f"the broker could not write to {node.directory}: {full.group(0)}",
            hint="free some disk space, raise the limit on file sizes, or use another directory",
        )
    if bound := _BIND_FAILED.search(text):
        return PortTakenError(int(bound.group(1) or node.broker_port))
    telling = [line for line in lines if _TELLING.search(line)] or lines
    return BrokerCrashedError(
        f"node {node.node_id} of the broker ended while starting",
        hint=f"the end of its log {node.log_path} follows",
        last_lines=tuple(line[:300] for line in telling[-8:]),
    )
