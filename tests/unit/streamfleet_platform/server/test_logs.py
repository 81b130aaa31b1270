"""The server's log: no local variables, no secrets."""

import io
import logging

import pytest
import structlog

from streamfleet_platform.server.logs import configure_logs, known_secrets

SECRET = "hunter-two-and-a-half"


@pytest.fixture
def stream():
    root, before = logging.getLogger(), structlog.get_config()
    handlers, level = list(root.handlers), root.level
    yield io.StringIO()
    structlog.configure(**before)
    root.handlers[:] = handlers
    root.setLevel(level)


def failing():
    settings = {"sasl.password": "only-in-a-local-variable"}
    raise ValueError(f"cannot use {len(settings)} settings with {SECRET}")


def test_a_traceback_shows_where_and_no_local_variable_and_no_secret(stream):
    configure_logs([SECRET], stream=stream)
    for logger in (structlog.get_logger("platform"), logging.getLogger("somebody else's")):
        try:
            failing()
        except ValueError:
            logger.exception("it failed")
    text = stream.getvalue()
    assert text.count("in failing") == 2 and text.count("cannot use 1 settings with ***") == 2
    assert SECRET not in text and "only-in-a-local-variable" not in text


def test_values_that_are_logged_are_masked_and_keep_their_kind(stream):
    configure_logs([SECRET, "ab"], stream=stream)
    structlog.get_logger().info("told", password=SECRET, where=["x", SECRET], count=7, short="ab")
    assert "count=7" in stream.getvalue() and SECRET not in stream.getvalue() and "short=ab" in stream.getvalue()


def test_secrets_are_those_that_apps_may_name(tmp_path):
    (tmp_path / "registry").mkdir()
    (tmp_path / "registry" / "password").write_text("from-a-file\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    found = known_secrets({"A": "a-value", "HOME": "/root"}, ["A", "MISSING"], tmp_path)
    assert found == ["a-value", "from-a-file"]
