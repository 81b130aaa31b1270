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


@pytest.fixture
def shop(broker, tmp_path):
    made = Shop(broker, tmp_path)
    yield made
    made.close()


def test_F16_tasks_of_a_killed_worker_run_two_seconds_after_its_session_at_the_latest_and_nothing_is_restored(
    shop, capsys
):
    shop.create_topics()
    shop.configure("num.standby.replicas: 1\n")
    shop.write(*WORDS)
    killed, heir = shop.run(state="killed"), shop.run(state="heir")
    killed_door, door = killed.until_ready(), heir.until_ready()
    heir.until(lambda: are_settled(killed_door, door))
    shop.counts(lambda found: found == Counter(WORDS))
    heir.until(lambda: are_settled(killed_door, door))  # the copies have the last of it, too

    before, began = restored(heir), time.monotonic()
    killed.process.kill()
    heir.until(lambda: len(running(door)) == 4)
    took = time.monotonic() - began
    with capsys.disabled():
        print(f"\nfail-over took {took:.2f} s, with a session time-out of {SESSION_SECONDS} s")
    assert took <= SESSION_SECONDS + ALLOWED_SECONDS
    assert restored(heir) == before
    shop.write(*WORDS)
    shop.counts(lambda found: found == Counter(WORDS * 2))
