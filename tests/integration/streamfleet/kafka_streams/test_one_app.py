"""One application on a real broker: results, state and offsets, with both guarantees."""

import pytest

import streamfleet as sf

WORDS = ["to", "be", "or", "not", "to", "be", "that", "is", "the", "question"] * 20
COUNTS = {word.encode(): WORDS.count(word) for word in WORDS}


def counting(bench):
    """Counts words after re-keying, so that a repartition topic and a changelog are needed."""
    lines, counts = bench.topic("lines"), bench.topic("counts")
    builder = sf.StreamsBuilder()
    grouped = builder.stream(lines).group_by(lambda _, word: word, name="by-word")
    grouped.count(store="counts").to_stream().to(counts, value_serde=sf.serdes.long())
    return builder.build(), lines, counts


def numbers(records):
    return {key: int.from_bytes(value, "big") for key, value in records}


@pytest.fixture(params=["at_least_once", "exactly_once_v2"])
def guarantee(request):
    return request.param


def test_counts_arrive(bench, guarantee):
    topology, lines, counts = counting(bench)
    bench.write(lines, [(str(i), word) for i, word in enumerate(WORDS)])
    with bench.running(topology, bench.config(processing_guarantee=guarantee)):
        records = bench.read(counts, lambda got: numbers(got) == COUNTS)
    assert numbers(records) == COUNTS


def test_a_restart_goes_on_where_it_was(bench, guarantee):
    topology, lines, counts = counting(bench)
    config = bench.config(processing_guarantee=guarantee)
    half = len(WORDS) // 2
    bench.write(lines, [(str(i), word) for i, word in enumerate(WORDS[:half])])
    with bench.running(topology, config):
        bench.read(counts, lambda got: sum(numbers(got).values()) == half)
    bench.write(lines, [(str(i), word) for i, word in enumerate(WORDS[half:])])
    with bench.running(topology, config):
        records = bench.read(counts, lambda got: numbers(got) == COUNTS)
    assert numbers(records) == COUNTS


def test_lost_local_state_is_restored_from_the_changelog(bench, guarantee):
    topology, lines, counts = counting(bench)
    bench.write(lines, [(str(i), word) for i, word in enumerate(WORDS)])
    with bench.running(topology, bench.config(worker="first", processing_guarantee=guarantee)):
        bench.read(counts, lambda got: numbers(got) == COUNTS)
    bench.write(lines, [("again", word) for word in set(WORDS)])
    more = {word: count + 1 for word, count in COUNTS.items()}
    with bench.running(topology, bench.config(worker="second", processing_guarantee=guarantee)):
        records = bench.read(counts, lambda got: numbers(got) == more)
    assert numbers(records) == more
