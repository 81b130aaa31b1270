import pytest

from streamfleet_jobs.errors import SpecError
from streamfleet_jobs.spark.java_settings import java_settings


def test_a_login_over_tls_is_told_in_javas_words():
    found = java_settings(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanisms": "SCRAM-SHA-512",
            "sasl.username": "who",
            "sasl.password": 'a"b\\c',
            "ssl.ca.location": "/ca.pem",
            "ssl.endpoint.identification.algorithm": "none",
            "socket.timeout.ms": "1000",
        }
    )
    login = "org.apache.kafka.common.security.scram.ScramLoginModule"
    assert found == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{login} required username="who" password="a\\"b\\\\c";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/ca.pem",
        "ssl.endpoint.identification.algorithm": "",
    }


def test_plain_needs_nothing():
    assert java_settings({"client.id": "a"}) == {}


@pytest.mark.parametrize(
    "config", [{"sasl.mechanism": "GSSAPI"}, {"ssl.key.location": "/k"}, {"sasl.kerberos.keytab": "k"}]
)
def test_what_has_no_form_in_java_is_named(config):
    with pytest.raises(SpecError, match=r"sasl\.mechanism GSSAPI|ssl\.key\.location|sasl\.kerberos"):
        java_settings(config)
