"""Components: a fleet's assets (FleetComponent) and what acts on it (ControlComponent), each for a code location of its own.

    # defs.yaml
    type: dagster_streamfleet.FleetComponent
    attributes: {control_location: control}

Apps come from the server when the location loads. When it is away, the last snapshot is shown and says so; processes that rebuild
the location for a run read the snapshot it was loaded with.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

from dagster import Component, ComponentLoadContext, Definitions, Model, PipesSubprocessClient, Resolvable
from dagster._core.definitions.definitions_load_context import DefinitionsLoadContext, DefinitionsLoadType
from dagster_shared.utils.warnings import PreviewWarning

from dagster_streamfleet.assets import fleet_assets
from dagster_streamfleet.audits import audit_job, audit_schedules, state_audit
from dagster_streamfleet.bootstraps import bootstrap_job
from dagster_streamfleet.checks import app_checks
from dagster_streamfleet.observation import observation_sensor
from dagster_streamfleet.resource import StreamfleetResource, client_of_environment
from dagster_streamfleet.sensors import acting_sensors
from dagster_streamfleet.snapshot import FleetSnapshot, SnapshotFiles, default_directory
from dagster_streamfleet.translator import FleetTranslator
from dagster_streamfleet.verbs import verb_jobs

CONTROL_LOCATION = "control"
FLEET_LOCATION = "fleet"
_SNAPSHOT_KEY = "streamfleet/snapshot"
_CRONS_KEY = "streamfleet/audit_schedules"


class FleetComponent(Component, Model, Resolvable):
    """Topics, sub-topologies, stores and pages of all apps, their checks, and the sensor that observes them."""

    control_location: str = CONTROL_LOCATION
    """Where the links to the verbs lead."""
    snapshot_directory: str | None = None
    """None: in Dagster's home."""

    def translator(self) -> FleetTranslator:
        """Override to name things otherwise."""
        return FleetTranslator()

    def build_defs(self, context: ComponentLoadContext) -> Definitions:
        return self.definitions()

    def definitions(self) -> Definitions:
        snapshot, path = self._snapshot()
        translator = self.translator()
        found = Definitions(
            assets=fleet_assets(snapshot, translator, self.control_location),
            asset_checks=app_checks(snapshot.apps, translator),
            sensors=[observation_sensor(translator, frozenset(app.name for app in snapshot.apps))],
            resources={"streamfleet": StreamfleetResource.from_environment()},
        )
        return _remembering(found, _SNAPSHOT_KEY, str(path))

    def _snapshot(self) -> tuple[FleetSnapshot, Path]:
        known = _reconstructed(_SNAPSHOT_KEY)
        if isinstance(known, str) and Path(known).is_file():
            return SnapshotFiles.read(Path(known)), Path(known)
        directory = Path(self.snapshot_directory) if self.snapshot_directory else default_directory()
        with client_of_environment() as client:
            return SnapshotFiles(directory).take_or_last(client)


class ControlComponent(Component, Model, Resolvable):
    """Jobs for the verbs, sensors that act, audits and bootstraps. Light, because every run loads it."""

    snapshot_directory: str | None = None

    def translator(self) -> FleetTranslator:
        return FleetTranslator()

    def build_defs(self, context: ComponentLoadContext) -> Definitions:
        return self.definitions()

    def definitions(self) -> Definitions:
        crons = self._audit_crons()
        found = Definitions(
            assets=[state_audit],
            jobs=[*verb_jobs(), bootstrap_job, audit_job],
            sensors=acting_sensors(self.translator()),
            schedules=audit_schedules(crons, self.translator()),
            resources={
                "streamfleet": StreamfleetResource.from_environment(),
                "pipes": PipesSubprocessClient(),
            },
        )
        return _remembering(found, _CRONS_KEY, json.dumps(crons))

    def _audit_crons(self) -> dict[str, str]:
        known = _reconstructed(_CRONS_KEY)
        if isinstance(known, str):
            return dict(json.loads(known))
        directory = Path(self.snapshot_directory) if self.snapshot_directory else default_directory()
        with client_of_environment() as client:
            snapshot, _ = SnapshotFiles(directory, "control", with_pictures=False).take_or_last(client)
        return {app.name: app.audit_schedule for app in snapshot.apps if app.audit_schedule}


def _remembering(definitions: Definitions, key: str, value: str) -> Definitions:
    """Dagster hands it to the processes that rebuild these definitions. A preview still: pinned with its exact version."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PreviewWarning)
        return definitions.with_reconstruction_metadata({key: value})


def _reconstructed(key: str) -> object:
    """What the location was loaded with, in a process that rebuilds it; None where it loads."""
    context = DefinitionsLoadContext.get()
    if context.load_type is not DefinitionsLoadType.RECONSTRUCTION:
        return None
    return context.reconstruction_metadata.get(key)
