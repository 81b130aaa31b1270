"""A worker that joins an app with state is killed while its copy is half way: nothing moves to it before it is ready."""

import pytest
from tests.integration.streamfleet.worker.conftest import Shop

WORDS = [f"word-{number:05d}" for number in range(6000)]
SETTINGS = "acceptable.recovery.lag: 50\n"


@pytest.fixture
def shop(broker, tmp_path):
    made = Shop(broker, tmp_path)
    yield made
    made.close()


def tasks(door):
    return {
        task["id"]
        for thread in door.json("/status")["threads"]
        for task in thread["tasks"]
        if task["phase"] == "running"
    }


def copies(door):
    return [copy for thread in door.json("/status")["threads"] for copy in thread["standbys"]]


def is_half_way(copy):
    known = copy["lag_records"] is not None
    return known and copy["restored_records"] > 0 and copy["lag_records"] <= 1.2 * copy["restored_records"]


def test_F17_a_warm_up_killed_half_way_moves_nothing_and_is_made_ready_again(shop):
    shop.create_topics()
    shop.configure(SETTINGS)
    first = shop.run(state="first")
    first_door = first.until_ready()
    shop.write(*WORDS)
    shop.counts(lambda found: len(found) == len(WORDS), timeout_seconds=60)

    shop.configure(SETTINGS + "restore.rate.limit.bytes.per.second: 10000\n")
    second = shop.run(state="second")
    second_door = second.door()
    second.until(lambda: any(is_half_way(copy) for copy in copies(second_door)), timeout_seconds=60)
    assert {copy["kind"] for copy in copies(second_door)} == {"warmup"}
    assert {"1_0", "1_1"} <= tasks(first_door)
    second.process.kill()

    first.until(lambda: tasks(first_door) == {"0_0", "0_1", "1_0", "1_1"}, timeout_seconds=60)
    shop.write(*WORDS[:10])
    shop.counts(lambda found: all(found.get(word) == 2 for word in WORDS[:10]))

    shop.configure(SETTINGS)
    second = shop.run(state="second")
    second_door = second.door()
    second.until(lambda: len({"1_0", "1_1"} & tasks(second_door)) == 1, timeout_seconds=60)
    first.until(lambda: len({"1_0", "1_1"} & tasks(first_door)) == 1)
    shop.write(*WORDS[:10])
    shop.counts(lambda found: all(found.get(word) == 3 for word in WORDS[:10]))
