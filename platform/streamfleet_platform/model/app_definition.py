"""One app, as its file under apps/ declares it, completed by the defaults of its tier and fleet.

The sections that say how it is run and watched are in app_policies.py. Fields are documented where they are declared; the
text is also in the published JSON Schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from streamfleet_platform.model.app_policies import Errors, Health, Protect, Rollout, Run, Scale, State
from streamfleet_platform.model.names import Entrypoint, LockFileName, Name, TopicName
from streamfleet_platform.model.section import Section, refusal

API_VERSION = "streamfleet/v1"

Text = Annotated[str, Field(min_length=1, max_length=200)]
Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]


class AppMetadata(Section):
    """Who it is."""

    name: Name
    """The app's name in the fleet; the same as its file's."""
    owner: Name
    """The team that answers for it."""
    tier: Name | None = None
    """Whose defaults and priority it has."""
    labels: Mapping[Name, Text] = {}
    """Free words to find it by."""


class Code(Section):
    """What it runs."""

    entrypoint: Entrypoint
    """module:function, without arguments, that returns the Topology or the StreamsBuilder."""
    image: Text | None = None
    """A container image, for runtimes that run images: there is none yet, so it is refused."""
    digest: Digest | None = None
    """Of that image: a tag can be moved, and then there is nothing to roll back to."""

    @model_validator(mode="after")
    def _pinned(self) -> Self:
        if (self.image is None) != (self.digest is None):
            raise refusal("image and digest belong together", "give both, or none for the local runtime")
        if self.image is not None and "@" in self.image:
            raise refusal("image has a digest in it", "write the digest in its own field")
        return self


class Input(Section):
    """What it reads: a topic, or the output of another app of the fleet."""

    topic: TopicName | None = None
    app: Name | None = None
    output: Name | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        is_reference = self.app is not None and self.output is not None
        if (self.topic is None) == (not is_reference) or (self.topic is not None and (self.app or self.output)):
            raise refusal("an input is a topic or an app's output", "write {topic: NAME} or {app: NAME, output: NAME}")
        return self


class Output(Section):
    """What it writes for others."""

    topic: TopicName
    partitions: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """With how many partitions the topic is created if it is not there."""


class TopologySettings(Section):
    """The lock that is reviewed with the code."""

    lock: LockFileName | None = None
    """The lock file beside this one."""
    require_names: bool = True
    """Refuses generated names of stores and internal topics: they shift with the next edit, and state is lost."""


class AppSpec(Section):
    """What it is and how it is run."""

    code: Code
    cluster: Name
    """One of the clusters of fleet.yaml."""
    application_id: Name
    """Names the state: internal topics, group, directories. Never derived from the app's name, so that can be changed."""
    generation: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """One more is a deliberate new start of the state."""
    inputs: Annotated[Mapping[Name, Input], Field(min_length=1)]
    outputs: Mapping[Name, Output] = {}
    topology: TopologySettings = TopologySettings()
    errors: Errors = Errors()
    state: State = State()
    run: Run = Run()
    scale: Scale = Scale()
    rollout: Rollout = Rollout()
    protect: Protect = Protect()
    health: Health = Health()


class AppDefinition(Section):
    """apps/NAME.yaml."""

    api_version: Literal["streamfleet/v1"]
    kind: Literal["StreamsApp"]
    metadata: AppMetadata
    spec: AppSpec


IDENTITY_FIELDS = ("code", "cluster", "applicationId", "generation", "inputs", "outputs", "topology")
"""What a tier or fleet cannot give: they say what the app is, not how it is run."""
