"""What a bootstrap is asked for: JSON, made by the platform from an app's lock and declaration, or by hand. Read by job.py.

`source` and `value` are what a person declares; everything else is known to the platform. The spec is kept with the run, and its
digest is in every step's record: a run that goes on with another spec is refused. Only the token may change between attempts.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from streamfleet_jobs.errors import SpecError
from streamfleet_jobs.secrets import SecretPlace

KEY_SERDES = ("string", "bytes", "short", "integer", "long", "uuid")
SCALAR_SERDES = ("string", "bytes", "boolean", "short", "integer", "long", "double")
OBJECT_SERDES = ("json", "msgpack")

Partition = Annotated[int, Field(ge=0)]
Offset = Annotated[int, Field(ge=0)]
Word = Annotated[str, Field(min_length=1, max_length=249)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Code(_Part):
    """What the app's workers run, for a look at whether it does what is declared."""

    directory: Path
    """Of the revision that will run on the state."""
    entrypoint: Word
    settings: dict[str, Any] = {}
    """The app's own, without secrets."""


class App(_Part):
    """Whose state it is."""

    application_id: Word
    """Also the name of its group."""
    bootstrap_servers: Word
    client_settings: dict[str, Any] = {}
    """security.*, sasl.* and ssl.* in librdkafka's names. `${NAME}` takes a secret."""
    secrets: dict[str, SecretPlace] = {}
    """Where these are; see secrets.py."""
    replication_factor: Annotated[int, Field(ge=-1)] = -1
    code: Code | None = None


class Store(_Part):
    """The store to fill, in the words of the topology's lock."""

    name: Word
    kind: str
    """As in the lock; so far only `timestamped_key_value`, which is what aggregations and tables have."""
    engine: str = "rocksdb"
    key_serde: str
    """The id of the serde in the lock."""
    value_serde: str
    partitions: Annotated[int, Field(ge=1)]
    """Tasks of its sub-topology."""
    number: Annotated[int, Field(ge=0, lt=0xFFFF)] = 0
    """Its place among the sub-topology's stores on RocksDB: table files with the right one are taken over without rewriting."""
    changelog_configs: dict[str, str] = {}
    """Settings that its changelog topic is created with, as in the plan."""


class Input(_Part):
    """The topic that goes on where the table ends."""

    topic: Word
    partitions: Annotated[int, Field(ge=1)]
    through: Word | None = None
    """The repartition topic between it and the store, by its real name, if there is one. What is in it is skipped."""
    stores_fed: tuple[str, ...] = ()
    """All stores of the app that records of the topic lead to. Another one than this would miss them, or get them twice."""


class Source(_Part):
    """The table, and which of its columns are what."""

    parquet: Word
    """A file, or a directory of files."""
    key: Word
    """The record's key (or, with a repartition, what it is keyed by), as the key serde takes it."""
    partition: Word
    """The Kafka partition and ..."""
    offset: Word
    """... the offset that a row was landed from."""
    timestamp: Word
    """The record's: milliseconds as an integer, or a timestamp."""
    first_offsets: dict[Partition, Offset] = {}
    """Where the table begins, if not with offset 0."""


class Function(_Part):
    """An aggregate that is exact whatever the order of the additions; `last` goes by (partition, offset)."""

    function: Literal["count", "sum", "min", "max", "last"]
    column: Word | None = None

    @model_validator(mode="after")
    def _has_column(self) -> Self:
        if (self.function == "count") == (self.column is not None):
            raise ValueError("count takes no column, all others take one")
        return self


class Value(_Part):
    """What the store holds for a key: one function's result, or an object of several."""

    of: Function | None = None
    fields: Annotated[dict[Word, Function], Field(max_length=50)] = {}
    """In the order in which the app writes them: bytes are compared, not meanings."""
    timestamp: Literal["max", "last"] = "max"
    """`max` as aggregations keep it; `last` as a table that holds the last record of a key."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if (self.of is None) == (not self.fields):
            raise ValueError("a value is `of` one function or has `fields`")
        return self

    @property
    def functions(self) -> tuple[Function, ...]:
        return (self.of,) if self.of is not None else tuple(self.fields.values())


class BootstrapSpec(_Part):
    """One run. See docs/bootstraps.md for a whole one."""

    format: Literal[1] = 1
    run_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$")]
    token: Annotated[int, Field(ge=1)]
    """The fencing token of this attempt: a higher one fences all attempts before it."""
    epoch: Annotated[int, Field(ge=1)]
    """The store epoch to write. A new run takes a new one; a run that goes on keeps its own."""
    published_epoch: Annotated[int, Field(ge=0)] = 0
    """The epoch that the app has now."""
    app: App
    store: Store
    input: Input
    source: Source
    value: Value
    directory: Path
    """Where the run keeps what it has computed. Spark's workers must see it too."""
    snapshot_directory: Path
    """What the app gets as `state.snapshot.dir` once this epoch is published."""
    sample_keys: Annotated[int, Field(ge=0, le=100_000)] = 200
    """How many keys are computed again by the engine's own code."""

    @model_validator(mode="after")
    def _supported(self) -> Self:
        _check_store(self.store)
        _check_value(self.store, self.value)
        if self.epoch <= self.published_epoch:
            raise ValueError(f"epoch {self.epoch} is not newer than the app's, {self.published_epoch}")
        if self.input.through is None and self.input.partitions != self.store.partitions:
            raise ValueError("without a repartition topic, input and store have the same number of partitions")
        others = sorted(set(self.input.stores_fed) - {self.store.name})
        if others:
            raise ValueError(f"the input also feeds {', '.join(others)}, which would miss records or get them twice")
        return self

    @property
    def changelog(self) -> str:
        """Named as the engine names it."""
        return f"{self.app.application_id}-{self.store.name}-e{self.epoch}-changelog"

    @property
    def digest(self) -> str:
        """Of all that decides the outcome: everything but the token."""
        return hashlib.sha256(self.model_dump_json(exclude={"token"}).encode()).hexdigest()


def _check_store(store: Store) -> None:
    if store.kind != "timestamped_key_value":
        raise ValueError(f"stores of kind {store.kind} cannot be bootstrapped, only timestamped_key_value")
    if store.engine != "rocksdb":
        raise ValueError(f"store {store.name} is kept in {store.engine}: there is nothing to put table files into")
    if store.key_serde not in KEY_SERDES:
        raise ValueError(f"keys in serde {store.key_serde!r} cannot be written, only {', '.join(KEY_SERDES)}")


def _check_value(store: Store, value: Value) -> None:
    known = SCALAR_SERDES if value.of is not None else OBJECT_SERDES
    if store.value_serde not in known:
        what = "one function's result" if value.of is not None else "an object of fields"
        raise ValueError(f"{what} cannot be written in serde {store.value_serde!r}, only {', '.join(known)}")


def read_spec(path: Path) -> BootstrapSpec:
    try:
        return BootstrapSpec.model_validate_json(path.read_bytes())
    except OSError as error:
        raise SpecError(f"the spec cannot be read: {error.strerror}", hint="name a file with --spec") from error
    except ValidationError as error:
        told = "; ".join(f"{'.'.join(map(str, one['loc'])) or 'spec'}: {one['msg']}" for one in error.errors())
        raise SpecError(f"the spec is wrong: {told}", hint="see docs/bootstraps.md") from error
