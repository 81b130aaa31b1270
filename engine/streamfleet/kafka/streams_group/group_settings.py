"""The settings that a streams group has on the broker: standbys are one, so the app's own setting has to be carried there.

`share_standbys` is called when an app with `group.protocol=streams` is put together. The admin client knows no settings of groups,
so it is asked over our own line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafka.protocol.admin.configs import (  # type: ignore[import-untyped]
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

from streamfleet.errors import ConfigError
from streamfleet.kafka.coordinator import CoordinatorLine
from streamfleet.kafka.error_codes import NOT_ALLOWED, ErrorCode
from streamfleet.kafka.errors import AuthorizationError, GroupFatalError
from streamfleet.kafka.wire import PINNED, Call

STANDBYS = "streams.num.standby.replicas"
_GROUP_RESOURCE = 32
_SET = 0


@dataclass(frozen=True)
class SettingsAnswer:
    code: ErrorCode
    message: str | None


def share_standbys(line: CoordinatorLine, group_id: str, num_standby_replicas: int, deadline_ms: int) -> None:
    """Let the broker plan as many standbys as the app wants. 0 changes nothing: somebody may have set the group's own number."""
    if num_standby_replicas == 0:
        return
    answer = line.ask(set_group_settings(group_id, {STANDBYS: str(num_standby_replicas)}), deadline_ms)
    if answer.code is ErrorCode.NONE:
        return
    said = answer.message or answer.code.name
    if answer.code in NOT_ALLOWED:
        raise AuthorizationError(
            f"not allowed to set {STANDBYS} of group {group_id} ({said})",
            hint="grant ALTER_CONFIGS on the group, or set it by hand and leave num.standby.replicas at 0",
        )
    if answer.code is ErrorCode.INVALID_CONFIG:
        raise ConfigError(
            f"setting num.standby.replicas cannot be {num_standby_replicas}: {said}",
            hint="ask for fewer, or raise the limit on the broker",
        )
    raise GroupFatalError(f"{STANDBYS} of group {group_id} could not be set: {said}", hint="look at the broker's log")


def set_group_settings(group_id: str, settings: Mapping[str, str]) -> Call[SettingsAnswer]:
    version = PINNED["IncrementalAlterConfigs"]
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    request = IncrementalAlterConfigsRequest(
        resources=[
            resource(
                resource_type=_GROUP_RESOURCE,
                resource_name=group_id,
                configs=[
                    resource.AlterableConfig(name=name, config_operation=_SET, value=value, version=version)
                    for name, value in settings.items()
                ],
                version=version,
            )
        ],
        validate_only=False,
        version=version,
    )
    return Call("IncrementalAlterConfigs", request, IncrementalAlterConfigsResponse, _settings_answer)


def _settings_answer(response: Any) -> SettingsAnswer:
    [answer] = response.responses
    return SettingsAnswer(ErrorCode.of(answer.error_code), answer.error_message)
