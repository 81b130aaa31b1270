"""The fleet, as fleet.yaml declares it: clusters, runtime, tiers, budgets. Owned by those who run the fleet, not by apps."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from streamfleet_platform.model.app_policies import MAX_SETTINGS, SecretReference, Setting
from streamfleet_platform.model.names import Name, VariableName
from streamfleet_platform.model.quantities import Bytes, DurationMs
from streamfleet_platform.model.section import Section, refusal, shown

_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*|\[[0-9a-fA-F:]+\])"
LEAST_FOLLOW_MS = 1000
BROKERS_PATTERN = rf"^{_HOST}:[0-9]{{1,5}}(?:,{_HOST}:[0-9]{{1,5}})*$"


def _brokers(value: str) -> str:
    for address in value.split(","):
        host, _, port = address.rpartition(":")
        if not 1 <= int(port) <= 65_535:
            raise refusal(f"{shown(address)} is not a broker", "ports go from 1 to 65535")
        try:
            is_link_local = ipaddress.ip_address(host.strip("[]")).is_link_local
        except ValueError:  # a name
            is_link_local = False
        if is_link_local:
            raise refusal(
                f"{shown(address)} is a link-local address", "name a broker by an address that others see too"
            )
    return value


Brokers = Annotated[str, Field(max_length=1000, pattern=BROKERS_PATTERN), AfterValidator(_brokers)]


class Cluster(Section):
    """A Kafka cluster that apps name."""

    bootstrap: Brokers
    """Brokers to begin with, as host:port,host:port."""
    config: Annotated[Mapping[str, Setting], Field(max_length=MAX_SETTINGS)] = {}
    """Settings of the Kafka clients of all apps on it, by librdkafka's names. `${NAME}` takes a secret."""
    secrets: Mapping[Name, SecretReference] = {}
    allow_insecure: bool = False
    """Lets `config` switch the verification of certificates off. For development."""


def _there(value: Any) -> Any:
    if value == "kubernetes":
        raise refusal("the runtime kubernetes is not there yet", "write local: processes on the server's machine")
    return value


class Runtime(Section):
    """Where workers run."""

    kind: Annotated[Literal["local"], BeforeValidator(_there)] = "local"
    """local: processes on the machine of the server."""


def _included(value: str) -> str:
    if len(value) > 200 or not value or value.startswith("/") or {"", ".", ".."} & set(value.split("/")):
        raise refusal(f"{shown(value)} is not a path inside the source", "write one such as src/apps, without .. in it")
    return value


class FleetCode(Section):
    """What of the source is code of the apps."""

    include: tuple[Annotated[str, AfterValidator(_included)], ...] = ()
    """Files and directories; none: all of it. What is outside is in no revision, and changing it restarts nobody."""


def _patient(value: int) -> int:
    if value < LEAST_FOLLOW_MS:
        raise refusal("a branch cannot be looked at so often", "write 1s or more")
    return value


class Follow(Section):
    """Acting on Git by itself. Without it only `apply` acts."""

    branch: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,199}$")]
    """Of the repository that the server reads; nothing is fetched."""
    every: Annotated[DurationMs, AfterValidator(_patient)] = 60_000
    """How often the branch is looked at; a second at least."""
    apply: Literal["plan", "auto"] = "plan"
    """plan: what a new commit would change is told, and nothing is done. auto: it is applied, as `streamfleet apply` would."""


class Tier(Section):
    """A class of apps that share defaults."""

    priority: Annotated[int, Field(ge=0, le=1000)] = 50
    """Who restores first when the budget is short: higher before lower."""
    defaults: Mapping[str, Any] = {}
    """Values of an app's `spec`, for apps of this tier."""


class RestoreBudget(Section):
    """What restoring may cost a cluster, over all apps."""

    bytes_per_second: Bytes | None = None
    concurrent: Annotated[int, Field(ge=1)] | None = None


class Budgets(Section):
    """What the apps of the fleet share."""

    restore: RestoreBudget = RestoreBudget()
    slots: Annotated[int, Field(ge=1)] | None = None
    """Workers of all apps together. Growth stays within it, the most important apps first, and new apps wait for room."""


class FleetSecrets(Section):
    """What apps may refer to."""

    env: tuple[VariableName, ...] = ()
    """Environment variables of the runtime that apps may name; no others."""


class FleetMetadata(Section):
    """Which fleet it is."""

    name: Name


class FleetSpec(Section):
    """What the fleet has."""

    clusters: Annotated[Mapping[Name, Cluster], Field(min_length=1)]
    runtime: Runtime = Runtime()
    code: FleetCode = FleetCode()
    follow: Follow | None = None
    secrets: FleetSecrets = FleetSecrets()
    defaults: Mapping[str, Any] = {}
    """Values of `spec` for all apps."""
    tiers: Mapping[Name, Tier] = {}
    """Changes to the built-in tiers, and tiers of your own."""
    budgets: Budgets = Budgets()


class FleetDefinition(Section):
    """fleet.yaml."""

    api_version: Literal["streamfleet/v1"]
    kind: Literal["Fleet"]
    metadata: FleetMetadata
    spec: FleetSpec
