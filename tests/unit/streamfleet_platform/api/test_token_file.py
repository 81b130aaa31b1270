import json
import os
import stat
from datetime import UTC, datetime, timedelta

import pytest

from streamfleet_platform.api.access import Role
from streamfleet_platform.api.token_file import TokenFile
from streamfleet_platform.errors import ConflictError, InvalidRequestError, NotFoundError, TransientError


@pytest.fixture
def file(tmp_path):
    return TokenFile(tmp_path / "keys" / "tokens.json")


def test_a_token_is_its_owners_and_nobody_elses(file):
    token = file.create("ci", "operator", ("payments", "web"))
    principal = file.principal(token)
    assert (principal.name, principal.role, principal.teams) == ("ci", Role.OPERATOR, {"payments", "web"})
    assert file.principal(token + "x") is None
    assert file.principal("") is None


def test_the_file_is_the_users_alone_and_holds_no_token(file):
    token = file.create("ci", "viewer", "all")
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700
    text = file.path.read_text()
    assert token not in text and token.removeprefix("sft_") not in text
    assert len(token) > 40


def test_tokens_do_not_repeat(file):
    assert len({file.create(f"t{number}", "viewer", "all") for number in range(20)}) == 20


def test_a_running_server_sees_what_another_process_changes(file):
    server = TokenFile(file.path)
    token = file.create("ci", "viewer", "all")
    assert server.principal(token) is not None
    file.revoke("ci")
    assert server.principal(token) is None
    file.path.unlink()
    assert server.principal(token) is None


def test_an_expired_token_is_none(file):
    assert file.principal(file.create("old", "admin", "all", datetime.now(UTC) - timedelta(seconds=1))) is None
    assert file.principal(file.create("new", "admin", "all", datetime.now(UTC) + timedelta(days=1))) is not None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_file_that_others_can_read_lets_nobody_in(file, mode):
    token = file.create("ci", "viewer", "all")
    file.path.chmod(mode)
    with pytest.raises(TransientError, match="can be read by others; chmod 600"):
        file.principal(token)


@pytest.mark.parametrize("text", ["", "[]", '{"tokens": [{"name": "x"}]}', '{"tokens": [], "more": 1}', "\xff"])
def test_a_damaged_file_lets_nobody_in_and_is_not_repeated(file, text):
    token = file.create("ci", "viewer", "all")
    file.path.write_text(text)
    with pytest.raises(TransientError, match="is damaged") as raised:
        file.principal(token)
    assert "name" not in str(raised.value)


def test_names_are_unique_and_have_their_grammar(file):
    file.create("ci", "viewer", "all")
    with pytest.raises(ConflictError):
        file.create("ci", "admin", "all")
    for name, teams in (("../x", "all"), ("", "all"), ("a b", "all"), ("ok", ("Team",))):
        with pytest.raises(InvalidRequestError):
            file.create(name, "viewer", teams)
    with pytest.raises(NotFoundError):
        file.revoke("nobody")
    assert [entry.name for entry in file.entries()] == ["ci"]


def test_a_half_written_file_is_never_seen(file, monkeypatch):
    token = file.create("ci", "viewer", "all")

    def power_cut(_descriptor):
        raise OSError("power cut")

    monkeypatch.setattr(os, "fsync", power_cut)
    with pytest.raises(OSError, match="power cut"):
        file.create("other", "viewer", "all")
    monkeypatch.undo()
    assert file.principal(token) is not None
    assert len(json.loads(file.path.read_text())["tokens"]) == 1
    file.create("other", "viewer", "all")
