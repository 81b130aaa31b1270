"""How soon a standby goes on when its worker is killed: when the session is over, and with nothing to restore. How the killed
worker comes back, and the same on a machine that has other things to do: tests/integration/streamfleet/worker.
"""

import time
from collections import Counter

import pytest
from tests.integration.streamfleet.worker.conftest import Shop
from tests.integration.streamfleet.worker.test_fail_over import (
    SESSION_SECONDS,
    WORDS,
    are_settled,
    restored,
    running,
)

ALLOWED_SECONDS = 2.0
"""Beyond the session time-out."""
COMMIT_SECONDS = 3.0
"""Long enough to see a transaction that is open, and to kill its worker in it."""
READING_SECONDS = 2.0
"""Until a reader of the results has started, and has seen them all."""


@pytest.fixture
def shop(broker, tmp_path):
    made = Shop(broker, tmp_path)
    yield made
    made.close()


def inputs(door, sub_topologies="01"):
    tasks = [task for thread in door.json("/status")["threads"] for task in thread["tasks"]]
    return [each for task in tasks if task["id"][0] in sub_topologies for each in task["inputs"]]


def is_in_a_transaction(door):
    """Whether it has counted words (sub-topology 1), and sent their counts, since its last commit."""
    return any(each["position"] > (each["committed"] or 0) for each in inputs(door, "1"))


def committed_records(*doors):
    """At least once, where every offset is a record."""
    return sum(each["committed"] or 0 for door in doors for each in inputs(door))


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_F16_tasks_of_a_killed_worker_run_two_seconds_after_its_session_at_the_latest_and_nothing_is_restored(
    shop, guarantee, capsys
):
    shop.create_topics()
    settings = f"num.standby.replicas: 1\nprocessing.guarantee: {guarantee}\nstatestore.cache.max.bytes: 0\n"
    shop.configure(settings, commit_ms=int(1000 * COMMIT_SECONDS))
    shop.write(*WORDS)
    killed, heir = shop.run(state="killed"), shop.run(state="heir")
    killed_door, door = killed.until_ready(), heir.until_ready()
    heir.until(lambda: are_settled(killed_door, door))
    shop.counts(lambda found: found == Counter(WORDS))
    if guarantee == "at_least_once":  # what is not committed would be counted once more
        heir.until(lambda: committed_records(killed_door, door) == 2 * len(WORDS))  # by both sub-topologies
    heir.until(lambda: are_settled(killed_door, door))  # the copies have the last of it, too

    written = Counter(WORDS)
    if guarantee == "exactly_once_v2":
        shop.write(*WORDS)
        written += Counter(WORDS)
        killed.until(lambda: is_in_a_transaction(killed_door))
    before, began = restored(heir), time.monotonic()
    killed.process.kill()
    heir.until(lambda: len(running(door)) == 4)
    took = time.monotonic() - began
    assert restored(heir) == before
    # To readers of committed data: what the killed worker had begun hides nothing from them, and is counted once.
    shop.counts(lambda found: found == written)
    seen = time.monotonic() - began
    with capsys.disabled():
        print(f"\nfail-over took {took:.2f} s, {guarantee}, with a session time-out of {SESSION_SECONDS} s")
        print(f"all results were there after {seen:.2f} s, with commits every {COMMIT_SECONDS:g} s")
    assert took <= SESSION_SECONDS + ALLOWED_SECONDS
    assert seen <= SESSION_SECONDS + ALLOWED_SECONDS + 2 * COMMIT_SECONDS + READING_SECONDS
    shop.write(*WORDS)
    shop.counts(lambda found: found == written + Counter(WORDS))
