"""The table of changes, each made to a real topology."""

from datetime import timedelta

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import streamfleet as sf
from streamfleet_platform.topologies.lock import TopologyLock
from streamfleet_platform.topologies.lock_diff import diff_locks
from streamfleet_platform.topologies.partition_changes import counts_made_for, topic_widths
from streamfleet_platform.topologies.verdicts import Verdict

text, number = sf.serdes.string(), sf.serdes.long()


class Sale(msgspec.Struct):
    product: str
    cents: int


class SaleWithShop(msgspec.Struct):
    product: str
    cents: float
    shop: str = ""


SaleWithShop.__name__ = "Sale"


def lock(
    *,
    filtered=False,
    extra_sink=False,
    no_sink=False,
    extra_source=False,
    extra_store=False,
    no_totals=False,
    totals="totals",
    totals_serde=number,
    totals_kind="rocksdb",
    totals_logging=True,
    window=5,
    retention=60,
    by="by-shop",
    partitions=None,
    sale=Sale,
    stateless_first=False,
    global_store=False,
    node="only-real",
):
    """Sales: totals per key, and windows per shop behind a repartition topic."""
    builder = sf.StreamsBuilder()
    if stateless_first:
        builder.stream("audit", key_serde=text, value_serde=text).to("audit-copy", key_serde=text, value_serde=text)
    serde = sf.serdes.json(sale)
    sales = builder.stream("sales", key_serde=text, value_serde=serde).filter(lambda k, v: True, name=node)
    if filtered:
        sales = sales.filter(lambda k, v: True, name="not-free")
    if extra_source:
        sales = sales.merge(builder.stream("old-sales", key_serde=text, value_serde=serde), name="both")
    grouped = sales.group_by_key(key_serde=text, value_serde=serde)
    if not no_totals:
        made = sf.Materialized(
            totals, key_serde=text, value_serde=totals_serde, kind=totals_kind, logging=totals_logging
        )
        counted = grouped.count(materialized=made)
        if not no_sink:
            counted.to_stream().to("totals-out", key_serde=text, value_serde=totals_serde)
    if extra_store:
        grouped.count(materialized=sf.Materialized("extra", key_serde=text, value_serde=number))
    if extra_sink:
        sales.to("sales-copy", key_serde=text, value_serde=serde)
    if global_store:
        builder.global_table("shops", key_serde=text, value_serde=text, store="shops")
    rekeyed = sales.select_key(lambda k, v: v.product, name="key").repartition(
        name=by, partitions=partitions, key_serde=text, value_serde=serde
    )
    windows = rekeyed.group_by_key(key_serde=text, value_serde=serde).windowed_by(
        sf.TimeWindows(size=timedelta(minutes=window), grace=timedelta(0))
    )
    windows.count(
        materialized=sf.Materialized(
            "windows", key_serde=text, value_serde=number, retention=timedelta(minutes=retention)
        )
    )
    return TopologyLock.from_topology_json(builder.build().to_json())


BASE = lock()


def changes(**flags):
    diff = diff_locks(BASE, lock(**flags))
    return diff, {(change.what, change.subject): change for change in diff.changes}


def test_equal_locks_have_no_difference():
    diff = diff_locks(BASE, lock())
    assert (diff.changes, diff.verdict, diff.topics_created, diff.topics_orphaned) == ((), Verdict.UNCHANGED, (), ())
    assert diff.lines() == ["UNCHANGED"]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"filtered": True}, ("processor added", "not-free")),
        ({"extra_sink": True}, ("sink topic added", "sales-copy")),
        ({"no_sink": True}, ("sink topic removed", "totals-out")),
        ({"extra_source": True}, ("source topic added", "old-sales")),
        ({"node": "only-true"}, ("processor renamed", "only-real -> only-true")),
        ({"global_store": True}, ("global store added", "shops")),
    ],
)
def test_what_holds_no_state_is_replaced_worker_by_worker(flags, expected):
    diff, found = changes(**flags)
    assert diff.verdict is Verdict.ROLLING
    assert expected in found
    assert diff.lost_state == ()


def test_removing_a_source_says_what_becomes_of_its_offsets():
    diff = diff_locks(lock(extra_source=True), BASE)
    assert diff.verdict is Verdict.ROLLING
    assert any("committed offsets stay" in change.reason for change in diff.warnings)


def test_an_added_store_needs_a_restart_of_all_workers():
    diff, found = changes(extra_store=True)
    assert diff.verdict is Verdict.RESTART and diff.lost_state == ()
    assert "begins empty" in found["store added", "extra"].reason
    assert diff.topics_created == ("extra-changelog",)


def test_a_removed_store_leaves_its_changelog_as_an_orphan():
    diff, found = changes(no_totals=True)
    assert diff.verdict is Verdict.RESTART
    assert "totals-changelog becomes an orphan candidate" in found["store removed", "totals"].reason
    assert (diff.topics_orphaned, diff.lost_state) == (("totals-changelog",), ("totals",))


def test_a_renamed_store_loses_its_content_and_the_reason_says_what_one_can_do():
    diff, found = changes(totals="sums")
    assert diff.verdict is Verdict.MIGRATE
    change = found["store renamed", "totals -> sums"]
    assert change.lost_state == ("totals",)
    assert "keep the name totals in the code, or have sums built anew" in change.reason
    assert not any("store added" in what or "store removed" in what for what, _ in found)
    assert diff.lines()[0] == "MIGRATE; the state of totals is lost"


@pytest.mark.parametrize(
    ("flags", "what", "store"),
    [
        ({"totals_serde": sf.serdes.msgpack()}, "store value serde changed", "totals"),
        ({"window": 10}, "store window size changed", "windows"),
        ({"retention": 120}, "store retention changed", "windows"),
    ],
)
def test_another_format_of_a_store_needs_new_state(flags, what, store):
    diff, found = changes(**flags)
    assert diff.verdict is Verdict.INCOMPATIBLE
    assert (what, store) in found and diff.lost_state == (store,)
    assert "raise the generation" in found[what, store].reason


def test_another_kind_of_store_under_the_same_name_needs_new_state():
    window = sf.Stores.window("s", retention=60_000, window_size=60_000, key_serde=text, value_serde=number)
    before, after = (
        _with_store(store) for store in (sf.Stores.key_value("s", key_serde=text, value_serde=number), window)
    )
    diff = diff_locks(before, after)
    assert diff.verdict is Verdict.INCOMPATIBLE
    assert any(
        change.what == "store kind changed" and "was key_value, is window" in change.reason for change in diff.changes
    )


def test_a_longer_history_is_rolled_out_if_the_rows_stay_where_they_are():
    def versioned(hours, minutes):
        history, segment = timedelta(hours=hours), timedelta(minutes=minutes)
        return _with_store(
            sf.Stores.versioned_key_value("s", history, segment_interval=segment, key_serde=text, value_serde=text)
        )

    diff = diff_locks(versioned(1, 5), versioned(2, 5))
    assert diff.verdict is Verdict.ROLLING
    assert "store history changed" in {change.what for change in diff.changes}
    diff = diff_locks(versioned(1, 5), versioned(1, 6))
    assert (diff.verdict, diff.lost_state) == (Verdict.INCOMPATIBLE, ("s",))
    assert [change.what for change in diff.changes] == ["store segment interval changed"]


def _with_store(store):
    topology = sf.Topology()
    topology.add_source("in", "in").add_processor("p", Nothing, "in").add_state_store(store, "p")
    return TopologyLock.from_topology_json(topology.to_json())


class Nothing(sf.Processor):
    def process(self, record): ...


def test_other_fields_of_the_same_serde_are_a_warning_with_their_names():
    before = _with_store(sf.Stores.key_value("s", key_serde=text, value_serde=sf.serdes.json(Sale)))
    after = _with_store(sf.Stores.key_value("s", key_serde=text, value_serde=sf.serdes.json(SaleWithShop)))
    diff = diff_locks(before, after)
    (change,) = diff.changes
    assert (change.verdict, change.is_warning, diff.lost_state) == (Verdict.ROLLING, True, ())
    assert "shop added, cents was integer, is number" in change.reason


def test_another_schema_on_a_topic_is_a_warning_and_another_serde_between_sub_topologies_needs_draining():
    diff, found = changes(sale=SaleWithShop)
    assert diff.verdict is Verdict.ROLLING and len(diff.warnings) == 3
    packed = lock()
    content = _replaced(packed, '"id": "json"', '"id": "msgpack"')
    diff = diff_locks(packed, content)
    assert diff.verdict is Verdict.RESTART
    assert any("let it drain" in change.reason for change in diff.warnings)


def _replaced(of, old, new):
    return TopologyLock.from_topology_json(of.to_file().decode().replace(f'"hash": "{of.hash}",', "").replace(old, new))


def test_rows_that_move_to_another_engine_are_restored_from_the_changelog():
    diff, found = changes(totals_kind="in_memory")
    assert diff.verdict is Verdict.RESTART and diff.lost_state == ()
    assert "restored from its changelog" in found["store engine changed", "totals"].reason


def test_logging_that_begins_or_stops_is_said():
    diff, found = changes(totals_logging=False)
    assert diff.verdict is Verdict.RESTART and found["store logging stopped", "totals"].is_warning
    diff = diff_locks(lock(totals_logging=False), BASE)
    assert diff.verdict is Verdict.MIGRATE and diff.lost_state == ("totals",)
    diff, found = changes(totals_logging={"min.insync.replicas": "2"})
    assert (
        "min.insync.replicas" in found["store changelog settings changed", "totals"].reason
        and diff.verdict is Verdict.ROLLING
    )


def test_a_table_that_takes_its_input_for_a_changelog_reads_it_again_and_one_that_stops_doing_so_is_carried_over():
    own, reused = (_table(optimization) for optimization in ("none", "all"))
    diff = diff_locks(own, reused)
    assert (diff.verdict, diff.lost_state, diff.topics_orphaned) == (Verdict.RESTART, (), ("rows-changelog",))
    assert "the last value of every key" in diff.warnings[0].reason
    back = diff_locks(reused, own)
    assert (back.verdict, back.lost_state) == (Verdict.MIGRATE, ("rows",))


def _table(optimization):
    builder = sf.StreamsBuilder()
    builder.table("in", key_serde=text, value_serde=text, store="rows")
    config = sf.StreamsConfig(application_id="any", topology_optimization=optimization)
    return TopologyLock.from_topology_json(builder.build(config).to_json())


def test_numbers_that_shift_are_harmless_and_said():
    diff, found = changes(stateless_first=True)
    assert diff.verdict is Verdict.ROLLING
    shifted = [change for change in diff.changes if change.what == "sub-topology renumbered"]
    assert len(shifted) == 2 and all("nothing moves" in change.reason for change in shifted)


def test_a_renamed_repartition_topic_must_be_drained():
    diff, found = changes(by="per-shop")
    assert diff.verdict is Verdict.RESTART
    assert "let it drain" in found["repartition topic removed", "by-shop-repartition"].reason
    assert (diff.topics_created, diff.topics_orphaned) == (("per-shop-repartition",), ("by-shop-repartition",))


def test_another_number_of_partitions_behind_a_repartition_moves_keys():
    diff, found = changes(partitions=8)
    assert diff.verdict is Verdict.INCOMPATIBLE and diff.lost_state == ("windows",)


def resized(before, after, old=BASE, new=BASE):
    return diff_locks(old, new, old_partitions=before, new_partitions=after)


def test_another_number_of_input_partitions_moves_keys_of_all_stores_it_reaches():
    diff = resized({"sales": 4}, {"sales": 8})
    (change,) = diff.changes
    assert (change.verdict, change.lost_state) == (Verdict.INCOMPATIBLE, ("totals", "windows"))
    assert "it had 4 partitions, has 8" in change.reason and "reset the app" in change.reason


def test_a_repartition_topic_with_a_number_of_its_own_shields_what_is_behind_it():
    fixed = lock(partitions=4)
    assert resized({"sales": 4}, {"sales": 8}, fixed, fixed).lost_state == ("totals",)


def test_another_number_of_input_partitions_is_fine_without_stores():
    stateless = lock(stateless_first=True)
    diff = resized({"audit": 4, "sales": 4}, {"audit": 8, "sales": 4}, stateless, stateless)
    assert (diff.verdict, diff.lost_state) == (Verdict.ROLLING, ())


@pytest.mark.parametrize("flags", [{}, {"partitions": 4}, {"extra_source": True}, {"stateless_first": True}])
@given(data=st.data())
def test_internal_topics_that_fit_their_inputs_tell_of_no_resize(flags, data):
    made = lock(**flags)
    counts = {topic: data.draw(st.integers(1, 6), label=topic) for topic in sorted(made.sources())}
    assert counts_made_for(made, topic_widths(made, counts), counts) == counts


def test_internal_topics_tell_how_many_partitions_their_inputs_had():
    made = topic_widths(BASE, {"sales": 4})
    assert counts_made_for(BASE, made, {"sales": 8}) == {"sales": 4}
    assert counts_made_for(BASE, made, {"sales": 2}) == {"sales": 4}  # deleted, and made anew by somebody
    two = lock(extra_source=True)
    made = topic_widths(two, {"sales": 4, "old-sales": 3})
    assert counts_made_for(two, made, {"sales": 4, "old-sales": 8}) == {"sales": 4, "old-sales": 4}  # or fewer
    assert counts_made_for(two, made, {"sales": 4, "old-sales": 4}) == {"sales": 4, "old-sales": 4}  # leaves no trace


FLAGS = {
    "filtered": True,
    "extra_sink": True,
    "extra_source": True,
    "extra_store": True,
    "totals": "sums",
    "window": 10,
    "retention": 120,
    "partitions": 8,
    "stateless_first": True,
    "global_store": True,
    "node": "only-true",
    "sale": SaleWithShop,
}
CHOICES = st.sets(st.sampled_from(sorted(FLAGS)), max_size=5)


def made(names):
    return lock(**{name: FLAGS[name] for name in names})


@given(CHOICES)
def test_a_lock_never_differs_from_itself(names):
    assert diff_locks(made(names), made(names)).changes == ()


@example({"filtered", "totals", "extra_sink"}, {"extra_source"})  # a rename is seen although a source was added as well
@example({"totals"}, {"extra_store"})  # and not taken lightly where two stores could be the renamed one
@given(CHOICES, CHOICES)
def test_more_changes_never_make_a_lighter_verdict_and_lose_no_less(one, other):
    part, whole = diff_locks(BASE, made(one)), diff_locks(BASE, made(one | other))
    assert whole.verdict >= part.verdict
    assert set(part.lost_state) <= set(whole.lost_state)


@given(CHOICES, CHOICES)
def test_two_locks_differ_in_both_directions_or_in_none(one, other):
    there, back = diff_locks(made(one), made(other)), diff_locks(made(other), made(one))
    assert bool(there.changes) == bool(back.changes)
    assert (there.topics_created, there.topics_orphaned) == (back.topics_orphaned, back.topics_created)


@given(CHOICES)
def test_every_lock_that_is_not_equal_is_told_apart(names):
    assert bool(diff_locks(BASE, made(names)).changes) == (made(names).hash != BASE.hash)
