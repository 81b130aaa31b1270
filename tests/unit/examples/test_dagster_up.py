"""Dagster's instance, before its processes begin."""

import shutil
import sqlite3

import pytest

from examples.demo.dagster_up import ROOT, Dagster


@pytest.fixture
def dagster(tmp_path):
    shutil.copyfile(ROOT / "infra" / "dagster" / "dagster.yaml", tmp_path / "dagster.yaml")
    return Dagster(tmp_path)


def test_all_databases_are_made_before_processes_that_would_each_make_them(dagster):
    for _ in range(2):
        dagster.create_tables()
    for name in ("history/runs.db", "history/runs/index.db", "schedules/schedules.db"):
        with sqlite3.connect(f"file:{dagster.directory / name}?mode=ro", uri=True) as database:
            assert database.execute("select count(*) from alembic_version").fetchone() == (1,)


def test_ports_are_chosen_once_and_remembered(dagster):
    assert dagster.ports == Dagster(dagster.directory).ports
    assert len(set(dagster.ports.values())) == 3


def test_one_that_never_ran_is_stopped_without_a_word(dagster):
    assert not dagster.stop()
