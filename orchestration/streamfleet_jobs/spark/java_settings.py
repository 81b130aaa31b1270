"""Security settings of librdkafka in the words of Java's client, for Spark's connector. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from streamfleet_jobs.errors import SpecError

_LOGIN = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_SECURITY = ("security.", "sasl.", "ssl.", "enable.ssl.")
_LOGIN_SETTINGS = ("sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password")


def java_settings(client_config: Mapping[str, str]) -> dict[str, str]:
    """Of those that are about security; others are librdkafka's own affair. SpecError where there is no form in Java."""
    found: dict[str, str] = {}
    for name, value in client_config.items():
        if name in ("security.protocol", "ssl.endpoint.identification.algorithm"):
            found[name] = "" if value == "none" else value
        elif name == "ssl.ca.location":
            found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": value}
        elif name == "ssl.ca.pem":
            found |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": value}
        elif name.startswith(_SECURITY) and name not in _LOGIN_SETTINGS:
            raise SpecError(
                f"setting {name} cannot be told to Spark's connector",
                hint="give the spec a java_client_config, or use the engine local",
            )
    return found | _login(client_config)


def _login(client_config: Mapping[str, str]) -> dict[str, str]:
    mechanism = client_config.get("sasl.mechanism") or client_config.get("sasl.mechanisms")
    if mechanism is None:
        return {}
    if mechanism not in _LOGIN:
        raise SpecError(
            f"sasl.mechanism {mechanism} cannot be told to Spark's connector",
            hint="give the spec a java_client_config, or use the engine local",
        )
    who = " ".join(f'{word}="{_quoted(client_config.get(f"sasl.{word}", ""))}"' for word in ("username", "password"))
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": f"{_LOGIN[mechanism]} required {who};"}


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
