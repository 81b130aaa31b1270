"""The number of standbys is a setting of the group: carried to the broker if the app has one of its own."""

from __future__ import annotations

import pytest
from tests.unit.streamfleet.kafka.scripted_coordinator import HandClock, ScriptedCoordinator

from streamfleet.errors import ConfigError
from streamfleet.kafka.coordinator import CoordinatorLine
from streamfleet.kafka.error_codes import ErrorCode
from streamfleet.kafka.errors import AuthorizationError, GroupFatalError
from streamfleet.kafka.streams_group.group_settings import SettingsAnswer, share_standbys


@pytest.fixture
def broker():
    return ScriptedCoordinator(HandClock())


def share(broker: ScriptedCoordinator, number: int) -> None:
    share_standbys(CoordinatorLine(broker, broker.clock, "app"), "app", number, broker.clock.now_ms() + 1_000)


def test_the_app_s_number_is_set(broker):
    broker.script("IncrementalAlterConfigs", SettingsAnswer(ErrorCode.NONE, None))
    share(broker, 2)
    [request] = broker.sent("IncrementalAlterConfigs")
    [resource] = request.resources
    [setting] = resource.configs
    assert (resource.resource_type, resource.resource_name) == (32, "app")
    assert (setting.name, setting.value, setting.config_operation) == ("streams.num.standby.replicas", "2", 0)


def test_none_leaves_the_group_s_own_number_alone(broker):
    share(broker, 0)
    assert broker.calls == []


@pytest.mark.parametrize(
    ("code", "error", "says"),
    [
        (ErrorCode.INVALID_CONFIG, ConfigError, "num.standby.replicas cannot be 9: too many"),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, AuthorizationError, "grant ALTER_CONFIGS"),
        (ErrorCode.INVALID_REQUEST, GroupFatalError, "could not be set: too many"),
    ],
)
def test_a_refusal_says_what_to_change(broker, code, error, says):
    broker.script("IncrementalAlterConfigs", SettingsAnswer(code, "too many"))
    with pytest.raises(error, match=says):
        share(broker, 9)
