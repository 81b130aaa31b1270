import pytest

from streamfleet_devbroker.diagnosis import explain_end
from streamfleet_devbroker.errors import BrokerCrashedError, NoSpaceError, PortTakenError
from streamfleet_devbroker.storage import NodeSpec


@pytest.fixture
def node(tmp_path):
    return NodeSpec(2, 9093, 19093, tmp_path)


def test_a_full_disk_in_the_log_is_lack_of_space(node):
    node.log_path.write_text("ERROR Disk error\njava.io.IOException: No space left on device\n")
    error = explain_end(node)
    assert isinstance(error, NoSpaceError)
    assert "No space left on device" in error.fact


def test_a_failed_bind_names_the_port_that_was_taken(node):
    node.log_path.write_text(
        "ERROR x\nKafkaException: Socket server failed to bind to 127.0.0.1:19093: Address in use\n"
    )
    error = explain_end(node)
    assert isinstance(error, PortTakenError)
    assert error.port == 19093


def test_other_ends_show_the_telling_lines_and_not_the_stack(node):
    stack = "".join(f"\tat org.example.Frame{i}\n" for i in range(50))
    node.log_path.write_text(f"INFO all well\nERROR Kafka: Exiting\njava.lang.IllegalStateException: why\n{stack}")
    error = explain_end(node)
    assert isinstance(error, BrokerCrashedError)
    assert error.last_lines == ("ERROR Kafka: Exiting", "java.lang.IllegalStateException: why")
    assert str(error).splitlines()[0].startswith("node 2 of the broker ended while starting; ")


def test_a_process_that_said_nothing_is_still_explained(node):
    error = explain_end(node)
    assert isinstance(error, BrokerCrashedError)
    assert str(node.log_path) in str(error)
