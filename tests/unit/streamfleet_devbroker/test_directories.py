import pytest

from streamfleet_devbroker.directories import cache_directory, make_directory, state_directory
from streamfleet_devbroker.errors import BrokerError


def test_the_xdg_variables_decide(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert cache_directory() == tmp_path / "cache" / "streamfleet"
    assert state_directory() == tmp_path / "state" / "streamfleet" / "broker"


@pytest.mark.parametrize("value", ["", "relative/path"])
def test_without_a_usable_variable_the_home_directory_holds_them(monkeypatch, tmp_path, value):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", value)
    assert cache_directory() == tmp_path / ".cache" / "streamfleet"


def test_a_directory_that_cannot_be_made_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BrokerError, match="cannot be created: Not a directory; point XDG_CACHE_HOME"):
        make_directory(tmp_path / "file" / "below")
