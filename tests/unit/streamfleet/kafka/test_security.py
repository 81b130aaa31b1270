from __future__ import annotations

import ssl

import pytest

from streamfleet.errors import ConfigError
from streamfleet.kafka.errors import AuthenticationError
from streamfleet.kafka.security import SaslCredentials, SecuritySettings, TlsSettings

LOGIN = {"sasl.mechanism": "PLAIN", "sasl.username": "me", "sasl.password": "secret"}


def test_without_a_protocol_nothing_is_used():
    assert SecuritySettings.from_mapping({"bootstrap.servers": "x:1"}) == SecuritySettings(None, None)


@pytest.mark.parametrize(
    ("protocol", "tls", "sasl"),
    [("PLAINTEXT", False, False), ("ssl", True, False), ("SASL_PLAINTEXT", False, True), ("sasl_ssl", True, True)],
)
def test_the_protocol_decides_what_is_used(protocol, tls, sasl):
    settings = SecuritySettings.from_mapping({"security.protocol": protocol, **LOGIN})
    assert (settings.tls is not None, settings.sasl is not None) == (tls, sasl)


def test_the_mechanism_may_have_either_of_librdkafkas_names():
    for key in ("sasl.mechanism", "sasl.mechanisms"):
        settings = {**LOGIN, "security.protocol": "sasl_ssl", "sasl.mechanism": "", key: "SCRAM-SHA-512"}
        assert SecuritySettings.from_mapping(settings).sasl == SaslCredentials("SCRAM-SHA-512", "me", "secret")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"security.protocol": "tls"}, "expected one of plaintext, ssl"),
        ({"sasl.mechanism": "GSSAPI"}, "the engine speaks PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        ({"sasl.mechanism": ""}, "the engine speaks"),
        ({"sasl.password": ""}, "set sasl.username and sasl.password"),
        ({"ssl.endpoint.identification.algorithm": "maybe"}, "expected https or none"),
    ],
)
def test_what_cannot_be_done_is_refused_instead_of_done_less_safely(wrong, message):
    with pytest.raises(ConfigError, match=message):
        SecuritySettings.from_mapping({"security.protocol": "sasl_ssl", **LOGIN, **wrong})


def test_certificates_are_checked_unless_somebody_says_not_to():
    careful = TlsSettings().context()
    assert (careful.verify_mode, careful.check_hostname) == (ssl.CERT_REQUIRED, True)
    settings = {"security.protocol": "ssl", "ssl.endpoint.identification.algorithm": "none"}
    tls = SecuritySettings.from_mapping(settings).tls
    assert tls is not None
    assert (tls.context().verify_mode, tls.context().check_hostname) == (ssl.CERT_REQUIRED, False)
    careless = SecuritySettings.from_mapping(
        {"security.protocol": "ssl", "enable.ssl.certificate.verification": "false"}
    )
    assert careless.tls is not None
    assert (careless.tls.context().verify_mode, careless.tls.context().check_hostname) == (ssl.CERT_NONE, False)


def test_a_missing_certificate_file_is_named_as_a_setting(tmp_path):
    with pytest.raises(AuthenticationError, match="ssl.ca.location"):
        TlsSettings(ca_location=str(tmp_path / "none.pem")).context()


def test_a_password_is_never_printed():
    assert "secret" not in repr(SecuritySettings(sasl=SaslCredentials("PLAIN", "me", "secret")))
