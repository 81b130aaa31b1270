"""Dagster models a fleet: topologies, internal topics and stores as assets; sensors that act; jobs for the verbs.

component.py     a fleet's assets, and what acts on it, each for a code location of its own (locations/)
translator.py    names; lineage.py: who reads what; assets.py, app_page.py, checks.py: what is shown
observation.py   the sensor that reports; sensors.py, waves.py: those that act; verbs.py: the jobs they launch
audits.py, bootstraps.py   jobs of streamfleet_jobs, run as child processes
"""

from dagster_streamfleet.component import ControlComponent, FleetComponent
from dagster_streamfleet.resource import StreamfleetResource
from dagster_streamfleet.translator import FleetTranslator

__all__ = ["ControlComponent", "FleetComponent", "FleetTranslator", "StreamfleetResource"]
