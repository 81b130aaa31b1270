"""AppQueries: everything that can be asked about the state of an app, here and in its group. Owned by KafkaStreams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from streamfleet.assignment.snapshot import Plan
from streamfleet.config import StreamsConfig
from streamfleet.ports import Admin
from streamfleet.query import store_digest
from streamfleet.query.hosts import KeyQueryMetadata, metadata_of
from streamfleet.query.lags import LagInfo, local_store_lags
from streamfleet.query.local_queries import LocalQueries, Threads
from streamfleet.query.request import StateQueryRequest
from streamfleet.query.results import StateQueryResult
from streamfleet.query.store_catalogue import KeyPartitioner, StoreCatalogue
from streamfleet.query.store_digest import ListedRows, StoreDigest
from streamfleet.serdes.api import Serde
from streamfleet.state.committed_stores import CommittedStores
from streamfleet.thread.task_factory import TaskFactory

R = TypeVar("R")


class AppQueries:
    def __init__(
        self,
        factory: TaskFactory,
        config: StreamsConfig,
        threads: Threads,
        admin: Admin,
        global_stores: CommittedStores | None,
    ) -> None:
        self.catalogue = StoreCatalogue(factory)
        self.endpoint = config.application_server
        """Where this process can be asked; None: nobody was told."""
        self._threads = threads
        self._admin = admin
        self._local = LocalQueries(self.catalogue, config, threads, global_stores)

    def run(self, request: StateQueryRequest[R]) -> StateQueryResult[R]:
        """On the partitions that are here."""
        return self._local.run(request)

    def metadata_for_key(
        self,
        store: str,
        key: Any,
        key_serde: Serde[Any] | None = None,
        partitioner: KeyPartitioner | None = None,
    ) -> KeyQueryMetadata:
        return self.metadata(store, self.catalogue.partition_of(store, key, key_serde, partitioner))

    def metadata(self, store: str, partition: int) -> KeyQueryMetadata:
        """Who has a partition, by the newest plan that this process was given."""
        return metadata_of(self._plan(), self.catalogue.place(store).task_key(partition))

    def local_store_lags(self) -> dict[str, dict[int, LagInfo]]:
        return local_store_lags(self.catalogue, self._threads(), self._admin)

    def digest(self, store: str, partition: int) -> StoreDigest:
        """Of a task that is here: what its store held at its last commit. Raises StoreUnavailableError."""
        return store_digest.digest(self.catalogue.place(store), partition, self._threads)

    def rows_of(self, store: str, partition: int, buckets: Sequence[int]) -> ListedRows:
        """The rows behind some buckets of such a digest, as of the last commit."""
        return store_digest.rows_of(self.catalogue.place(store), partition, buckets, self._threads)

    def _plan(self) -> Plan | None:
        """Threads hear of a new generation one after the other."""
        assigned = [thread.assigned for thread in self._threads() if thread.assigned is not None]
        return max(assigned, key=lambda event: event.generation_id).plan if assigned else None
