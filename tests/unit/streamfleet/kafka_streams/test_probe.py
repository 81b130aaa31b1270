"""Asking the group for a rebalance, where there is somebody to ask."""

import pytest

import streamfleet as sf
from streamfleet.kafka_streams.states import ClientState


def test_a_group_that_the_broker_plans_cannot_be_probed(tmp_path):
    builder = sf.StreamsBuilder()
    builder.stream("in").to("out")
    config = sf.StreamsConfig(application_id="app", state_dir=tmp_path, group_protocol="streams")
    streams = sf.KafkaStreams(builder.build(), config)
    streams._state = ClientState.RUNNING
    with pytest.raises(sf.StreamsError, match="the broker plans for this group"):
        streams.probe()
