import threading
import time
from contextlib import suppress

import pytest

from streamfleet.errors import StoreUnavailableError, TooManyQueriesError
from streamfleet.thread.step_gate import MAX_WAITING, StepGate, _Look

PATIENCE = 10.0


def in_thread(call):
    box = []

    def run():
        try:
            box.append(call())
        except Exception as error:
            box.append(error)

    thread = threading.Thread(target=run)
    thread.start()

    def join():
        thread.join(PATIENCE)
        return box[0]

    return join


def until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_between_steps_a_look_is_answered_at_once():
    assert StepGate().look(lambda: 42, PATIENCE) == 42


def test_during_a_step_a_look_waits_for_the_next():
    gate, looked = StepGate(), []
    with gate.step():
        answer = in_thread(lambda: gate.look(lambda: looked.append(1) or threading.current_thread(), PATIENCE))
        until(lambda: gate._waiting)
        assert looked == []
    with gate.step():
        assert looked == [1]
    assert answer() is threading.current_thread()


def test_while_a_step_waits_for_records_looks_are_answered_by_who_asks():
    gate = StepGate()
    with gate.step(), gate.open():
        answer = in_thread(lambda: gate.look(threading.current_thread, PATIENCE))
        assert answer() is not threading.current_thread()


def test_who_came_just_before_the_gate_opened_is_answered_too():
    gate = StepGate()
    with gate.step():
        answer = in_thread(lambda: gate.look(lambda: "seen", PATIENCE))
        until(lambda: gate._waiting)
        with gate.open():
            assert answer() == "seen"


def test_what_a_look_raises_is_raised_where_it_was_asked_and_the_thread_goes_on():
    gate = StepGate()
    with gate.step():
        answer = in_thread(lambda: gate.look(lambda: 1 / 0, PATIENCE))
        until(lambda: gate._waiting)
    with gate.step():
        pass
    assert isinstance(answer(), ZeroDivisionError)


def test_a_look_that_waited_for_too_long_is_never_made():
    gate, looked = StepGate(), []
    with gate.step(), pytest.raises(StoreUnavailableError, match="no step"):
        gate.look(lambda: looked.append(1), 0.01)
    with gate.step():
        pass
    assert looked == []


def test_too_many_waiting_looks_are_refused():
    gate = StepGate()
    with gate.step():
        answers = [in_thread(lambda: gate.look(lambda: 1, PATIENCE)) for _ in range(MAX_WAITING)]
        until(lambda: len(gate._waiting) == MAX_WAITING)
        with pytest.raises(TooManyQueriesError):
            gate.look(lambda: 1, PATIENCE)
    gate.close()
    assert all(isinstance(answer(), StoreUnavailableError) for answer in answers)


def test_however_many_ask_while_it_closes_nobody_waits_for_a_step_that_never_comes():
    gate = StepGate()
    with gate.step():
        answers = [in_thread(lambda: gate.look(lambda: 1, PATIENCE)) for _ in range(MAX_WAITING + 20)]
        until(lambda: len(gate._waiting) == MAX_WAITING)
    began = time.monotonic()
    gate.close()
    told = [answer() for answer in answers]
    assert time.monotonic() - began < PATIENCE / 2
    assert {type(answer) for answer in told} <= {int, StoreUnavailableError, TooManyQueriesError}


def test_more_than_may_wait_are_all_told_that_the_thread_has_stopped():
    """Who passed the limit at the same moment as others is told, too."""
    gate, call = StepGate(), lambda: 1
    surplus = [_Look(call) for _ in range(2 * MAX_WAITING)]
    gate._waiting.extend(surplus)
    gate.close()
    for look in surplus:
        with pytest.raises(StoreUnavailableError, match="stopped"):
            look.wait(0)


def test_after_closing_nobody_waits():
    gate = StepGate()
    gate.close()
    with pytest.raises(StoreUnavailableError, match="stopped"):
        gate.look(lambda: 1, PATIENCE)


def test_steps_and_looks_never_overlap():
    gate, inside, failures = StepGate(), [], []
    stop = threading.Event()

    def look():
        if inside:
            failures.append("a look during a step")

    def ask():
        while not stop.is_set():
            with suppress(StoreUnavailableError):  # the last ones find the gate closed
                gate.look(look, PATIENCE)

    askers = [threading.Thread(target=ask) for _ in range(4)]
    for asker in askers:
        asker.start()
    for n in range(50):
        with gate.step():
            inside.append(n)
            sum(range(500))
            inside.clear()
            with gate.open():
                time.sleep(0)
            inside.append(n)
            inside.clear()
    stop.set()
    gate.close()
    for asker in askers:
        asker.join(PATIENCE)
    assert failures == []
