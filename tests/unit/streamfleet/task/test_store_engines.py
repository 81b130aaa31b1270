from __future__ import annotations

import pytest

from streamfleet.task.store_engines import StoreEngines


@pytest.fixture
def engines(tmp_path):
    engines = StoreEngines(tmp_path / "0_0")
    yield engines
    engines.close()


@pytest.mark.parametrize("kind", ["in_memory", "rocksdb"])
def test_all_stores_of_a_kind_share_one_engine(engines, kind):
    assert engines.engine(kind) is engines.engine(kind)


def test_database_is_made_only_when_a_store_needs_it(engines, tmp_path):
    engines.engine("in_memory")
    assert not (tmp_path / "0_0").exists()
    engines.engine("rocksdb")
    assert (tmp_path / "0_0").is_dir()


def test_database_can_be_opened_again_after_close(engines):
    engines.engine("rocksdb").write([(b"k", b"v")], [], [])
    engines.engine("rocksdb").flush()
    engines.close()
    assert engines.engine("rocksdb").get(b"k") == b"v"
