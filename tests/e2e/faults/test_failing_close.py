"""An operator that cannot be closed. Stores and clients are let go of all the same, or nobody could take the tasks over."""

import structlog
from tests.integration.streamfleet.kafka_streams.conftest import bench  # noqa: F401  (a fixture)

import streamfleet as sf


class Fragile(sf.Processor):
    """Counts keys; raises for a bad value, the first time, and whenever it is closed."""

    bad_values_to_come = 1

    def init(self, context):
        self.context = context
        self.counts = context.get_state_store("counts")

    def process(self, record):
        if record.value == "bad" and Fragile.bad_values_to_come:
            Fragile.bad_values_to_come -= 1
            raise ValueError("the first time only")
        count = (self.counts.get(record.key) or 0) + 1
        self.counts.put(record.key, count)
        self.context.forward(record.with_value(count))

    def close(self):
        raise RuntimeError("cannot be closed")


def test_F11_a_thread_whose_operators_cannot_be_closed_is_replaced(bench):  # noqa: F811
    source, out = bench.topic("in", 2), bench.topic("out", 2)
    store = sf.Stores.key_value("counts", key_serde=sf.serdes.string(), value_serde=sf.serdes.long())
    builder = sf.StreamsBuilder()
    builder.add_state_store(store)
    builder.stream(source).process(Fragile, stores=["counts"], name="fragile").to(out, value_serde=sf.serdes.long())
    streams = sf.KafkaStreams(builder.build(), bench.config(processing_guarantee="exactly_once_v2"))
    failures = []
    streams.set_uncaught_exception_handler(lambda error: failures.append(error) or sf.UncaughtResponse.REPLACE_THREAD)
    with structlog.testing.capture_logs() as lines, streams:
        streams.start()
        bench.write(source, [("a", "1"), ("b", "1"), ("a", "bad"), ("b", "2"), ("a", "3")])
        records = bench.read(out, lambda got: len(got) == 5)
    counts = {key: [int.from_bytes(value, "big") for k, value in records if k == key] for key in (b"a", b"b")}
    assert counts == {b"a": [1, 2, 3], b"b": [1, 2]}
    assert [type(error) for error in failures] == [sf.ProcessingError]
    assert any("cannot be closed" in str(line.get("error")) for line in lines)
