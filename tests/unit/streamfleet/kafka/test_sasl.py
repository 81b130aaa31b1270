from __future__ import annotations

import pytest

from streamfleet.kafka.errors import AuthenticationError
from streamfleet.kafka.sasl import Scram, conversation
from streamfleet.kafka.security import SaslCredentials

# The example of RFC 7677.
CREDENTIALS = SaslCredentials("SCRAM-SHA-256", "user", "pencil")
NONCE = "rOprNGfwEbeRWgbNEkqO"
CHALLENGE = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
PROOF = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SIGNATURE = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def challenged() -> Scram:
    talk = Scram(CREDENTIALS, NONCE)
    assert talk.next_token() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    return talk


def test_scram_speaks_as_in_the_standards_example():
    talk = challenged()
    talk.hear(CHALLENGE)
    assert talk.next_token() == PROOF
    talk.hear(SIGNATURE)
    assert talk.next_token() is None


def test_a_broker_that_cannot_sign_is_not_believed():
    talk = challenged()
    talk.hear(CHALLENGE)
    talk.next_token()
    with pytest.raises(AuthenticationError, match="could not prove"):
        talk.hear(b"v=AAAA")


@pytest.mark.parametrize(
    "challenge",
    [
        CHALLENGE.replace(b"r=rOpr", b"r=xxxx"),
        CHALLENGE.replace(b"i=4096", b"i=1"),
        b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    ],
    ids=["another nonce", "too few iterations", "no nonce of its own"],
)
def test_a_challenge_that_only_wants_the_password_guessed_is_refused(challenge):
    with pytest.raises(AuthenticationError, match="not acceptable"):
        challenged().hear(challenge)


def test_an_error_in_the_conversation_is_told():
    with pytest.raises(AuthenticationError, match="unknown-user"):
        challenged().hear(b"e=unknown-user")


def test_commas_and_equal_signs_in_a_name_are_escaped():
    talk = Scram(SaslCredentials("SCRAM-SHA-512", "a=b,c", "x"), "nonce")
    assert talk.next_token() == b"n,,n=a=3Db=2Cc,r=nonce"


def test_plain_is_one_token():
    talk = conversation(SaslCredentials("PLAIN", "me", "secret"))
    assert talk.next_token() == b"\0me\0secret"
    talk.hear(b"")
    assert talk.next_token() is None


def test_every_scram_conversation_has_its_own_nonce():
    first, second = (conversation(CREDENTIALS).next_token() for _ in range(2))
    assert first != second
