"""Ports of this machine: whether one can be listened on, and some that can.

Called by cluster.py.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Sequence

from streamfleet_devbroker.errors import PortTakenError
from streamfleet_devbroker.storage import HOST


def check_port(port: int) -> None:
    """Raise PortTakenError unless a server could listen on `port` now."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Kafka does: TIME_WAIT is no obstacle
        try:
            server.bind((HOST, port))
        except OSError as error:
            raise PortTakenError(port) from error


def free_ports(count: int, *, avoid: Sequence[int] = ()) -> list[int]:
    """Ports that nobody listens on at this moment; all are held open together so that they differ."""
    with contextlib.ExitStack() as stack:
        ports: list[int] = []
        while len(ports) < count:
            server = stack.enter_context(socket.socket())
            server.bind((HOST, 0))
            port = server.getsockname()[1]
            if port not in avoid:
                ports.append(port)
        return ports
