"""The port people expect, or a free one where somebody else has it. Used by what the demonstration serves."""

from __future__ import annotations

from streamfleet_devbroker import PortTakenError
from streamfleet_devbroker.ports import check_port, free_ports


def usual_or_free(port: int) -> int:
    try:
        check_port(port)
    except PortTakenError:
        return free_ports(1)[0]
    return port
