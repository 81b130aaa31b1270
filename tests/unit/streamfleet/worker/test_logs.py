import io
import json
import logging

import pytest
import structlog

from streamfleet.worker.logs import configure_logs


@pytest.fixture(autouse=True)
def logging_as_before():
    root, kafka = logging.getLogger(), logging.getLogger("kafka")
    before = (list(root.handlers), root.level, kafka.level)
    yield
    structlog.reset_defaults()
    root.handlers[:], level, kafka_level = before
    root.setLevel(level)
    kafka.setLevel(kafka_level)


def logged(log_format="json", level="info", secrets=(), *, say):
    stream = io.StringIO()
    configure_logs(log_format, level, secrets=secrets, stream=stream)
    say()
    return stream.getvalue()


def test_a_line_is_a_json_object_with_event_level_and_time():
    text = logged(say=lambda: structlog.get_logger().info("task running", task="0_1"))
    line = json.loads(text)
    assert line["event"] == "task running"
    assert line["task"] == "0_1"
    assert line["level"] == "info"
    assert line["timestamp"].endswith("Z")


def test_the_lines_of_librdkafka_come_out_the_same_way():
    text = logged(say=lambda: logging.getLogger("streamfleet.kafka.librdkafka").warning("broker %s down", "b1"))
    line = json.loads(text)
    assert line["event"] == "broker b1 down"
    assert line["logger"] == "streamfleet.kafka.librdkafka"
    assert line["level"] == "warning"


def test_less_important_lines_are_left_out():
    def say():
        structlog.get_logger().info("small")
        logging.getLogger("x").info("small too")
        structlog.get_logger().error("large")

    assert json.loads(logged(level="warning", say=say))["event"] == "large"


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_a_traceback_has_neither_locals_nor_secrets(log_format):
    def say():
        hidden_local = "value of a local"  # noqa: F841  (it must not show)
        try:
            raise ValueError("cannot log in with hunter2")
        except ValueError:
            structlog.get_logger().exception("failed", settings={"sasl.password": "hunter2", "tries": ["hunter2"]})

    text = logged(log_format, secrets={"hunter2"}, say=say)
    assert "ValueError: cannot log in with ***" in text
    assert "hunter2" not in text
    assert "value of a local" not in text.replace('hidden_local = "value of a local"', "")


def test_a_value_under_a_secret_name_is_masked_even_if_it_is_not_known():
    text = logged(say=lambda: structlog.get_logger().info("hello", token="never seen before"))
    assert json.loads(text)["token"] == "***"


def test_configuring_again_does_not_say_everything_twice():
    def say():
        stream = io.StringIO()
        configure_logs(stream=stream)
        logging.getLogger("x").warning("once")
        assert len(stream.getvalue().splitlines()) == 1

    assert logged(say=say) == ""
