"""Topics that are not what they were: truncated, made anew, grown, gone."""

import pytest
from confluent_kafka.admin import NewPartitions
from tests.integration.faults.conftest import (
    delete_records,
    delete_topic,
    failure_of,
    is_one_sentence,
    wait_for,
)

import streamfleet as sf
from streamfleet.kafka_streams import ClientState, KafkaStreams


def test_F34_smoke(app):
    app.write(100)
    app.run_until_counted()
    app.write(50)
    app.run_until_counted()
