"""The control plane of a fleet of Streamfleet apps.

model/         what an app, a fleet, a phase and an operation are: pure values, no I/O
definitions/   YAML files in Git or in a directory become that model, with the place every value came from
topologies/    an app's topology as a lock, made in a confined child process; two locks compared
scaling/       how many slots an app should have, and why
views.py       what the API says; client.py: the API from the outside

It knows the engine by its root only (`import streamfleet`), and never imports the code of an app. Others (Dagster) use what is
named here.
"""

from streamfleet_platform import views
from streamfleet_platform.client import FleetClient
from streamfleet_platform.errors import (
    FleetError,
    NotFoundError,
    PermanentError,
    SlowDownError,
    StaleError,
    TransientError,
)
from streamfleet_platform.model.operation import OperationKind, OperationState, StepState
from streamfleet_platform.model.phase import Phase

__all__ = [
    "FleetClient",
    "FleetError",
    "NotFoundError",
    "OperationKind",
    "OperationState",
    "PermanentError",
    "Phase",
    "SlowDownError",
    "StaleError",
    "StepState",
    "TransientError",
    "views",
]
