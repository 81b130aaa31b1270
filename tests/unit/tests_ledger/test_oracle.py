"""The oracle itself: silent about what is right, and able to name what is wrong."""

import dataclasses
import random

import pytest
from tests.ledger.app import ACCOUNTS, INPUT, LIMITS, LONG, OUTPUTS, TEXT, output_topic, topology
from tests.ledger.decoding import input_bytes, output_record
from tests.ledger.fold import OutputRecord, TagHistory, least_kept
from tests.ledger.oracle import (
    REPEATABLE_STORES,
    check_at_least_once,
    check_exactly_once,
    check_kept,
    check_owned,
    check_tags,
)
from tests.ledger.workload import (
    CLOSED_ACCOUNT,
    LedgerSpec,
    account_updates,
    all_keys,
    closed_form,
    flush_keys,
    generate,
    limit_of,
    ordinary_keys,
)

import streamfleet as sf
from streamfleet.records import RawRecord
from streamfleet.testing import TopologyTestDriver

SPEC = LedgerSpec(seed=3, keys=4, records_per_key=130, partitions=1)


@pytest.fixture(scope="module")
def inputs():
    return list(generate(SPEC))


@pytest.fixture(scope="module")
def app_outputs(inputs, tmp_path_factory):
    """What the app makes of the input in the test driver, where nothing fails."""
    config = sf.StreamsConfig(
        application_id="ledger", statestore_cache_max_bytes=0, state_dir=tmp_path_factory.mktemp("state")
    )
    with TopologyTestDriver(topology(), config) as driver:
        limits = driver.input_topic(LIMITS, TEXT, LONG)
        for key in all_keys(SPEC):
            limits.pipe(key, limit_of(key), SPEC.base_timestamp - 1)
        accounts = driver.input_topic(ACCOUNTS, TEXT, TEXT)
        for account, owner in account_updates(SPEC):
            accounts.pipe(account, owner, SPEC.base_timestamp - 1)
        for record in inputs:
            key, value, headers = input_bytes(record)
            driver.pipe_raw(INPUT, key, value, record.timestamp, tuple(headers))
        return {name: _read(driver, name) for name in OUTPUTS}


def _read(driver, name):
    raw = sf.serdes.bytes()
    records = driver.output_topic(output_topic(name), raw, raw).read_all_records()
    return [
        output_record(name, RawRecord(name, 0, at, each.timestamp, each.key, each.value, each.headers))
        for at, each in enumerate(records)
    ]


@pytest.fixture
def outputs(app_outputs):
    return {name: list(records) for name, records in app_outputs.items()}


def kinds(inputs, outputs):
    return {anomaly.kind for anomaly in check_exactly_once(inputs, outputs, all_keys(SPEC))}


def test_the_app_without_faults_has_no_anomaly(inputs, outputs):
    assert check_exactly_once(inputs, outputs, all_keys(SPEC)) == []
    assert check_at_least_once(inputs, outputs, all_keys(SPEC)) == []
    assert all(outputs.values())


@pytest.mark.parametrize("name", OUTPUTS)
def test_one_lost_record_is_found_in_every_output(inputs, outputs, name):
    del outputs[name][len(outputs[name]) // 2]
    assert "lost" in kinds(inputs, outputs)


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_lost_tail_is_found_in_every_output(inputs, outputs, name):
    del outputs[name][-3:]
    assert "lost" in kinds(inputs, outputs)


@pytest.mark.parametrize("name", OUTPUTS)
def test_one_duplicate_is_found_in_every_output(inputs, outputs, name):
    outputs[name].insert(7, outputs[name][3])
    assert kinds(inputs, outputs) & {"duplicate", "lost"}


@pytest.mark.parametrize("name", [name for name in OUTPUTS if name != "tagg"])
def test_two_records_in_the_wrong_order_are_found(inputs, outputs, name):
    records = outputs[name]
    first = next(
        at for at, record in enumerate(records) if name != "window-closed" or record.key[0] == records[0].key[0]
    )
    second = next(at for at in range(first + 1, len(records)) if _ordered(name, records[first], records[at]))
    records[first], records[second] = records[second], records[first]
    assert "out of order" in kinds(inputs, outputs)


def _ordered(name, one, other):
    if name in ("owned", "paired"):
        return one.key == other.key if name == "owned" else None not in one.key + other.key
    return not name.startswith("window") or one.key[0] == other.key[0]


@pytest.mark.parametrize("name", ["sum", "count", "avg", "joined", "min", "window-closed", "window-final"])
def test_a_wrong_value_is_found(inputs, outputs, name):
    broken = outputs[name][11]
    value = (0, 0) if name == "avg" else broken.value + 1
    outputs[name][11] = dataclasses.replace(broken, value=value)
    assert "wrong value" in kinds(inputs, outputs)


def test_a_result_of_no_input_record_is_found(inputs, outputs):
    outputs["echo"].insert(5, OutputRecord("1000-1129", 1000, 10**9, 0))
    assert "phantom" in kinds(inputs, outputs)


def test_a_partition_that_is_missing_altogether_is_found(inputs, outputs):
    outputs["echo"] = []
    assert "lost" in kinds(inputs, outputs)


def test_the_closed_form_is_checked_without_the_fold(inputs, outputs):
    last = outputs["sum"][-1]
    outputs["sum"][-1] = dataclasses.replace(last, value=last.value + 1)
    assert "closed form" in kinds(inputs, outputs)


def test_at_least_once_allows_repeats_but_no_loss(inputs, outputs):
    for name in OUTPUTS:
        outputs[name] += outputs[name][-5:]
    assert check_at_least_once(inputs, outputs, all_keys(SPEC)) == []
    outputs["echo"] = outputs["echo"][1:-5]
    assert "lost" in {a.kind for a in check_at_least_once(inputs, outputs, all_keys(SPEC))}


@pytest.mark.parametrize("name", ["paired", "window-final", "owned"])
def test_at_least_once_finds_one_lost_result_of_joins_and_suppression(inputs, outputs, name):
    del outputs[name][len(outputs[name]) // 2]
    assert "lost" in {a.kind for a in check_at_least_once(inputs, outputs, all_keys(SPEC))}


def test_at_least_once_finds_a_record_said_to_be_alone_that_has_a_partner(inputs, outputs):
    pair = next(record for record in outputs["paired"] if None not in record.key)
    key, left, _ = pair.key
    outputs["paired"].append(OutputRecord((key, left, None), (left, None), None, 0))
    assert "phantom" in {a.kind for a in check_at_least_once(inputs, outputs, all_keys(SPEC))}


def test_at_least_once_finds_a_final_sum_without_some_of_its_records(inputs, outputs):
    final = outputs["window-final"][3]
    outputs["window-final"][3] = dataclasses.replace(final, value=final.value - 1)
    assert "wrong value" in {a.kind for a in check_at_least_once(inputs, outputs, all_keys(SPEC))}


def test_the_input_has_pairs_and_records_alone_of_both_sides(outputs):
    pairs = [record.value for record in outputs["paired"]]
    assert len([1 for left, right in pairs if left and right]) > 100
    assert {value % 50 for value, right in pairs if right is None} == {25, 26, 27}
    assert {value % 50 for left, value in pairs if left is None} == {38, 39}


COUNTS = [OutputRecord("1-3/0", value, None, 0) for value in (1, 2, 3)]
CLOSED = [OutputRecord(CLOSED_ACCOUNT, None, None, 0)]


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (COUNTS[1:], "lost"),
        (COUNTS[:2], "lost"),
        ([COUNTS[0], COUNTS[2], COUNTS[1]], "out of order"),
        ([*COUNTS, COUNTS[2]], "duplicate"),
        ([*COUNTS, dataclasses.replace(COUNTS[0], value=4)], "phantom"),
        ([*COUNTS, dataclasses.replace(COUNTS[0], value=None)], "phantom"),
    ],
)
def test_an_account_is_told_every_count_once_and_in_order(found, kind):
    assert check_owned({"1-3/0": 3}, COUNTS + CLOSED, from_one=True) == []
    assert [a.kind for a in check_owned({"1-3/0": 3}, found + CLOSED, from_one=True)] == [kind]


def test_an_account_that_came_late_is_told_every_count_from_some_count_on():
    assert check_owned({"1-3/0": 3}, COUNTS[1:] + CLOSED, from_one=False) == []
    assert check_owned({"1-3/0": 3}, COUNTS[1:2] + CLOSED, from_one=False) != []
    assert check_owned({"1-3/0": 3}, [COUNTS[0], COUNTS[2], *CLOSED], from_one=False) != []


def test_an_account_that_moved_is_told_once_that_there_is_nothing_yet():
    moved = [dataclasses.replace(record, key="1-3/1") for record in COUNTS]
    nothing = dataclasses.replace(moved[0], value=None)
    assert check_owned({"1-3/1": 3}, [nothing, *moved, *CLOSED], from_one=True) == []
    assert [a.kind for a in check_owned({"1-3/1": 3}, [*moved, *CLOSED], from_one=True)] == ["lost"]


def test_steps_of_two_are_no_history_of_a_count():
    history = [OutputRecord("1", value, None, 0) for value in (1, 3)]
    assert check_tags({"1": TagHistory(2, 0)}, history) != []


def test_every_key_carries_each_integer_once_displaced_by_less_than_the_shuffle(inputs):
    for key in ordinary_keys(SPEC):
        values = [record.value for record in inputs if record.key == key]
        form = closed_form(key)
        assert sorted(values) == list(range(form.minimum, form.maximum + 1))
        assert sum(values) == form.total
        assert all(abs(value - form.minimum - at) < 10 for at, value in enumerate(values))


def test_flush_records_are_the_last_of_their_partitions():
    spec = LedgerSpec(seed=1, keys=9, records_per_key=20)
    records = list(generate(spec))
    last = {record.partition: record.key for record in records}
    assert last == dict(enumerate(flush_keys(spec)))
    assert len({record.record_id for record in records}) == len(records)


def test_the_same_seed_makes_the_same_records():
    seeds = [random.Random(5).randrange(100) for _ in range(2)]
    one, same = (list(generate(LedgerSpec(seed=seed, keys=2, records_per_key=30))) for seed in seeds)
    assert one == same != list(generate(LedgerSpec(seed=seeds[0] + 1, keys=2, records_per_key=30)))


@pytest.mark.parametrize("store", ["min", "max", "sum", "count", "window-min", "window-sum"])
def test_old_state_behind_newer_is_found_in_every_store_and_more_than_was_processed_once_is_none(inputs, store):
    kept = {name: dict(rows) for name, rows in least_kept(inputs).items()}
    assert check_kept(inputs, kept) == []
    key = next(iter(kept[store]))
    kept[store][key] += 1 if store in {"min", "window-min"} else -1
    assert [anomaly.kind for anomaly in check_kept(inputs, kept)] == ["old state"]
    kept[store][key] += 9
    is_exact = store in REPEATABLE_STORES
    assert bool(check_kept(inputs, kept)) is is_exact
    del kept[store][key]
    assert [anomaly.kind for anomaly in check_kept(inputs, kept)] == ["old state"]
