"""What the declaration says is held against what the app's own code does to its own records, in a child process."""

import re
import textwrap

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.audit_lab.bootstrap_specs import WHOLE, spec

from streamfleet_jobs.bootstrap import own_topology
from streamfleet_jobs.bootstrap.input_records import InputRecord
from streamfleet_jobs.bootstrap.local_engine import LocalEngine
from streamfleet_jobs.bootstrap.own_topology import Looked, check_by_topology
from streamfleet_jobs.bootstrap.recomputation import check_sample, choose_sample
from streamfleet_jobs.errors import RefusedError

ROWS = 60
STARTS = {0: 0, 1: 0}

APP = """
import streamfleet as sf

def topology():
    builder, text = sf.StreamsBuilder(), sf.serdes.string()
    stream = builder.stream("orders", key_serde=text, value_serde=sf.serdes.json())
    counted = sf.Materialized("s", key_serde=text, value_serde=sf.serdes.long())
    {body}
    return builder.build()
"""
COUNTED = "group_by_key().count(materialized=counted)"


REGROUPED = "group_by_key(key_serde=text, value_serde=sf.serdes.json()).count(materialized=counted)"
GLOBAL = "builder.global_table('rates', key_serde=text, value_serde=text)"


class Topic:
    """The records that the table was landed from; what it was asked for."""

    def __init__(self):
        self.asked = []

    def __call__(self, places):
        self.asked += places
        return [self._record(offset * 2 + partition) for partition, offset in places]

    def _record(self, n):
        value = b'{"cents": %d}' % (n % 11)
        return InputRecord(f"k{n % 3}".encode(), value, 1_700_000_000_000 + n, (("trace", None),))


@pytest.fixture
def declared(tmp_path):
    """A bootstrap that counts the rows of three keys, and an app whose stream goes on as `body` says."""

    def make(body=f"stream.{COUNTED}", text=APP, **settings):
        table = pa.table(
            {
                "k": [f"k{n % 3}" for n in range(ROWS)],
                "p": [n % 2 for n in range(ROWS)],
                "o": [n // 2 for n in range(ROWS)],
                "t": [1_700_000_000_000 + n for n in range(ROWS)],
            }
        )
        pq.write_table(table, tmp_path / "table.parquet")
        code = tmp_path / "code"
        code.mkdir()
        (code / "shop.py").write_text(textwrap.dedent(text).replace("{body}", body))
        app = {"code": {"directory": str(code), "entrypoint": "shop:topology", "settings": settings}}
        source = WHOLE["source"] | {"parquet": str(tmp_path / "table.parquet")}
        asked = spec(app=WHOLE["app"] | app, source=source)
        LocalEngine(asked).compute(tmp_path / "computed")
        return asked, choose_sample(asked, tmp_path / "computed", {0: 3, 1: 3})

    return make


def test_an_app_that_does_what_is_declared_agrees_byte_for_byte(declared):
    asked, sample = declared()
    assert check_by_topology(asked, sample, STARTS, Topic()) == Looked(3, ROWS)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (f"stream.filter(lambda _, order: order['cents'] > 3).{COUNTED}", "for a key that was computed as"),
        (f"stream.filter(lambda key, _: key != 'k1').{COUNTED}", "computes None for a key"),
        (f"stream.flat_map(lambda key, value: [(key, value), (key + '!', value)]).{REGROUPED}", "makes 3 more keys"),
    ],
    ids=["filter", "whole-key", "another-key"],
)
def test_an_app_that_does_something_else_is_refused_where_the_declaration_alone_is_right(declared, body, why):
    asked, sample = declared(body)
    assert check_sample(asked, sample) == ROWS
    with pytest.raises(RefusedError, match=why) as told:
        check_by_topology(asked, sample, STARTS, Topic())
    assert "state.bootstraps does not say all that the app does" in str(told.value)


def test_keys_whose_records_the_topic_has_deleted_are_left_out_and_told(declared):
    asked, sample = declared()
    topic = Topic()
    # offset 0 of partition 1 is the first record of k1
    assert check_by_topology(asked, sample, {0: 0, 1: 1}, topic) == Looked(
        2, 40, "the topic no longer has all records of 1 keys"
    )
    assert len(topic.asked) == 40
    nothing = check_by_topology(asked, sample, {0: 30, 1: 30}, topic)
    assert nothing == Looked(0, 0, "the topic no longer has all records of 3 keys")


def test_no_more_records_are_read_than_can_be_one_by_one(declared, monkeypatch):
    monkeypatch.setattr(own_topology, "MAX_RECORDS", 45)
    asked, sample = declared()
    assert check_by_topology(asked, sample, STARTS, Topic()) == Looked(2, 40, "1 keys have too many records")


def test_settings_of_the_app_are_those_of_its_workers(declared):
    """A record that cannot be read is left out, as the definition says."""
    broken = f"stream.map_values(lambda order: 1 // order['cents'] and order).{COUNTED}"
    asked, sample = declared(broken, **{"processing.exception.handler": "continue"})
    with pytest.raises(RefusedError, match="for a key that was computed as"):
        check_by_topology(asked, sample, STARTS, Topic())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("raise LookupError('no such table')", "LookupError: no such table"),
        ("import os\nos.kill(os.getpid(), 9)", "its process ended with exit code -9"),
        (
            "import socket\nsocket.create_connection(('127.0.0.1', 9), timeout=5)",
            r"(OSError|ConnectionRefusedError): .*",
        ),
        ("import os\nassert not {'HOME', 'LC_ALL', 'TMPDIR'} ^ set(os.environ), 'an environment'", "has no"),
        (APP.replace("{body}", f"{GLOBAL}; stream.{COUNTED}"), "reads a global table"),
    ],
    ids=["raises", "dies", "no-network", "no-environment", "global-table"],
)
def test_a_topology_that_gives_no_answer_is_no_proof_and_says_why(declared, text, why):
    asked, sample = declared(text=text)
    looked = check_by_topology(asked, sample, STARTS, Topic())
    assert (looked.keys, looked.records) == (0, 0)
    assert re.search(why, looked.told), looked.told


def test_code_that_is_elsewhere_or_not_named_is_told(declared, tmp_path):
    asked, sample = declared()
    (tmp_path / "code" / "shop.py").unlink()
    (tmp_path / "code").rmdir()
    assert "the app's code is not on this machine" in check_by_topology(asked, sample, STARTS, Topic()).told
    by_hand = asked.model_copy(update={"app": asked.app.model_copy(update={"code": None})})
    assert check_by_topology(by_hand, sample, STARTS, Topic()).told == "the spec names no code"
