"""What `make up` says when it does not come to its end."""

import pytest

from examples.demo import __main__ as demo
from examples.demo.fleet_up import NotUpError


@pytest.mark.parametrize(
    ("failure", "code", "told"),
    [
        (NotUpError("not all apps run"), 1, "error: not all apps run"),
        (KeyboardInterrupt(), 130, "interrupted: what was started goes on; make up again, or make down"),
    ],
)
def test_what_keeps_it_from_coming_up_is_told_without_a_traceback(monkeypatch, capsys, tmp_path, failure, code, told):
    def up(_directory):
        raise failure

    monkeypatch.setattr(demo, "up", up)
    assert demo.main(["up", str(tmp_path)]) == code
    assert capsys.readouterr().err.strip() == told


def test_an_unknown_command_is_a_usage_error(capsys):
    assert demo.main(["sideways"]) == 2
    assert capsys.readouterr().err.startswith("usage: ")
