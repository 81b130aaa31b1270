"""Internal topics are known by their id: one that is gone, or another of its name, is refused, never made up for or taken over."""

import pytest
from tests.unit.streamfleet_platform.operations.bootstrap_lab import begin, deployed, finish
from tests.unit.streamfleet_platform.simulated_world import Lab

from streamfleet_platform import views
from streamfleet_platform.errors import InvalidRequestError
from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.registry import apps

CHANGELOG = "one-activity-by-minute-changelog"


@pytest.fixture
def lab(tmp_path):
    lab = deployed(Lab(tmp_path))
    yield lab
    lab.server.close()


def recorded_id(lab):
    with lab.world.database.read() as session:
        return next(row.topic_id for row in apps.topics_of(session, "one") if row.name == CHANGELOG)


def test_a_topic_that_somebody_made_anew_does_not_become_ours_and_is_not_deleted(lab):
    ours = lab.cluster.there[CHANGELOG].topic_id
    lab.cluster.add(CHANGELOG)
    failed = lab.run(lab.operate(OperationKind.START).id)
    assert failed.state == "failed" and "made anew by somebody else" in failed.error and CHANGELOG in failed.error
    assert recorded_id(lab) == ours, "it goes on being told as drift"
    assert lab.pids() == {}
    lab.run(lab.operate(OperationKind.RETIRE, confirm="one", undo_window_seconds=0).id)
    assert CHANGELOG in lab.cluster.there and CHANGELOG not in lab.cluster.deleted


def test_a_changelog_that_is_gone_is_not_made_anew_without_a_word(lab):
    del lab.cluster.there[CHANGELOG]
    failed = lab.run(lab.operate(OperationKind.START).id)
    assert failed.state == "failed" and "gone, with what they held" in failed.error and "reset the app" in failed.error
    assert CHANGELOG not in lab.cluster.there and lab.pids() == {}
    assert lab.run(lab.operate(OperationKind.RESET, confirm="one").id).state == "succeeded"
    assert lab.run(lab.operate(OperationKind.START).id).state == "succeeded"
    assert recorded_id(lab) == lab.cluster.there[CHANGELOG].topic_id


def test_the_store_of_a_changelog_that_is_gone_can_be_bootstrapped(lab):
    del lab.cluster.there[CHANGELOG]
    assert finish(lab, begin(lab, start=True)).state == "succeeded"
    lab.run(lab.operate(OperationKind.STOP).id)
    assert lab.run(lab.operate(OperationKind.START).id).state == "succeeded"
    assert CHANGELOG not in lab.cluster.there


def test_an_upgrade_that_meets_it_touches_no_worker(lab):
    lab.run(lab.operate(OperationKind.START).id)
    before = lab.pids()
    del lab.cluster.there[CHANGELOG]
    lab.declare(entry="rolling")
    failed = lab.run(lab.operate(OperationKind.UPGRADE).id)
    assert failed.state == "rolled_back" and "gone, with what they held" in failed.error
    assert lab.pids() == before and CHANGELOG not in lab.cluster.there


def test_a_repartition_topic_is_as_good_as_a_changelog(lab):
    del lab.cluster.there["one-by-country-repartition"]
    failed = lab.run(lab.operate(OperationKind.START).id)
    assert failed.state == "failed" and "one-by-country-repartition" in failed.error


def settings_of(lab):
    with lab.world.database.read() as session:
        row = next(row for row in apps.topics_of(session, "one") if row.name == CHANGELOG)
    return lab.cluster.settings[CHANGELOG]["retention.ms"], row.configs["retention.ms"]


def told_of_settings(lab):
    return [event.message for event in lab.fleet.events("one", 0, 200) if event.kind == "topic"]


def test_settings_of_a_new_version_are_set_on_what_is_there_and_nothing_else_is(lab):
    lab.run(lab.operate(OperationKind.START).id)
    lab.cluster.settings[CHANGELOG]["min.insync.replicas"] = "2"  # somebody's
    lab.declare(entry="settings")
    assert lab.run(lab.operate(OperationKind.UPGRADE).id).state == "succeeded"
    assert settings_of(lab) == ("99999999", "99999999")
    assert lab.cluster.settings[CHANGELOG]["min.insync.replicas"] == "2"
    assert told_of_settings(lab) == [f"settings of topic {CHANGELOG}: retention.ms from 86470000 to 99999999"]
    lab.run(lab.operate(OperationKind.STOP).id)
    lab.run(lab.operate(OperationKind.START).id)
    assert len(told_of_settings(lab)) == 1, "done once"


def test_settings_are_set_back_with_the_version(lab):
    lab.run(lab.operate(OperationKind.START).id)
    lab.declare(entry="settings")
    lab.observer.sick.add(lab.fleet.plan(views.SourceRequest()).revision)
    operation = lab.operate(OperationKind.UPGRADE)
    for _ in range(10):
        lab.clock.advance(10)
        lab.step()
    over = lab.run(operation.id)
    assert over.state == "rolled_back" and settings_of(lab) == ("86470000", "86470000")
    lab.step()
    assert lab.fleet.app("one").drift == 0


def test_a_setting_that_somebody_has_changed_is_set_again_with_the_next_start(lab):
    lab.cluster.settings[CHANGELOG]["retention.ms"] = "1"
    assert lab.run(lab.operate(OperationKind.START).id).state == "succeeded"
    assert settings_of(lab) == ("86470000", "86470000")


def test_settings_that_the_cluster_refuses_bring_no_version_out(lab, monkeypatch):
    lab.run(lab.operate(OperationKind.START).id)
    before = lab.pids()

    def refuse(configs):
        if configs:
            raise InvalidRequestError("altering was refused: policy")

    monkeypatch.setattr(lab.cluster, "alter_configs", refuse)
    lab.declare(entry="settings")
    over = lab.run(lab.operate(OperationKind.UPGRADE).id)
    assert over.state == "rolled_back" and "policy" in over.error and lab.pids() == before
