"""Manifests: what makes table files count. Written last, one per partition; workers compare with them. Called by job.py."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamfleet.state.snapshot import MANIFEST_NAME, SnapshotFile, SnapshotManifest, write_manifest
from streamfleet_jobs.bootstrap.spec import BootstrapSpec
from streamfleet_jobs.bootstrap.staging import table_directory

Detail = Mapping[str, Any]
"""Of a step's record."""


def files_of(spec: BootstrapSpec, partition: int, staged: Detail) -> list[str]:
    """A partition's table files, by their names below the snapshot directory."""
    place = f"{spec.changelog}/{partition}/"
    return sorted(name for name in staged["files"] if name.startswith(place))


def write_manifests(
    spec: BootstrapSpec, topic_id: str, ends: Mapping[int, int], observed: Mapping[int, int], staged: Detail
) -> None:
    """`ends` are those of the changelog when it was verified; `observed` is each task's stream time."""
    for partition in range(spec.store.partitions):
        if ends[partition] == 0:
            continue  # nothing to take over, and nothing to replay
        files = (
            SnapshotFile(Path(n).name, staged["files"][n], staged["rows"][n]) for n in files_of(spec, partition, staged)
        )
        manifest = SnapshotManifest(
            application_id=spec.app.application_id,
            store=spec.store.name,
            partition=partition,
            store_number=spec.store.number,
            changelog=spec.changelog,
            changelog_topic_id=topic_id,
            changelog_offset=ends[partition] - 1,
            observed_time=observed.get(partition, -1),
            files=tuple(files),
        )
        write_manifest(spec.snapshot_directory, manifest)


def remove_manifests(spec: BootstrapSpec) -> None:
    """Without one, table files are not looked at."""
    for partition in range(spec.store.partitions):
        (table_directory(spec, partition) / MANIFEST_NAME).unlink(missing_ok=True)
