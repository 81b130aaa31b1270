"""Global tables on a real broker: read from the beginning at every start, and kept up to date."""

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
