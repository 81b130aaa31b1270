"""`streamfleet run` with `group.protocol: streams`: killed and taken over; and `worker reset`, which must see such a group."""

import pytest

from streamfleet.kafka.connection import TcpConnector
from streamfleet.kafka.coordinator import CoordinatorLine
from streamfleet.kafka.error_codes import ErrorCode
from streamfleet.kafka.patience import MonotonicClock
from streamfleet.kafka.streams_group.group_settings import set_group_settings
from streamfleet.worker.control_client import ControlError, WorkerDoor

CONFIG = """
application.id: {app}
bootstrap.servers: {servers}
default.key.serde: string
default.value.serde: string
commit.interval.ms: 100
group.protocol: streams
"""


@pytest.fixture
def streams_shop(shop):
    """With short time-outs of the group, so that a dead member is missed soon."""
    clock = MonotonicClock()
    line = CoordinatorLine(TcpConnector({"bootstrap.servers": shop.servers}, clock), clock, shop.app)
    quick = {"streams.session.timeout.ms": "3000", "streams.heartbeat.interval.ms": "200"}
    assert line.ask(set_group_settings(shop.app, quick), clock.now_ms() + 20_000).code is ErrorCode.NONE
    line.close()
    (shop.directory / "app.yaml").write_text(CONFIG.format(app=shop.app, servers=shop.servers))
    shop.create_topics()
    return shop


def test_the_tasks_of_a_killed_worker_are_taken_over_and_a_group_with_members_is_not_reset(streams_shop):
    shop = streams_shop
    first = shop.run(state="one")
    first.until_ready()
    second = shop.run(state="two")
    door = second.until_ready()
    with pytest.raises(ControlError, match=r"refused \(409\): .*the broker plans"):
        WorkerDoor(door.url).order("probe")
    shop.write("to", "be", "to")
    shop.counts(lambda found: found == {"to": 2, "be": 1})
    first.process.kill()
    shop.write("be", "or")
    shop.counts(lambda found: found == {"to": 2, "be": 2, "or": 1}, timeout_seconds=60)
    refused = shop.reset("--yes", state="two")
    assert refused.returncode != 0 and f"{shop.app}-0 at 127.0.0.1" in refused.stdout + refused.stderr
    second.send()
    assert second.wait() == 0


def test_after_a_reset_the_app_founds_its_group_anew(streams_shop):
    shop = streams_shop
    for word, expected in (("first", {"first": 1}), ("second", {"first": 1, "second": 1})):
        worker = shop.run()
        worker.until_ready()
        shop.write(word)
        shop.counts(lambda found, expected=expected: found == expected)
        worker.send()
        assert worker.wait() == 0
        result = shop.reset("--yes", "--input-topics", "latest")
        assert result.returncode == 0, result.stderr
        assert not {name for name in shop.topics() if name.endswith(("-changelog", "-repartition"))}
