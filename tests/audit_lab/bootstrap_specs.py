"""A whole spec of a bootstrap, and changes of it."""

from typing import Any

from streamfleet_jobs.bootstrap.spec import BootstrapSpec

WHOLE: dict[str, Any] = {
    "run_id": "r",
    "token": 1,
    "epoch": 1,
    "app": {"application_id": "shop", "bootstrap_servers": "127.0.0.1:9092"},
    "store": {
        "name": "s",
        "kind": "timestamped_key_value",
        "key_serde": "string",
        "value_serde": "long",
        "partitions": 2,
    },
    "input": {"topic": "orders", "partitions": 2, "stores_fed": ["s"]},
    "source": {"parquet": "lake", "key": "k", "partition": "p", "offset": "o", "timestamp": "t"},
    "value": {"of": {"function": "count"}},
    "directory": "run",
    "snapshot_directory": "snapshots",
}


def spec(**changes):
    return BootstrapSpec.model_validate(WHOLE | changes)
