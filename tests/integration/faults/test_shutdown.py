"""An app that is told to stop and cannot do so in good order says that, and loses nothing by it."""

from tests.integration.faults.conftest import COLOURS, KEYS

import streamfleet as sf
from streamfleet.kafka_streams import ClientState, KafkaStreams

ALL = len(KEYS) * len(COLOURS)


class FailsOnce:
    """Raises when a point of the engine is reached for the first time after `is_armed`."""

    def __init__(self, name):
        self._name = name
        self.is_armed = False

    def hit(self, name):
        if self.is_armed and name == self._name:
            self.is_armed = False
            raise sf.StreamsError("the disk hangs")


def test_a_task_that_cannot_be_closed_is_no_clean_end_but_all_is_let_go_of_and_goes_on(app):
    app.write(ALL)
    failpoints = FailsOnce("before_store_close")
    with KafkaStreams(app.topology, app.config(), failpoints=failpoints) as streams:
        streams.start()
        app.wait_until_counted()
        failpoints.is_armed = True
        assert streams.close()
        assert streams.state is ClientState.ERROR
        assert str(streams.failure) == "the disk hangs"
    app.write(ALL)
    app.run_until_counted()  # in the same directory, with the same databases
