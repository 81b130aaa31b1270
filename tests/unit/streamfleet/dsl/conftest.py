"""Running a small topology over a list of records, for tests that compare it with a model."""

import pytest

import streamfleet as sf
from streamfleet.testing import TopologyTestDriver

STRING, LONG = sf.serdes.string(), sf.serdes.long()


@pytest.fixture
def run():
    """run(build, records, **config): pipe (topic, key, value, timestamp) of text or None; returns (results, stores, driver)."""

    def run_topology(build, records, **settings):
        config = sf.StreamsConfig(
            application_id="app", default_key_serde=STRING, default_value_serde=STRING, **settings
        )
        builder = sf.StreamsBuilder(config)
        build(builder)
        with TopologyTestDriver(builder.build(), config) as driver:
            for topic, key, value, timestamp in records:
                driver.pipe_raw(topic, key and key.encode(), value and value.encode(), timestamp)
            results = [record for record in driver.drain() if not record.topic.startswith("app-")]
            rows = {name: rows_of(store) for name, store in driver.stores().items()}
            return results, rows, driver.metrics().dropped_records_total

    return run_topology


def rows_of(store):
    """A store's content as a dict, whatever its kind."""
    if isinstance(store, sf.SessionStore):
        with store.fetch_range(None, None) as rows:
            return dict(rows)
    if not hasattr(store, "all"):
        return None  # a buffer: nobody reads it by key
    with store.all() as rows:
        return {key: value.value if isinstance(value, sf.ValueAndTimestamp) else value for key, value in rows}
