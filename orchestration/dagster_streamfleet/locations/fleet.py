"""The location `fleet`: what there is."""

from dagster import Definitions
from dagster.components import definitions

from dagster_streamfleet.component import FleetComponent


@definitions
def defs() -> Definitions:
    return FleetComponent().definitions()
