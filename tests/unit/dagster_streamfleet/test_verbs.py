"""Jobs of the verbs, run for real against the API over a scripted fleet: what they post, and what they make of the answer."""

import dagster as dg
import pytest

from dagster_streamfleet.verbs import verb_jobs
from streamfleet_platform.model.operation import OperationState

JOBS = {job.name: job for job in verb_jobs()}


def run(server, instance, job, /, **config):
    return JOBS[job].execute_in_process(
        run_config={"ops": {job: {"config": {"wait_seconds": 0, **config}}}},
        resources={"streamfleet": server},
        instance=instance,
        raise_on_error=False,
    )


def failure(result, op):
    return result.failure_data_for_node(op).error.message


def test_every_verb_of_the_issue_is_a_job_of_one_op_with_its_name():
    assert set(JOBS) == {"scale", "probe", "start", "stop", "upgrade", "reset", "retire"}
    for name, job in JOBS.items():
        assert [node.name for node in job.nodes] == [name]


@pytest.mark.parametrize("verb", ["start", "stop", "upgrade"])
def test_a_verb_posts_once_under_an_intent_of_its_run(server, instance, verb):
    result = run(server, instance, verb, app="orders")
    assert result.success
    ((path, intent),) = server.wire.posts
    assert path == f"/v1/apps/orders/{verb}"
    assert intent == f"dagster-{result.run_id}-{verb}-orders"


def test_a_wave_goes_on_after_one_that_fails_and_fails_at_the_end_with_its_words(server, instance):
    items = [{"app": app, "slots": 3} for app in ("nowhere", "orders", "clicks")]
    result = run(server, instance, "scale", items=items)
    assert not result.success
    assert "nowhere: there is no app nowhere" in failure(result, "scale")
    assert [app for app, detail in server.fleet.apps_by_name.items() if detail.operation] == ["orders", "clicks"]


def test_a_scale_that_was_decided_at_another_number_of_slots_is_left_to_the_next_decision(server, instance):
    items = [{"app": "orders", "slots": 4, "from_slots": 7}, {"app": "clicks", "slots": 4, "from_slots": 2}]
    assert run(server, instance, "scale", items=items).success
    assert [app for app, detail in server.fleet.apps_by_name.items() if detail.operation] == ["clicks"]


def test_an_intent_that_is_given_is_the_one_that_is_posted_and_done_once(server, instance):
    for _ in range(2):
        assert run(server, instance, "probe", items=[{"app": "orders", "intent_id": "i1"}]).success
    assert [intent for _, intent in server.wire.posts] == ["i1", "i1"]
    assert len(server.fleet.operations_by_id) == 1


def test_a_reset_without_preview_is_decided_on_one_made_now(server, instance):
    assert run(server, instance, "reset", app="orders", confirm="orders").success
    (operation,) = server.fleet.operations_by_id.values()
    assert operation.params["preview"] == server.fleet.reset_preview("orders").id


def test_a_reset_on_an_older_preview_fails_with_the_servers_words(server, instance):
    result = run(server, instance, "reset", app="orders", confirm="orders", preview="older")
    assert "the preview no longer fits" in failure(result, "reset")


def asking(server):
    """Whatever is begun waits for a person."""
    begin = server.fleet.start_operation

    def ask(*args, **kwargs):
        begun = begin(*args, **kwargs)
        server.fleet.ask(begun.id)
        return server.fleet.operation(begun.id)

    server.fleet.start_operation = ask


def test_what_waits_for_a_person_is_asked_for_and_no_failure_unless_somebody_waits_for_it(server, instance):
    asking(server)
    given = {"app": "orders", "confirm": "orders", "intent_id": "i1"}
    assert run(server, instance, "reset", **given).success
    result = run(server, instance, "reset", **given, wait_seconds=5)
    assert "waits for a person's approval" in failure(result, "reset")
    assert [each.state for each in server.fleet.operations_by_id.values()] == [OperationState.ASKING]


def test_a_server_that_is_away_fails_the_run_and_dagster_does_not_repeat_it(server, instance):
    server.wire.away = True
    result = run(server, instance, "start", app="orders")
    assert "does not answer" in failure(result, "start")
    assert not any(event.is_step_restarted for event in result.all_events)


@pytest.mark.parametrize("verb", ["reset", "retire"])
def test_what_cannot_be_undone_cannot_be_launched_before_somebody_types_its_confirmation(server, instance, verb):
    with pytest.raises(dg.DagsterInvalidConfigError):
        dg.validate_run_config(JOBS[verb], {"ops": {verb: {"config": {"app": "orders"}}}})
    assert "confirm is not the name" in failure(run(server, instance, verb, app="orders", confirm="order"), verb)
    assert server.wire.posts == []


@pytest.mark.parametrize(("given", "window"), [({}, None), ({"undo_window_seconds": 0}, 0)])
def test_a_retire_that_was_confirmed_is_posted_once_and_tells_what_it_will_delete(
    server, instance, capsys, given, window
):
    server.act_for(server.fleet.owner_of("orders"))
    result = run(server, instance, "retire", app="orders", confirm="orders", **given)
    assert result.success
    (operation,) = server.fleet.operations_by_id.values()
    assert (operation.kind, operation.params["undo_window_seconds"]) == ("retire", window)
    assert operation.intent_id == f"dagster-{result.run_id}-retire-orders"
    assert "retire of orders, deleted at its end: topics c-changelog" in capsys.readouterr().err


def test_a_token_for_all_teams_ends_no_app(server, instance):
    result = run(server, instance, "retire", app="orders", confirm="orders")
    assert "may not retire apps of" in failure(result, "retire")
    assert not server.fleet.operations_by_id
