"""Snapshots: the rows of one store and partition as sorted table files, with a manifest that says what they are.

A task that has nothing of a store yet takes a snapshot over instead of replaying the whole changelog, and replays only what came
after it. The manifest names the changelog (by topic id too) and the offset of the last record the rows contain; files carry their
checksum. Whatever does not fit is a reason to replay, never to fail: the changelog has everything.

    <state.snapshot.dir>/<changelog topic>/<partition>/manifest.json
                                                       *.sst            rows: store number (2) | the store's own key -> value

A changelog's name has application id, store and epoch in it: one directory serves all apps, and an epoch's files outlive the next.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from streamfleet.state.rocksdb_engine import write_table_file

FORMAT = 1
MANIFEST_NAME = "manifest.json"
_CHUNK = 1 << 20


class SnapshotFile(msgspec.Struct, frozen=True):
    name: str
    sha256: str
    rows: int


class SnapshotManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What the files beside it are."""

    format: int = FORMAT
    application_id: str
    store: str
    partition: int
    store_number: int
    """The number that the keys in the files begin with."""
    changelog: str
    changelog_topic_id: str
    changelog_offset: int
    """Of the last changelog record that the rows contain."""
    observed_time: int = -1
    """The highest time the store has seen: windowed stores expire by it."""
    files: tuple[SnapshotFile, ...]


class SnapshotMismatchError(Exception):
    """A snapshot that cannot be used, and why. Only a reason to replay; never leaves the state package."""


def snapshot_directory(root: Path, changelog: str, partition: int) -> Path:
    """Where the snapshot of a changelog partition is, if there is one."""
    return root / changelog / str(partition)


def find_snapshot(root: Path, changelog: str, partition: int) -> Path | None:
    """The directory of a snapshot, if there is one."""
    directory = snapshot_directory(root, changelog, partition)
    return directory if (directory / MANIFEST_NAME).exists() else None


def load_snapshot(
    directory: Path, application_id: str, changelog: str, partition: int, topic_ids: Mapping[str, str]
) -> SnapshotManifest:
    """The manifest, if it is for this changelog partition and all files are what it says."""
    try:
        manifest = msgspec.json.decode((directory / MANIFEST_NAME).read_bytes(), type=SnapshotManifest)
    except (OSError, msgspec.MsgspecError) as error:
        raise SnapshotMismatchError(f"its manifest cannot be read: {error}") from error
    wanted = {
        "format": FORMAT,
        "application_id": application_id,
        "changelog": changelog,
        "partition": partition,
        "changelog_topic_id": topic_ids.get(changelog, manifest.changelog_topic_id),
    }
    for field, value in wanted.items():
        if getattr(manifest, field) != value:
            raise SnapshotMismatchError(f"its {field} is {getattr(manifest, field)!r}, not {value!r}")
    for file in manifest.files:
        path = directory / file.name
        if not path.exists() or _sha256(path) != file.sha256:
            raise SnapshotMismatchError(f"file {file.name} is missing or has another checksum")
    return manifest


def write_snapshot(
    root: Path, manifest: SnapshotManifest, rows: Iterable[tuple[bytes, bytes]], *, rows_per_file: int = 1_000_000
) -> SnapshotManifest:
    """Write a snapshot: rows with the store's own keys, sorted. The manifest comes last, so that half a snapshot is none."""
    directory = snapshot_directory(root, manifest.changelog, manifest.partition)
    directory.mkdir(parents=True, exist_ok=True)
    prefix = manifest.store_number.to_bytes(2, "big")
    files: list[SnapshotFile] = []
    batch: list[tuple[bytes, bytes]] = []

    def finish() -> None:
        path = directory / f"{len(files):06d}.sst"
        write_table_file(path, batch)
        files.append(SnapshotFile(path.name, _sha256(path), len(batch)))
        batch.clear()

    for key, value in rows:
        batch.append((prefix + key, value))
        if len(batch) >= rows_per_file:
            finish()
    if batch:
        finish()
    complete = msgspec.structs.replace(manifest, files=tuple(files))
    write_manifest(root, complete)
    return complete


def write_manifest(root: Path, manifest: SnapshotManifest) -> None:
    """Written last and as a whole, beside files that are there: its presence makes them count."""
    directory = snapshot_directory(root, manifest.changelog, manifest.partition)
    directory.mkdir(parents=True, exist_ok=True)
    draft = directory / f".{MANIFEST_NAME}"
    draft.write_bytes(msgspec.json.encode(manifest))
    draft.replace(directory / MANIFEST_NAME)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
