"""Digests of stores, asked of the workers that run them. See the engine's /digest pages for what an answer means.

Every door is asked for every partition until the one with the active task answers; a partition that none has is unknown.
"""

from __future__ import annotations

import base64
import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from urllib.parse import quote, urlencode

import msgspec

from streamfleet_jobs.columns.row_digest import BucketDigest, Digest
from streamfleet_jobs.errors import UnavailableError

_TIMEOUT_SECONDS = 600.0
_BUSY_TRIES = 60
_BUSY_SECONDS = 1.0


class DoorDigest(msgspec.Struct, frozen=True):
    """What a store held at a commit whose rows contain the changelog up to `offset` (None: nothing)."""

    offset: int | None
    timestamps: bool
    oldest_ms: int | None
    active: bool
    buckets: dict[int, tuple[int, str, str]] = {}
    rows: list[tuple[str, str]] = []

    @property
    def digest(self) -> Digest:
        return {
            bucket: BucketDigest(n, int(xor, 16), int(total, 16)) for bucket, (n, xor, total) in self.buckets.items()
        }

    @property
    def hashed_rows(self) -> dict[bytes, int]:
        """By key; hashes are signed, as columns hold them."""
        return {
            base64.b64decode(key): int.from_bytes(bytes.fromhex(hashed), "big", signed=True)
            for key, hashed in self.rows
        }


def ask(doors: Sequence[str], store: str, partition: int, buckets: Sequence[int] = ()) -> DoorDigest:
    """Raises UnavailableError if no worker has the task as its active one."""
    parameters = {"partition": str(partition)} | ({"buckets": ",".join(map(str, buckets))} if buckets else {})
    path = f"/digest/{quote(store, safe='')}?{urlencode(parameters)}"
    told: list[str] = []
    for door in doors:
        try:
            found = msgspec.json.decode(_get(door.rstrip("/") + path), type=DoorDigest, strict=False)
        except (OSError, ValueError, http.client.HTTPException) as error:
            told.append(f"{door}: {error}")
            continue
        if found.active:
            return found
        told.append(f"{door}: not the owner")
    raise UnavailableError(
        f"no worker gives a digest of store {store} partition {partition} ({'; '.join(told) or 'no doors are known'})",
        hint="audit while the app runs, and name the doors of all its workers",
    )


def _get(url: str) -> bytes:
    for _ in range(_BUSY_TRIES):
        request = urllib.request.Request(url)  # noqa: S310 -- an address from the spec
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310 -- the same
                body: bytes = answer.read()
                return body
        except urllib.error.HTTPError as error:
            with error:
                if error.code != 429:
                    raise OSError(_reason(error)) from error
            time.sleep(_BUSY_SECONDS)
    raise OSError("busy with other digests")


def _reason(error: urllib.error.HTTPError) -> str:
    try:
        reason: str = msgspec.json.decode(error.read())["error"]
    except (msgspec.MsgspecError, KeyError, TypeError):
        return f"status {error.code}"
    return reason
