"""Global tables on a real broker: read from the beginning at every start, and kept up to date."""

from confluent_kafka import TopicPartition

import streamfleet as sf


def test_a_stream_is_joined_with_all_partitions_of_a_global_table(bench):
    names, source, out = bench.topic("names", 3), bench.topic("in"), bench.topic("out")
    bench.write(names, [(str(i), f"name-{i}") for i in range(10)])
    builder = sf.StreamsBuilder()
    table = builder.global_table(names)
    stream = builder.stream(source)
    stream.join(table, lambda value, name: f"{value}:{name}", key_selector=lambda _, value: value).to(out)
    bench.write(source, [("k", str(i)) for i in range(10)])
    with bench.running(builder.build()):
        expected = {f"{i}:name-{i}".encode() for i in range(10)}
        bench.read(out, lambda got: {value for _, value in got} == expected)
        bench.write(names, [("new", "late")])
        expected.add(b"new:late")

        def joined(got):
            bench.write(source, [("k", "new")])  # until the update has reached the table: the two are not synchronised
            return {value for _, value in got} == expected

        bench.read(out, joined)


class AddUp(sf.Processor):
    """Keeps the sum of what a global topic has for each key."""

    def init(self, context):
        self.sums = context.get_state_store("sums")

    def process(self, record):
        self.sums.put(record.key, (self.sums.get(record.key) or 0) + int(record.value))


class LookUp(sf.Processor):
    def init(self, context):
        self.context = context
        self.sums = context.get_state_store("sums")

    def process(self, record):
        self.context.forward(record.with_value(str(self.sums.get(record.key))))


def test_a_restart_begins_with_what_the_topics_of_global_stores_have_then(bench):
    """On the disk of the last run are rows of records that are gone from the topic since, and sums of records that come again."""
    names, amounts = bench.topic("names", 1), bench.topic("amounts", 1)
    source, named, summed = bench.topic("in", 1), bench.topic("named", 1), bench.topic("summed", 1)
    builder = sf.StreamsBuilder()
    table = builder.global_table(names)
    sums = sf.Stores.key_value("sums", key_serde=sf.serdes.string(), value_serde=sf.serdes.long(), logging=False)
    builder.add_global_store(sums, amounts, AddUp)
    stream = builder.stream(source)
    stream.left_join(table, lambda _, name: str(name), key_selector=lambda key, _: key).to(named)
    stream.process(LookUp).to(summed)
    topology = builder.build()
    bench.write(names, [("a", "kept"), ("b", "deleted")])
    bench.write(amounts, [("a", "1"), ("b", "2"), ("a", "3")])
    bench.write(source, [("a", "?"), ("b", "?")])
    with bench.running(topology):
        bench.read(named, lambda got: got == [(b"a", b"kept"), (b"b", b"deleted")])
        bench.read(summed, lambda got: got == [(b"a", b"4"), (b"b", b"2")])
    bench.write(names, [("a", "kept")])
    for future in bench.admin.delete_records([TopicPartition(names, 0, 2)]).values():
        future.result(10)  # as compaction does, in its own time, with a deleted key and then with its tombstone
    bench.write(source, [("a", "?"), ("b", "?")])
    with bench.running(topology):
        bench.read(named, lambda got: got[2:] == [(b"a", b"kept"), (b"b", b"None")])
        bench.read(summed, lambda got: got[2:] == [(b"a", b"4"), (b"b", b"2")])
