"""The location `control`: what acts."""

from dagster import Definitions
from dagster.components import definitions

from dagster_streamfleet.component import ControlComponent


@definitions
def defs() -> Definitions:
    return ControlComponent().definitions()
