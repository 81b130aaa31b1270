"""TLS and SASL settings of the group client, read from the same keys that librdkafka gets.

`SecuritySettings.from_mapping` takes the client settings of an app as they are (other keys are somebody else's) and
refuses what this client cannot do, rather than connecting less safely than asked.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamfleet.errors import ConfigError
from streamfleet.kafka.errors import AuthenticationError

PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@dataclass(frozen=True)
class SaslCredentials:
    mechanism: str
    username: str
    password: str

    def __repr__(self) -> str:
        return f"SaslCredentials({self.mechanism}, {self.username}, password hidden)"


@dataclass(frozen=True)
class TlsSettings:
    """What the broker's certificate must satisfy, and what we show of ourselves."""

    ca_location: str | None = None
    """A file or directory of trusted certificates; None: those of the system."""
    ca_pem: str | None = None
    certificate_location: str | None = None
    key_location: str | None = None
    key_password: str | None = None
    checks_host_name: bool = True
    verifies_certificate: bool = True

    def context(self) -> ssl.SSLContext:
        try:
            return self._context()
        except OSError as error:  # a missing file, or ssl.SSLError
            raise AuthenticationError(
                f"the TLS settings cannot be used: {error}",
                hint="check the files named by ssl.ca.location, ssl.certificate.location and ssl.key.location",
            ) from error

    def _context(self) -> ssl.SSLContext:
        given = Path(self.ca_location) if self.ca_location else None
        context = ssl.create_default_context(
            cafile=str(given) if given and not given.is_dir() else None,
            capath=str(given) if given and given.is_dir() else None,
            cadata=self.ca_pem,
        )
        if self.certificate_location:
            context.load_cert_chain(self.certificate_location, self.key_location, self.key_password)
        context.check_hostname = self.checks_host_name and self.verifies_certificate
        if not self.verifies_certificate:
            context.verify_mode = ssl.CERT_NONE
        return context


@dataclass(frozen=True)
class SecuritySettings:
    """None: not used."""

    tls: TlsSettings | None = None
    sasl: SaslCredentials | None = None

    @classmethod
    def from_mapping(cls, settings: Mapping[str, Any]) -> SecuritySettings:
        protocol = str(settings.get("security.protocol", "plaintext")).lower()
        if protocol not in PROTOCOLS:
            raise ConfigError(
                f"setting security.protocol cannot be {protocol!r}", hint=f"expected one of {', '.join(PROTOCOLS)}"
            )
        return cls(
            tls=_tls(settings) if protocol.endswith("ssl") else None,
            sasl=_sasl(settings) if protocol.startswith("sasl") else None,
        )


def _tls(settings: Mapping[str, Any]) -> TlsSettings:
    identification = str(settings.get("ssl.endpoint.identification.algorithm", "https")).lower()
    if identification not in ("https", "none", ""):
        raise ConfigError(
            f"setting ssl.endpoint.identification.algorithm cannot be {identification!r}", hint="expected https or none"
        )
    verifies = str(settings.get("enable.ssl.certificate.verification", "true")).lower() == "true"
    return TlsSettings(
        ca_location=_text(settings, "ssl.ca.location"),
        ca_pem=_text(settings, "ssl.ca.pem"),
        certificate_location=_text(settings, "ssl.certificate.location"),
        key_location=_text(settings, "ssl.key.location"),
        key_password=_text(settings, "ssl.key.password"),
        checks_host_name=identification == "https",
        verifies_certificate=verifies,
    )


def _sasl(settings: Mapping[str, Any]) -> SaslCredentials:
    mechanism = _text(settings, "sasl.mechanism") or _text(settings, "sasl.mechanisms")
    username, password = _text(settings, "sasl.username"), _text(settings, "sasl.password")
    if mechanism not in MECHANISMS:
        raise ConfigError(
            f"setting sasl.mechanism cannot be {mechanism!r}", hint=f"the engine speaks {', '.join(MECHANISMS)}"
        )
    if not username or not password:
        raise ConfigError(f"{mechanism} needs credentials", hint="set sasl.username and sasl.password")
    return SaslCredentials(mechanism, username, password)


def _text(settings: Mapping[str, Any], key: str) -> str | None:
    value = settings.get(key)
    return None if value in (None, "") else str(value)
