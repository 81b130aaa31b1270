import pytest

from streamfleet_devbroker.jars import broker_jars
from streamfleet_devbroker.pinned import Jar, parse_jars

SHA = "0" * 64


def test_prose_and_empty_lines_are_no_jars():
    assert parse_jars(f"# a comment\n\n  org.example:thing:1.2:{SHA}  \n") == (Jar("org.example", "thing", "1.2", SHA),)


@pytest.mark.parametrize("line", ["org.example:thing:1.2", f"org.example::1.2:{SHA}", "org.example:thing:1.2:abc"])
def test_a_line_that_pins_nothing_is_refused(line):
    with pytest.raises(ValueError, match="group:artifact:version:sha256"):
        parse_jars(line)


def test_the_shipped_list_is_the_broker_with_a_log_backend():
    jars = broker_jars()
    names = {jar.artifact for jar in jars}
    assert len(jars) == len({jar.file_name for jar in jars}) == 46
    assert {"kafka_2.13", "kafka-clients", "log4j-slf4j-impl"} <= names
    assert {jar.version for jar in jars if jar.group == "org.apache.kafka"} == {"4.3.1"}
