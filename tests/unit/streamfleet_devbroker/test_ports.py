import socket

import pytest

from streamfleet_devbroker.errors import PortTakenError
from streamfleet_devbroker.ports import check_port, free_ports


def test_free_ports_differ_and_can_be_listened_on():
    ports = free_ports(5)
    assert len(set(ports)) == 5
    for port in ports:
        check_port(port)


def test_a_port_somebody_listens_on_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(PortTakenError, match="is taken"):
        check_port(server.getsockname()[1])
