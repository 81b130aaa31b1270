"""Where a broker listens, and how people write it down in `bootstrap.servers`."""

from __future__ import annotations

from typing import NamedTuple

from streamfleet.errors import ConfigError

DEFAULT_PORT = 9092


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Address:
        """`host`, `host:port`, `[::1]:port`, each perhaps behind `SASL_SSL://`."""
        bare = text.strip().rpartition("://")[2]
        host, _, port = bare.rpartition(":") if not bare.endswith("]") and ":" in bare else (bare, "", "")
        host = host.removeprefix("[").removesuffix("]")
        if not host or (port and not port.isdecimal()):
            raise ConfigError(
                f"not a broker address: {text!r}", hint="bootstrap.servers is a list like host:9092,host2:9092"
            )
        return cls(host, int(port) if port else DEFAULT_PORT)


def parse_bootstrap_servers(text: str) -> tuple[Address, ...]:
    addresses = tuple(Address.parse(part) for part in text.split(",") if part.strip())
    if not addresses:
        raise ConfigError("bootstrap.servers is empty", hint="name at least one broker, like localhost:9092")
    return addresses
