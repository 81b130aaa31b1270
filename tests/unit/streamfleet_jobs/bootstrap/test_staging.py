import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.audit_lab.bootstrap_specs import spec

from streamfleet_jobs.bootstrap import staging
from streamfleet_jobs.bootstrap.manifests import files_of, remove_manifests, write_manifests
from streamfleet_jobs.bootstrap.recomputation import choose_sample
from streamfleet_jobs.bootstrap.steps import checksums
from streamfleet_jobs.bootstrap.verification import as_records

ROWS = [(b"k%03d" % n, b"v%d" % n, 1000 + n) for n in range(10)]


@pytest.fixture
def computed(tmp_path):
    """Partition 0 has rows, in two files; partition 1 has none."""
    directory = tmp_path / "computed" / "partition=0"
    directory.mkdir(parents=True)
    for name, rows in (("a", ROWS[:6]), ("b", ROWS[6:])):
        columns = dict(zip(["key", "value", "timestamp"], map(list, zip(*rows, strict=True)), strict=True))
        pq.write_table(pa.table(columns), directory / f"{name}.parquet")
    return tmp_path / "computed"


def test_rows_come_back_from_table_files_as_they_were(tmp_path, computed, monkeypatch):
    monkeypatch.setattr(staging, "ROWS_PER_FILE", 4)
    asked = spec(snapshot_directory=tmp_path / "snapshots")
    staged = staging.stage(asked, computed, 0)
    assert [rows for _, rows in staged] == [4, 4, 2]
    assert list(as_records(staging.staged_rows([path for path, _ in staged]))) == ROWS
    assert staging.stage(asked, computed, 1) == [] and list(staging.staged_rows([])) == []


def test_staging_again_leaves_no_file_of_the_former_try(tmp_path, computed, monkeypatch):
    asked = spec(snapshot_directory=tmp_path / "snapshots")
    monkeypatch.setattr(staging, "ROWS_PER_FILE", 1)
    staging.stage(asked, computed, 0)
    monkeypatch.setattr(staging, "ROWS_PER_FILE", 100)
    [(path, rows)] = staging.stage(asked, computed, 0)
    assert rows == 10 and list(path.parent.glob("*.sst")) == [path]


def test_the_newest_row_tells_the_time_of_a_task_behind_a_repartition(computed):
    assert staging.newest_time(computed, 0) == 1009
    assert staging.newest_time(computed, 1) is None


def test_manifests_make_files_count_and_can_be_taken_away(tmp_path, computed):
    asked = spec(snapshot_directory=tmp_path / "snapshots")
    [(path, rows)] = staging.stage(asked, computed, 0)
    name = str(path.relative_to(asked.snapshot_directory))
    staged = {"files": checksums(asked.snapshot_directory, [path]), "rows": {name: rows}}
    assert files_of(asked, 0, staged) == [name] and files_of(asked, 1, staged) == []
    write_manifests(asked, "id", {0: 10, 1: 0}, {0: 1009}, staged)
    [manifest] = asked.snapshot_directory.rglob("manifest.json")
    told = json.loads(manifest.read_text())
    assert manifest.parent == path.parent
    assert (told["changelog_offset"], told["observed_time"], told["files"][0]["rows"]) == (9, 1009, 10)
    remove_manifests(asked)
    assert list(asked.snapshot_directory.rglob("manifest.json")) == []


@pytest.mark.parametrize(("wanted", "chosen"), [(0, []), (4, [0, 5]), (20, list(range(10)))])
def test_a_sample_is_spread_over_the_rows(computed, wanted, chosen):
    found = choose_sample(spec(sample_keys=wanted), computed, {0: 10, 1: 0})
    assert list(found) == [ROWS[n][0] for n in chosen]
