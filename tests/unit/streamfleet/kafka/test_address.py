from __future__ import annotations

import pytest

from streamfleet.errors import ConfigError
from streamfleet.kafka.address import Address, parse_bootstrap_servers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("host:1234", ("host", 1234)),
        ("host", ("host", 9092)),
        (" host:1 ", ("host", 1)),
        ("SASL_SSL://host:9094", ("host", 9094)),
        ("[::1]:9092", ("::1", 9092)),
        ("[::1]", ("::1", 9092)),
    ],
)
def test_addresses_are_read_as_people_write_them(text, expected):
    assert Address.parse(text) == expected


@pytest.mark.parametrize("text", [":9092", "host:port", "host:-1"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ConfigError, match="bootstrap.servers is a list like"):
        Address.parse(text)


def test_an_address_prints_so_that_it_can_be_read_again():
    for address in (Address("host", 1), Address("::1", 2)):
        assert Address.parse(str(address)) == address


def test_a_list_of_servers_may_have_gaps_but_not_be_empty():
    assert parse_bootstrap_servers("a:1,,b:2,") == (("a", 1), ("b", 2))
    with pytest.raises(ConfigError, match="bootstrap.servers is empty"):
        parse_bootstrap_servers(" , ")
