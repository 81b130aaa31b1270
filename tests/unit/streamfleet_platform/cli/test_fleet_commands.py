"""Commands that speak to a server: what they print, and their exit codes."""

import json

import pytest
from tests.unit.streamfleet_platform.api.fake_fleet import NOW, app_detail
from typer.main import get_group

from streamfleet_platform import views
from streamfleet_platform.cli import commands, following
from streamfleet_platform.cli.connection import known_server_file, write_private
from streamfleet_platform.model.operation import OperationState, StepState

VERBS = "plan apply status describe logs start stop scale probe reset upgrade retire query approve cancel"
OTHERS = "server up down validate lock diff audit bootstrap doctor token schema"


def test_all_commands_are_there_and_each_teaches_with_an_example(run):
    group = get_group(commands)
    assert set(group.commands) == {*VERBS.split(), *OTHERS.split()}
    for name, command in group.commands.items():
        helps = [command.help] if name != "token" else [each.help for each in command.commands.values()]
        for text in helps:
            assert "Example: streamfleet" in text, name
        assert run(name, "--help").exit_code == 0


def test_status_shows_every_app(call):
    result = call("status")
    assert result.exit_code == 0
    for word in ("orders", "payments", "running", "2/2", "clicks"):
        assert word in result.stdout


def test_status_as_json_is_what_the_api_says(call, fleet):
    told = json.loads(call("status", "--json").stdout)
    assert [views.AppSummary.model_validate(each) for each in told["apps"]] == fleet.apps()
    assert [each["name"] for each in json.loads(call("status", "orders", "--json").stdout)["apps"]] == ["orders"]
    assert call("status", "nowhere").exit_code == 1


def test_describe_shows_workers_tasks_topics_and_stores(call):
    out = call("describe", "orders").stdout
    for word in ("orders-app", "0_0", "standby", "timestamped_window", "c-changelog"):
        assert word in out
    assert json.loads(call("describe", "orders", "--json").stdout)["name"] == "orders"
    assert "apps/orders.yaml:12" in call("describe", "orders", "--provenance").stdout
    assert json.loads(call("describe", "orders", "--provenance", "--json").stdout)[0]["place"] == "apps/orders.yaml:12"


def test_logs_name_the_slot_when_there_are_several(call):
    assert call("logs", "orders", "-n", 1).stdout == "0: a line\n1: a line\n"
    assert call("logs", "orders", "--slot", 0, "-n", 1).stdout == "a line\n"


@pytest.fixture
def settling(fleet, monkeypatch):
    """Operations end when they have been looked at once."""
    looked = fleet.operation

    def look(operation_id):
        seen = looked(operation_id)
        fleet.settle()
        return seen

    monkeypatch.setattr(fleet, "operation", look)


@pytest.mark.parametrize(
    "arguments",
    [
        ("scale", "orders", 3),
        ("probe", "orders"),
        ("start", "orders"),
        ("stop", "orders"),
        ("upgrade", "orders", "--ref", "v2"),
        ("reset", "orders", "--confirm", "orders"),
        ("retire", "orders", "--confirm", "orders", "--undo-window", 0),
    ],
)
def test_a_verb_is_followed_to_its_end(call, settling, arguments):
    result = call(*arguments)
    assert result.exit_code == 0
    assert f"{arguments[0]} of orders: succeeded" in result.stdout
    assert f"{arguments[0]} orders: act done" in result.stderr


def test_a_retirement_is_watched_until_its_undo_window_and_not_for_days(call, fleet, monkeypatch):
    looked, kept = fleet.operation, "deleted after 2026-01-04 00:00 UTC; cancel to keep it"
    steps = (
        views.StepView(name="want-retired", state=StepState.DONE),
        views.StepView(name="wait-for-undo", state=StepState.RUNNING, detail=kept),
        views.StepView(name="fence", state=StepState.PENDING),
    )
    begun = {"state": OperationState.RUNNING, "steps": steps}
    monkeypatch.setattr(fleet, "operation", lambda name: looked(name).model_copy(update=begun))
    result = call("retire", "orders", "--confirm", "orders")
    (operation,) = fleet.operations_by_id
    assert result.exit_code == 0
    assert f"retire of orders: stopped, and {kept}" in result.stdout
    assert f"streamfleet cancel {operation}" in result.stdout


def test_json_has_the_operation_and_nothing_else(call, settling):
    told = json.loads(call("scale", "orders", 3, "--json").stdout)
    assert (told["state"], told["params"]["slots"]) == ("succeeded", 3)


def test_not_waiting_says_what_has_begun(call, fleet):
    result = call("scale", "orders", 3, "--no-wait")
    assert result.exit_code == 0
    (operation,) = fleet.operations_by_id
    assert operation in result.stdout


def test_the_same_intent_again_does_nothing_twice(call, fleet, settling):
    for _ in range(2):
        assert call("scale", "orders", 3, "--intent", "sale").exit_code == 0
    assert len(fleet.log) == 1


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (OperationState.FAILED, 1),
        (OperationState.ROLLED_BACK, 1),
        (OperationState.CANCELLED, 1),
        (OperationState.ASKING, 3),
        (OperationState.SUCCEEDED, 0),
    ],
)
def test_how_an_operation_ended_is_the_exit_code(call, fleet, monkeypatch, state, code):
    looked = fleet.operation
    monkeypatch.setattr(
        fleet, "operation", lambda name: looked(name).model_copy(update={"state": state, "error": "why"})
    )
    assert call("scale", "orders", 3).exit_code == code


def test_an_operation_that_asks_can_be_approved_or_cancelled(call, fleet, settling):
    call("reset", "orders", "--confirm", "orders", "--no-wait")
    (operation,) = fleet.operations_by_id
    fleet.ask(operation)
    assert call("approve", operation).exit_code == 0
    call("scale", "clicks", 3, "--no-wait")
    assert call("cancel", list(fleet.operations_by_id)[-1]).exit_code == 1


def test_what_is_called_off_while_it_runs_is_said_to_be_undone(call, fleet, monkeypatch):
    call("scale", "orders", 3, "--no-wait")
    (operation,) = fleet.operations_by_id
    monkeypatch.setattr(fleet, "cancel", lambda name, actor: fleet.operation(name))
    result = call("cancel", operation)
    assert (result.exit_code, "scale of orders is to be undone" in result.stdout) == (0, True)


def test_what_cannot_be_undone_wants_the_apps_name(call, fleet):
    for verb in ("reset", "retire"):
        result = call(verb, "orders", "--confirm", "clicks")
        assert result.exit_code == 1
        assert "orders was not confirmed" in result.stderr
        nobody = call(verb, "orders")
        assert nobody.exit_code == 1
        assert "nobody to ask" in nobody.stderr
    assert fleet.log == []


def test_a_reset_shows_its_preview_first(call, fleet):
    assert "forget 10 records of orders" in call("reset", "orders", "--preview").stdout
    assert json.loads(call("reset", "orders", "--preview", "--json").stdout)["id"] == "preview-2"
    assert fleet.log == []


class TestPlanning:
    @pytest.fixture
    def change(self, fleet):
        change = views.AppChange(
            app="orders",
            owner="payments",
            action="upgrade",
            verdict="MIGRATE",
            changes=("store renamed",),
            lost_state=("totals",),
            topics_created=("orders-x-changelog",),
        )
        fleet.planned = (change,)
        return change

    def test_nothing_to_do_is_exit_code_0(self, call):
        result = call("plan")
        assert result.exit_code == 0
        assert "nothing to do" in result.stdout

    def test_changes_are_told_with_what_would_be_lost_and_exit_code_3(self, call, change):
        result = call("plan")
        assert result.exit_code == 3
        for word in ("upgrade orders: MIGRATE", "store renamed", "loses the state of totals", "orders-x-changelog"):
            assert word in result.stdout
        assert call("plan", "--json").exit_code == 3

    def test_invalid_definitions_are_exit_code_1(self, call, fleet, monkeypatch):
        wrong = views.PlanView(revision="x", changes=(), problems=("apps/a.yaml:1:1: no",))
        monkeypatch.setattr(fleet, "plan", lambda source: wrong)
        result = call("plan")
        assert (result.exit_code, "apps/a.yaml:1:1: no" in result.stdout) == (1, True)

    def test_apply_does_it_and_watches(self, call, change, settling):
        result = call("apply")
        assert result.exit_code == 0
        assert "upgrade of orders: succeeded" in result.stdout
        assert json.loads(call("apply", "--json").stdout)["operations"][0]["state"] == "succeeded"

    def test_what_is_blocked_is_no_success(self, call, fleet, change, settling):
        fleet.planned = (change.model_copy(update={"action": "none", "blocked": "it loses state"}),)
        assert call("apply").exit_code == 1


def test_who_may_not_is_told_so(call):
    result = call("scale", "orders", 3, who="viewer")
    assert result.exit_code == 1
    assert "error: viewer is a viewer and may not scale; it takes an operator" in result.stderr


def test_misuse_is_exit_code_2(call):
    assert call("scale", "orders", 0).exit_code == 2
    assert call("scale", "orders").exit_code == 2
    assert call("scale", "orders", 3, "--nonsense").exit_code == 2
    assert call("nonsense").exit_code == 2


class TestConnecting:
    def test_without_a_token_it_says_how_to_bring_one(self, run):
        result = run("status")
        assert result.exit_code == 1
        assert "no server was started here" in result.stderr and "`streamfleet up` starts one" in result.stderr
        assert "STREAMFLEET_TOKEN" in result.stderr

    def test_without_a_server_it_says_how_to_start_one(self, run):
        result = run("status", "--server", "http://127.0.0.1:9", env={"STREAMFLEET_TOKEN": "x"})
        assert result.exit_code == 1
        assert "does not answer" in result.stderr and "streamfleet server" in result.stderr

    def test_a_token_file_wins(self, call, tokens, tmp_path):
        file = tmp_path / "token"
        file.write_text(tokens["viewer"] + "\n")
        assert call("stop", "orders", "--token-file", file).exit_code == 1
        file.write_text("two words\n")
        assert "holds no token" in call("status", "--token-file", file).stderr

    def test_what_up_left_is_used_for_its_server_only(self, call, run, tokens):
        known = {"server": "http://127.0.0.1:8400", "token": tokens["admin"]}
        write_private(known_server_file(), json.dumps(known))
        assert run("status").exit_code == 0
        assert "no token for http://localhost:1" in run("status", "--server", "http://localhost:1").stderr
        known_server_file().chmod(0o644)
        assert "can be read by others" in run("status").stderr

    def test_there_is_no_option_that_takes_a_token(self):
        group = get_group(commands)
        names = {option for each in group.commands.values() for param in each.params for option in param.opts}
        assert "--token" not in names and "--token-file" in names


def test_no_token_is_in_any_output(call, tokens, fleet, settling):
    outputs = [
        call("status"),
        call("describe", "orders"),
        call("describe", "orders", "--json"),
        call("scale", "orders", 3),
        call("scale", "orders", 3, who="viewer"),
        call("logs", "orders"),
        call("query", "orders", "counts", "k"),
        call("doctor"),
        call("doctor", "--json"),
    ]
    for result in outputs:
        assert not any(token in result.output for token in tokens.values())


def test_what_comes_from_outside_cannot_move_the_terminal(call, fleet):
    fleet.apps_by_name["orders"] = app_detail("orders", "payments", reason="\x1b[2J[red]gone[/red]\r\u202e")
    out = call("status").stdout
    assert "\x1b" not in out and "\r" not in out and "\u202e" not in out
    assert "[red]gone[/red]" in out


def test_a_bar_moves_with_the_steps():
    steps = (
        views.StepView(name="stop", state=StepState.DONE),
        views.StepView(name="[bold]start", state=StepState.RUNNING, detail="1 of 2"),
    )
    operation = views.OperationView(
        id="1", app="orders", kind="scale", state="running", created_at=NOW, intent_id="i", actor="a", steps=steps
    )
    bar = following._Bar()
    bar.show(operation)
    (task,) = bar._progress.tasks
    assert (task.completed, task.total) == (1, 2)
    assert task.description == "scale orders: [bold]start: 1 of 2"


def test_lines_tell_what_is_waited_for_and_not_every_number(capsys):
    lines = following._Lines()
    for detail in ("", "looking", "300 records to go", "200 records to go", "well; it has to stay so for 2 m"):
        step = views.StepView(name="pass-gate 0", state=StepState.RUNNING, detail=detail)
        lines.show(
            views.OperationView(
                id="1",
                app="orders",
                kind="upgrade",
                state="running",
                created_at=NOW,
                intent_id="i",
                actor="a",
                steps=(step,),
            )
        )
    told = [line.removeprefix("upgrade orders: pass-gate 0 running") for line in capsys.readouterr().err.splitlines()]
    assert told == ["", ": looking", ": 300 records to go", ": well; it has to stay so for 2 m"]


def test_query_prints_values_and_says_when_they_are_stale(call, app, fleet, monkeypatch):
    answers = {
        "counts": {"key": "alice", "value": 3, "active": False, "stale": True, "lag_records": 5, "age_ms": 1200},
        "by-minute": {"key": "alice", "rows": [{"key": "alice", "window": {"start": 0, "end": 60000}, "value": 2}]},
    }
    monkeypatch.setattr(app.state.gateway, "ask", lambda name, store, key, options: answers[store])
    out = call("query", "orders", "counts", "alice").stdout
    assert "alice = 3" in out and "5 records and 1200 ms behind" in out
    assert "alice [0, 60000) = 2" in call("query", "orders", "by-minute", "alice", "--owner-only").stdout
    assert json.loads(call("query", "orders", "counts", "alice", "--json").stdout)["stale"] is True
