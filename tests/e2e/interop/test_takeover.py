"""An application id that changes hands twice, cleanly: results, internal topics and committed offsets are those of one engine."""

from dataclasses import replace

import pytest
from tests.interop.app import App, newest_values, times_of, values_of
from tests.interop.inputs import phases
from tests.interop.oracle import expected_results, expected_rows
from tests.interop.topologies import ORDERED

GUARANTEES = ["at_least_once", "exactly_once_v2"]


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("topology", ORDERED)
def test_results_state_and_times_go_on(relay, broker, tmp_path, base_ms, java_alone, topology, guarantee):
    app = App(broker.bootstrap_servers, tmp_path, topology, guarantee)
    given = phases(topology, base_ms)
    for side, records in zip(relay, given, strict=True):
        app.run(side, records)
    assert app.results() == expected_results(topology, given)
    reference = java_alone(topology)
    assert app.results() == reference.results()
    assert app.internal_settings() == reference.internal_settings()
    assert app.changelogs() == reference.changelogs()
    assert times_of(app.committed(), app.name) == times_of(reference.committed(), reference.name)


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_rows_joined_by_a_foreign_key_go_on(relay, broker, tmp_path, base_ms, java_alone, guarantee):
    """Subscriptions of one engine are answered by the other."""
    app = App(broker.bootstrap_servers, tmp_path, "foreign", guarantee)
    given = phases("foreign", base_ms)
    for number, (side, records) in enumerate(zip(relay, given, strict=True), start=1):
        app.run(side, records)
        assert app.rows() == expected_rows("foreign", given[:number])
    reference = java_alone("foreign")
    assert app.rows() == reference.rows()
    assert app.internal_settings() == reference.internal_settings()
    assert values_of(app.changelogs()) == values_of(reference.changelogs())


@pytest.mark.parametrize("topology", ["windows", "sessions", "final"])
def test_records_that_are_late_after_a_takeover_meet_the_same_windows(
    relay, broker, tmp_path, base_ms, java_alone, topology
):
    """Operators forget their time with their owner, stores do not: a late record may be counted in a window that is still kept."""
    app = App(broker.bootstrap_servers, tmp_path, topology)
    for side, records in zip(relay, phases(topology, base_ms, late_first=True), strict=True):
        app.run(side, records)
    reference = java_alone(topology, late_first=True)
    assert app.results() == reference.results()
    assert app.changelogs() == reference.changelogs()
    assert times_of(app.committed(), app.name) == times_of(reference.committed(), reference.name)


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("topology", ["windows", "sessions", "join"])
def test_local_state_of_before_is_brought_up_to_what_the_other_side_wrote(
    relay, broker, tmp_path, base_ms, topology, guarantee
):
    """Both use the same state directory, and leave each other's files alone."""
    app = App(broker.bootstrap_servers, tmp_path, topology, guarantee)
    given = phases(topology, base_ms)
    for side, records in zip(relay, given, strict=True):
        app.run(side, records, state="kept")
    assert app.results() == expected_results(topology, given)


def test_records_left_in_a_repartition_topic_are_taken_over(relay, broker, tmp_path, base_ms):
    """As when the first half of the topology was ahead of the second half at the end of the first phase."""
    app = App(broker.bootstrap_servers, tmp_path, "sessions")
    given = phases("sessions", base_ms)
    app.run(relay[0], given[0])
    app.write(replace(r, topic="by-user-repartition", key=r.key.partition(b"/")[0]) for r in given[1])
    app.run(relay[1], given[2])
    assert app.results() == expected_results("sessions", given)


@pytest.mark.parametrize("topology", ["windows", "join"])
def test_results_that_caches_hold_back_are_written_before_the_app_changes_hands(
    relay, broker, tmp_path, base_ms, topology
):
    app = App(broker.bootstrap_servers, tmp_path, topology, statestore_cache_max_bytes=1 << 20)
    given = phases(topology, base_ms)
    for number, (side, records) in enumerate(zip(relay, given, strict=True), start=1):
        app.run(side, records)
        full = expected_results(topology, given[:number])["out"]
        for results, uncached in zip(app.results()["out"], full, strict=True):
            assert len(results) < len(uncached)
            assert newest_values(results) == newest_values(uncached)
