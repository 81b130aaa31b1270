"""AuditSpec: what an audit has to look at, as JSON. Written by who knows the app (the platform, a person), stored with the run.

Unknown fields are refused. Settings of clients may hold secrets, or refer to them: they are used, and never stored or shown.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from streamfleet_jobs.errors import SpecError
from streamfleet_jobs.secrets import SecretPlace, resolved

Mode = Literal["quick", "full", "deep"]
KeyFormat = Literal["plain", "window", "session"]
Check = Literal["compaction", "tombstones", "placement", "equivalence", "orphans"]
CHECKS: tuple[Check, ...] = ("compaction", "tombstones", "placement", "equivalence", "orphans")

SUFFIXES: dict[KeyFormat, int] = {"plain": 0, "window": 12, "session": 16}
"""What follows the record's own key in a changelog key: start (8) and sequence (4), or end (8) and start (8)."""


ASSUMED_RESTORE_RATE = 150_000.0
"""Records per second that one task restores on an ordinary machine, where nothing was measured."""


class StoreSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A store and the topic that it is restored from."""

    name: str
    changelog: str
    partitions: int
    kind: str = "key_value"
    """As in the topology's lock."""
    key_format: KeyFormat = "plain"
    timestamps: bool = False
    """Whether its rows keep the timestamps of the changelog's records."""
    sub_topology: int = 0
    retention_ms: int | None = None
    configs: dict[str, str] = {}
    """What the topic's settings should be."""
    partitioner: Literal["murmur2", "crc32", "fnv1a"] = "murmur2"
    checks_placement: bool = True
    """False for stores whose keys are not those their records were partitioned by."""


class TopicSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A repartition topic: only its settings are looked at."""

    name: str
    partitions: int
    configs: dict[str, str] = {}


class Thresholds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When a number becomes a finding."""

    redundancy: float = 0.5
    """Share of superseded bytes in closed segments."""
    min_bytes: int = 1 << 20
    """Of closed segments (redundancy) or of a partition (skew): below that nothing is said."""
    overdue_tombstones: int = 1000
    live_keys: float = 0.1
    """Keys that are live over all, ..."""
    live_keys_of: int = 10_000
    """... if there are as many."""
    skew: float = 4.0
    """Bytes of the largest partition over the median."""
    hot_key_share: float = 0.5
    """Records of one key over all of its partition, ..."""
    hot_key_records: int = 10_000
    """... if there are as many."""


class AuditSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One audit of one app."""

    run_id: str
    app: str
    application_id: str
    bootstrap_servers: str
    output: str
    """Directory of this run. Over Spark Connect the server must see it, too."""
    stores: tuple[StoreSpec, ...]
    generation: int = 1
    mode: Mode = "full"
    """quick: batch headers and settings only. full: every key. deep: stores against changelogs as well."""
    checks: tuple[Check, ...] = CHECKS
    """What is judged, as far as the mode reads it. How topics are set up always is."""
    former_topics: tuple[str, ...] = ()
    """Internal topics that are recorded as the app's, and that it no longer uses."""
    repartition_topics: tuple[TopicSpec, ...] = ()
    guarantee: Literal["at_least_once", "exactly_once_v2"] = "exactly_once_v2"
    doors: tuple[str, ...] = ()
    """Addresses of workers, http://host:port: they give the digests of their stores."""
    restore_records_per_second: float | None = None
    """As this fleet was measured; None: estimates are made with ASSUMED_RESTORE_RATE, and say so."""
    client_config: dict[str, str] = {}
    """Settings of librdkafka: security. `${NAME}` takes a secret."""
    java_client_config: dict[str, str] = {}
    """The same for Spark's connector, in Java's words; empty: made of the above."""
    secrets: dict[str, SecretPlace] = {}
    """Where the secrets are that settings take; see secrets.py."""
    clear_keys: bool = False
    """Name keys as they are; by default only their hash is told. Recorded in the result."""
    keep_landed: bool = False
    """Keep the slim copy of the topics, which holds all keys."""
    thresholds: Thresholds = Thresholds()

    @property
    def directory(self) -> Path:
        return Path(self.output)

    @property
    def compares_stores(self) -> bool:
        return self.mode == "deep" and "equivalence" in self.checks

    def with_secrets(self) -> AuditSpec:
        """Settings of clients with the values of what they refer to."""
        return msgspec.structs.replace(
            self,
            client_config=resolved(self.client_config, self.secrets),
            java_client_config=resolved(self.java_client_config, self.secrets),
        )

    def storable(self) -> dict[str, object]:
        """Without settings of clients."""
        content: dict[str, object] = msgspec.to_builtins(self)
        for name in ("client_config", "java_client_config"):
            if content[name]:
                content[name] = "(not stored)"
        return content


def load_spec(path: Path) -> AuditSpec:
    try:
        spec = msgspec.json.decode(path.read_bytes(), type=AuditSpec)
    except (OSError, msgspec.MsgspecError) as error:
        raise SpecError(f"the spec {path} cannot be read: {error}", hint="see docs/audits.md for its fields") from error
    names = [store.name for store in spec.stores]
    if len(set(names)) < len(names):
        raise SpecError("the spec names a store twice", hint="write every store once")
    if any(store.partitions < 1 for store in spec.stores):
        raise SpecError("a store has no partitions", hint="partitions is the number of its tasks")
    return spec
