import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfleet.worker.secrets import is_secret, redactor, secrets_of


@pytest.mark.parametrize(
    "name",
    [
        "sasl.password",
        "consumer.sasl.password",
        "ssl.key.password",
        "ssl.key.pem",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.config",
        "token",
    ],
)
def test_settings_that_hold_secrets_are_known(name):
    assert is_secret(name)


@pytest.mark.parametrize("name", ["sasl.username", "ssl.ca.location", "sasl.oauthbearer.token.endpoint.url", "topic"])
def test_other_settings_are_shown(name):
    assert not is_secret(name)


def test_the_longer_of_two_secrets_is_masked_as_a_whole():
    assert redactor({"abc", "abcdef"})("x abcdef y abc") == "x *** y ***"


def test_without_secrets_a_text_stays_as_it_is():
    assert redactor(secrets_of({"sasl.username": "me"}))("me") == "me"


@given(st.text(min_size=3).filter(lambda secret: secret not in "***"), st.text(), st.text())
def test_no_secret_survives(secret, before, after):
    assert secret not in redactor([secret])(before + secret + after).replace("***", "")
