"""Questions over HTTP on real tasks: statuses, bodies, and who is asked when the answer is not here."""

import json
import threading
from types import SimpleNamespace
from urllib.parse import quote

import pytest

import streamfleet as sf
from streamfleet.assignment.snapshot import Plan
from streamfleet.changelog.progress import UpdateKind
from streamfleet.errors import StoreUnavailableError
from streamfleet.ids import TopicPartition
from streamfleet.metrics import Metrics
from streamfleet.query.store_catalogue import StorePlace
from streamfleet.records import RawRecord
from streamfleet.task.global_task import GlobalTask
from streamfleet.task.store_engines import StoreEngines
from streamfleet.testing.manual_clock import ManualClock
from streamfleet.worker import query_pages
from streamfleet.worker.http_messages import Request, json_answer
from streamfleet.worker.http_routes import Routes
from streamfleet.worker.http_server import Address, HttpServer
from streamfleet.worker.peers import APPLICATION_HEADER, HOPS_HEADER, Peers
from streamfleet.worker.query_pages import QueryPages

MINUTE = 60_000


class Worker:
    """One process of the app: its tasks, and its pages; `serve` opens a door."""

    def __init__(self, app, name="app"):
        self.app = app
        self.peers = Peers(name)
        self.pages = QueryPages(name, lambda: app.queries, self.peers, ManualClock(1000))
        self.server = None
        self.asked = []

    def serve(self):
        routes = Routes()
        routes.get("/query/", self._answer)
        self.server = HttpServer(Address("127.0.0.1", 0), routes.answer)
        host, port = self.server.open()
        self.app.queries.endpoint = f"{host}:{port}"
        return self.app.queries.endpoint

    def _answer(self, request):
        self.asked.append(request)
        return self.pages.answer(request)

    def ask(self, target, **headers):
        path, _, query = target.partition("?")
        return self.pages.answer(Request("GET", path, query, headers))

    def json(self, target, **headers):
        answer = self.ask(target, **headers)
        return answer.status, json.loads(answer.body)

    def close(self):
        if self.server is not None:
            self.server.close()
        self.peers.close()
        self.app.close_all()


@pytest.fixture
def new_worker(new_app):
    workers = []

    def make(*partitions, name="app", copies=(), **settings):
        """Copies have nothing left to read."""
        worker = Worker(new_app(**settings), name)
        for partition in partitions:
            worker.app.open(worker.app.place("counts").task(partition))
        for partition in copies:
            task_id = worker.app.place("counts").task(partition)
            worker.app.open_standby(task_id)
            worker.app.tell_progress(task_id, 0)
        workers.append(worker)
        return worker

    yield make
    for worker in workers:
        worker.close()


@pytest.fixture
def worker(new_worker):
    return new_worker(0, 1, 2)


def say(worker, key, at=0):
    partition = worker.app.queries.catalogue.partition_of("counts", key)
    worker.app.work("counts", partition, "words", key, "x", at)
    return partition


def own(workers):
    """Tell all workers which of them has which partition, and which copies."""

    def keys(tasks_of):
        return {
            endpoint: tuple(w.app.place("counts").task_key(task.partition) for task in tasks_of(w.app))
            for endpoint, w in workers.items()
        }

    plan = Plan(
        active=(),
        standby=(),
        fence=(),
        follow_up=False,
        owners={},
        endpoints=keys(lambda app: app.tasks),
        standby_endpoints=keys(lambda app: app.standbys),
        shutdown=False,
    )
    for worker in workers.values():
        worker.app.thread.assigned = SimpleNamespace(generation_id=1, plan=plan)


def test_a_key_is_answered_with_its_value_and_how_fresh_it_is(worker):
    partition = say(worker, "alice", 7)
    assert worker.json("/query/counts/key/alice") == (
        200,
        {
            "store": "counts",
            "partition": partition,
            "active": True,
            "position": {"words": {str(partition): 0}},
            "key": "alice",
            "value": 1,
            "timestamp": 7,
        },
    )


def test_a_key_that_is_not_there_is_404_with_the_position_that_knows(worker):
    partition = say(worker, "alice")
    status, body = worker.json("/query/counts/key/alice?isolation=read_committed")
    assert (status, body["code"], body["partition"]) == (404, "key_not_found", partition)


def test_a_key_that_another_partitioner_placed_is_found_where_the_caller_says(worker):
    usual = worker.app.queries.catalogue.partition_of("counts", "alice")
    other = (usual + 1) % 3
    worker.app.work("counts", other, "words", "alice", "x", 0)
    assert worker.json("/query/counts/key/alice")[0] == 404
    assert worker.json(f"/query/counts/key/alice?partitions={other}")[1]["value"] == 1
    assert worker.json("/query/counts/key/alice?partitions=0,1")[0] == 400


def test_a_global_store_is_answered_by_every_worker(worker, tmp_path):
    text = {"key_serde": sf.serdes.string(), "value_serde": sf.serdes.string()}
    builder = sf.StreamsBuilder()
    builder.global_table("rates", store="rates", **text)
    topology = builder.build()
    engines = StoreEngines(tmp_path / "global")
    entries = tuple(topology.global_stores.values())
    task = GlobalTask(entries, worker.app.config, clock=ManualClock(0), engines=engines, metrics=Metrics())
    task.initialize()
    task.update(RawRecord("rates", 0, 4, 7, b"eur", b"1.5"))
    task.flush()
    place = StorePlace("rates", topology.global_stores["rates"].builder, "app-rates-changelog", None, None, 0)
    queries = worker.app.queries
    queries.catalogue._places["rates"] = place
    queries._local._global_stores = task.committed_stores
    status, body = worker.json("/query/rates/key/eur")
    assert (status, body["value"], body["timestamp"], body["partition"]) == (200, "1.5", 7, None)
    assert (body["active"], body["position"]) == (True, {"rates": {"0": 4}})
    assert worker.json("/query/rates/range")[1]["rows"] == [{"key": "eur", "value": "1.5", "timestamp": 7}]
    assert worker.json("/query/rates/key/usd")[0] == 404
    assert worker.json('/query/rates/key/eur?position={"rates":{"0":5}}')[1]["code"] == "not_up_to_bound"
    assert worker.json("/query/rates/owner/eur")[1] == {"store": "rates", "global": True}
    task.close()
    assert worker.json("/query/rates/key/eur")[0] == 503


def test_keys_are_percent_encoded(worker):
    say(worker, "a/b ü%")
    assert worker.json(f"/query/counts/key/{quote('a/b ü%', safe='')}")[1]["value"] == 1


def test_ranges_windows_and_sessions(worker):
    for key in ("a", "b", "c"):
        say(worker, key, 5)
    status, body = worker.json("/query/counts/range?from=a&to=b")
    assert status == 200
    rows = [row for part in body["partitions"].values() for row in part["rows"]]
    assert sorted(row["key"] for row in rows) == ["a", "b"]
    assert body["complete"]
    assert set(body["partitions"]) == {"0", "1", "2"}
    window = {"start": 0, "end": MINUTE}
    rows = [{"key": "a", "window": window, "value": 1, "timestamp": 5}]
    assert worker.json("/query/windows/window/a?to=59999")[1]["rows"] == rows
    assert worker.json("/query/windows/window/a?from=1")[1]["rows"] == []
    everything = worker.json("/query/windows/windows")[1]["partitions"]
    assert sorted(row["key"] for part in everything.values() for row in part["rows"]) == ["a", "b", "c"]
    session = worker.json("/query/sessions/session/a")[1]["rows"]
    assert session == [{"key": "a", "window": {"start": 5, "end": 5}, "value": 1}]


def test_a_descending_range_begins_with_the_last_key(worker):
    for number in range(9):
        say(worker, f"k{number}")
    up, down = (worker.json(f"/query/counts/range?descending={text}")[1]["partitions"] for text in ("false", "true"))
    assert {p: part["rows"] for p, part in down.items()} == {p: part["rows"][::-1] for p, part in up.items()}
    assert any(len(part["rows"]) > 1 for part in up.values()), "so that the order can be seen"
    last = worker.json("/query/counts/range?descending=true&limit=1&to=k7")[1]["partitions"].values()
    assert max(row["key"] for part in last for row in part["rows"]) == "k7"


def priced():
    text = {"key_serde": sf.serdes.string(), "value_serde": sf.serdes.string()}
    builder = sf.StreamsBuilder()
    builder.table("prices", materialized=sf.Materialized(sf.Stores.versioned_key_value("counts", MINUTE)), **text)
    return builder.build()


def price(worker, key, value, timestamp):
    partition = worker.app.queries.catalogue.partition_of("counts", key)
    worker.app.work("counts", partition, "prices", key, value, timestamp)


VERSIONED = {"topology": priced(), "inputs": {"prices": 3}}


class TestVersions:
    @pytest.fixture
    def worker(self, new_worker):
        worker = new_worker(0, 1, 2, **VERSIONED)
        for value, timestamp in (("1", 10), ("2", 20), ("3", 30)):
            price(worker, "a", value, timestamp)
        return worker

    def test_the_latest_version_and_the_one_of_a_time(self, worker):
        status, body = worker.json("/query/counts/version/a")
        assert (status, body["key"], body["value"], body["valid_from"], body["valid_to"]) == (200, "a", "3", 30, None)
        assert body["active"] and body["position"] == {"prices": {str(body["partition"]): 2}}
        then = worker.json("/query/counts/version/a?as_of=29")[1]
        assert (then["value"], then["valid_from"], then["valid_to"]) == ("2", 20, 30)
        for target in ("/query/counts/version/a?as_of=9", "/query/counts/version/b"):
            status, body = worker.json(target)
            assert (status, body["code"]) == (404, "key_not_found")

    def test_the_versions_of_some_time_in_both_orders(self, worker):
        status, body = worker.json("/query/counts/versions/a?from=20&to=30")
        rows = [
            {"key": "a", "value": "2", "valid_from": 20, "valid_to": 30},
            {"key": "a", "value": "3", "valid_from": 30, "valid_to": None},
        ]
        assert (status, body["key"], body["rows"], body["complete"]) == (200, "a", rows, True)
        assert worker.json("/query/counts/versions/a?from=20&descending=true")[1]["rows"] == rows[::-1]
        first = worker.json("/query/counts/versions/a?limit=1")[1]
        assert ([row["value"] for row in first["rows"]], first["complete"]) == (["1"], False)
        assert worker.json("/query/counts/versions/b")[1]["rows"] == []

    def test_other_questions_are_refused_and_so_are_these_of_other_stores(self, worker, new_worker):
        for target in ("key/a", "range", "window/a", "session/a"):
            assert worker.json(f"/query/counts/{target}")[1]["code"] == "unknown_query_type"
        counting = new_worker(0, 1, 2)
        for target in ("version/a", "versions/a"):
            assert counting.json(f"/query/counts/{target}")[1]["code"] == "unknown_query_type"
        assert worker.json("/query/counts/version/a?as_of=x")[1]["code"] == "bad_request"
        assert worker.json("/query/counts/version/a?from=1")[1]["code"] == "bad_request"

    def test_the_owner_is_asked(self, worker, new_worker):
        other = new_worker(**VERSIONED)
        own({worker.serve(): worker, other.serve(): other})
        assert other.json("/query/counts/version/a?as_of=15")[1]["value"] == "1"
        assert [row["value"] for row in other.json("/query/counts/versions/a?to=25")[1]["rows"]] == ["1", "2"]
        assert other.json("/query/counts/version/a?forward=false")[0] == 421


def test_who_asks_for_it_is_told_how_it_was_answered(worker):
    say(worker, "a")
    assert "execution_info" not in worker.json("/query/counts/key/a")[1]
    read, ran = worker.json("/query/counts/key/a?execution_info=true")[1]["execution_info"]
    assert read.startswith("TimestampedKeyQuery of store counts was read: ")
    assert " runs here, read_uncommitted: " in ran
    parts = worker.json("/query/counts/range?execution_info=true")[1]["partitions"].values()
    assert [len(part["execution_info"]) for part in parts] == [2, 2, 2]


def test_what_a_limit_cuts_off_is_not_called_complete(worker):
    for number in range(20):
        say(worker, f"k{number}")
    status, body = worker.json("/query/counts/range?limit=1")
    assert (status, body["complete"]) == (200, False)
    assert all(len(part["rows"]) == 1 for part in body["partitions"].values())


@pytest.mark.parametrize(
    ("target", "status", "code"),
    [
        ("/query/nowhere/key/a", 404, "store_does_not_exist"),
        ("/query/counts", 404, "no_such_query"),
        ("/query/counts/key", 404, "no_such_query"),
        ("/query/counts/key/a/b", 404, "no_such_query"),
        ("/query/counts/keys/a", 404, "no_such_query"),
        ("/query/counts/window/a", 409, "unknown_query_type"),
        ("/query/windows/key/a", 409, "unknown_query_type"),
        ("/query/windows/range", 409, "unknown_query_type"),
        ("/query/counts/key/%ff", 400, "bad_request"),
        ("/query/counts/key/a?limit=x", 400, "bad_request"),
        ("/query/counts/key/a?limit=1&limit=2", 400, "bad_request"),
        ("/query/counts/key/a?unknown=1", 400, "bad_request"),
        ("/query/counts/key/a?stale=maybe", 400, "bad_request"),
        ("/query/counts/key/a?isolation=none", 400, "bad_request"),
        ("/query/counts/key/a?position=7", 400, "bad_request"),
        ("/query/counts/range?partitions=x", 400, "bad_request"),
        ("/query/counts/range?partitions=7", 404, "does_not_exist"),
        ("/query/counts/range?limit=0", 413, "limit_too_large"),
        ("/query/counts/range?limit=1001", 413, "limit_too_large"),
        ("/query/counts/range?limit=99999999999999999999", 400, "bad_request"),
        ('/query/counts/range?position={"words":{"0":99}}', 503, "not_up_to_bound"),
    ],
)
def test_what_cannot_be_answered_says_why(worker, target, status, code):
    got, body = worker.json(target)
    assert (got, body["code"]) == (status, code), body


def test_an_app_that_does_not_run_is_503(worker):
    def not_running():
        raise StoreUnavailableError("the app is created")

    pages = QueryPages("app", not_running, worker.peers, ManualClock(0))
    answer = pages.answer(Request("GET", "/query/counts/key/a", "", {}))
    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")


def test_F50_a_damaged_store_is_503_with_the_reason(new_worker):
    worker = new_worker(0, statestore_object_cache_max_bytes=0)
    task_id = worker.app.place("counts").task(0)
    partition_of = worker.app.queries.catalogue.partition_of
    keys = [n for n in range(6000) if partition_of("counts", f"word-{n:040}") == 0]
    for n in keys:
        worker.app.work("counts", 0, "words", f"word-{n:040}", "x", n)
    worker.app.commit(task_id)
    worker.app.damage(task_id)
    for target in ("/query/counts/range?partitions=0", f"/query/counts/key/word-{keys[0]:040}"):
        answer = worker.ask(target)
        body = json.loads(answer.body)
        assert (answer.status, body["code"]) == (503, "store_damaged") and "Corruption" in body["error"], body
        assert answer.headers["Retry-After"] == "1"
        assert worker.app.damaged


def test_a_position_is_a_bound_for_the_next_question(worker):
    say(worker, "alice")
    position = json.dumps(worker.json("/query/counts/key/alice")[1]["position"])
    assert worker.json(f"/query/counts/key/alice?position={quote(position)}")[0] == 200
    late = worker.json(f"/query/counts/key/alice?isolation=read_committed&position={quote(position)}")
    assert (late[0], late[1]["code"]) == (503, "not_up_to_bound")


def test_more_scans_than_are_allowed_are_429(worker, monkeypatch):
    entered, release = threading.Event(), threading.Event()
    real = QueryPages._scan

    def slow(*args):
        entered.set()
        release.wait(10)
        return real(*args)

    monkeypatch.setattr(QueryPages, "_scan", slow)
    worker.pages._scan_slots = [0]
    thread = threading.Thread(target=lambda: worker.ask("/query/counts/range"))
    thread.start()
    assert entered.wait(10)
    assert worker.json("/query/counts/range")[0] == 429
    release.set()
    thread.join(10)
    assert worker.json("/query/counts/range")[0] == 200


class TestBetweenWorkers:
    @pytest.fixture
    def two(self, new_worker):
        here, there = new_worker(0), new_worker(1, 2)
        own({here.serve(): here, there.serve(): there})
        return here, there

    @staticmethod
    def key_of(worker, *partitions):
        keys = (f"k{number}" for number in range(1000))
        return next(k for k in keys if worker.app.queries.catalogue.partition_of("counts", k) in partitions)

    def test_the_owner_is_asked_once_and_its_answer_given(self, two):
        here, there = two
        key = self.key_of(here, 1)
        say(there, key)
        status, body = here.json(f"/query/counts/key/{key}", authorization="Bearer secret")
        assert (status, body["value"], body["partition"]) == (200, 1, 1)
        (asked,) = there.asked
        assert set(asked.headers) == {"host", APPLICATION_HEADER.lower(), HOPS_HEADER.lower()}, "no token goes along"

    def test_who_wants_no_forwarding_is_told_the_owner(self, two):
        here, there = two
        key = self.key_of(here, 1)
        status, body = here.json(f"/query/counts/key/{key}?forward=false")
        assert (status, body["code"], body["owner"]) == (421, "not_here", there.app.queries.endpoint)
        assert there.asked == []
        assert here.json(f"/query/counts/owner/{key}")[1]["owner"] == there.app.queries.endpoint

    def test_a_question_of_a_peer_is_not_passed_on(self, two):
        here, there = two
        key = self.key_of(here, 1)
        status, _ = here.json(f"/query/counts/key/{key}", **{HOPS_HEADER.lower(): "1"})
        assert status == 421
        assert there.asked == []

    def test_a_plan_that_is_out_of_date_ends_in_503_not_in_a_circle(self, two):
        here, there = two
        key = self.key_of(here, 0)
        here.app.close_all()
        say_owner = {here.app.queries.endpoint: here, there.app.queries.endpoint: there}
        own(say_owner)
        plan = there.app.thread.assigned.plan
        swapped = {there.app.queries.endpoint: (here.app.place("counts").task_key(0),)}
        here.app.thread.assigned = SimpleNamespace(
            generation_id=2,
            plan=Plan(**{**{f: getattr(plan, f) for f in plan.__struct_fields__}, "endpoints": swapped}),
        )
        answer = here.ask(f"/query/counts/key/{key}")
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        assert len(there.asked) == 1

    def test_an_owner_that_is_gone_ends_in_503(self, two):
        here, there = two
        there.server.close()
        answer = here.ask(f"/query/counts/key/{self.key_of(here, 1)}")
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")

    def test_a_worker_of_another_app_at_the_same_address_is_not_believed(self, two, new_worker):
        here, there = two
        other = new_worker(0, 1, 2, name="other")
        impostor = other.serve()
        key = self.key_of(here, 1)
        say(other, key)
        there.app.queries.endpoint = impostor
        own({here.app.queries.endpoint: here, impostor: there})
        assert here.json(f"/query/counts/key/{key}")[0] == 503

    def test_a_scan_gathers_the_partitions_of_all_workers(self, two):
        here, there = two
        for partition, worker in ((0, here), (1, there), (2, there)):
            say(worker, self.key_of(here, partition))
        status, body = here.json("/query/counts/range")
        assert (status, body["complete"]) == (200, True)
        assert {p: len(part["rows"]) for p, part in body["partitions"].items()} == {"0": 1, "1": 1, "2": 1}
        assert len(there.asked) == 1
        assert here.json("/query/counts/range?partitions=0&forward=false")[0] == 200

    def test_a_scan_that_lacks_a_partition_is_none(self, two):
        here, there = two
        there.server.close()
        status, body = here.json("/query/counts/range")
        assert (status, body["code"], body["partitions"]) == (503, "partitions_missing", [1, 2])
        assert here.json("/query/counts/range?forward=false")[0] == 503

    def test_a_task_that_restores_is_503_unless_stale_will_do(self, new_worker):
        worker = new_worker()
        worker.app.open(worker.app.place("counts").task(0), run=False)
        key = self.key_of(worker, 0)
        answer = worker.ask(f"/query/counts/key/{key}")
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        assert worker.ask(f"/query/counts/key/{key}?stale=true").status == 503, "nobody knows how late it is"
        worker.app.tell_progress(worker.app.place("counts").task(0), 8, UpdateKind.ACTIVE)
        status, body = worker.json(f"/query/counts/key/{key}?stale=true")
        assert (status, body["active"], body["lag_records"], body["age_ms"]) == (404, False, 8, None)
        assert worker.ask(f"/query/counts/key/{key}").status == 503


class TestCopies:
    """Partition 0 is here, 1 and 2 are there; each of both has copies of the other's."""

    key_of = staticmethod(TestBetweenWorkers.key_of)

    @pytest.fixture
    def two(self, new_worker):
        here, there = new_worker(0, copies=[1, 2]), new_worker(1, 2, copies=[0])
        own({here.serve(): here, there.serve(): there})
        return here, there

    @staticmethod
    def replay(worker, partition, key, count, timestamp):
        place = worker.app.place("counts")
        record = RawRecord(place.changelog, partition, 0, timestamp, key.encode(), count.to_bytes(8, "big"))
        copy = worker.app.standbys[place.task(partition)]
        copy.restore(TopicPartition(place.changelog, partition), [record], 0)

    def test_a_copy_answers_if_that_will_do_and_says_how_late_it_is(self, two):
        here, there = two
        key = self.key_of(here, 1)
        say(there, key)
        self.replay(here, 1, key, 7, 400)
        assert here.json(f"/query/counts/key/{key}")[1]["value"] == 1
        status, body = here.json(f"/query/counts/key/{key}?stale=true")
        assert (status, body["value"], body["active"], body["lag_records"], body["age_ms"]) == (200, 7, False, 0, 600)
        assert len(there.asked) == 1

    def test_where_a_copy_cannot_show_the_position_that_is_wanted_its_owner_is_asked(self, two):
        here, there = two
        key = self.key_of(here, 1)
        say(there, key)
        fresh = "?stale=true&position=" + quote('{"words":{"1":0}}')
        status, body = here.json(f"/query/counts/key/{key}{fresh}")
        assert (status, body["value"], body["active"]) == (200, 1, True)
        status, body = here.json(f"/query/counts/range{fresh}")
        assert (status, body["partitions"]["1"]["active"], body["partitions"]["2"]["active"]) == (200, True, False)
        too_fresh = "?stale=true&position=" + quote('{"words":{"1":1}}')
        assert here.json(f"/query/counts/key/{key}{too_fresh}")[0] == 503
        assert here.json(f"/query/counts/range{too_fresh}")[0] == 503
        assert here.json(f"/query/counts/key/{key}{fresh}&forward=false")[1]["code"] == "not_here"

    def test_an_owner_that_cannot_show_the_position_asks_nobody(self, two):
        here, there = two
        bound = "?stale=true&position=" + quote('{"words":{"0":0}}')
        for target in (f"key/{self.key_of(here, 0)}", "range"):
            status, body = here.json(f"/query/counts/{target}{bound}")
            assert (status, body["code"]) == (503, "not_up_to_bound")
        assert there.asked == []

    def test_a_scan_asks_the_copies_of_owners_that_do_not_answer(self, two, new_worker):
        here, there = two
        asker = new_worker()
        own({asker.serve(): asker, here.app.queries.endpoint: here, there.app.queries.endpoint: there})
        say(here, self.key_of(here, 0))
        self.replay(here, 1, self.key_of(here, 1), 3, 400)
        there.server.close()
        status, body = asker.json("/query/counts/range")
        assert (status, body["code"], body["partitions"]) == (503, "partitions_missing", [1, 2])
        here.asked.clear()
        status, body = asker.json("/query/counts/range?stale=true")
        parts = body["partitions"]
        assert (status, {p: part["active"] for p, part in parts.items()}) == (200, {"0": True, "1": False, "2": False})
        assert {p: part["lag_records"] for p, part in parts.items() if p != "0"} == {"1": 0, "2": 0}
        assert [row["value"] for row in parts["1"]["rows"]] == [3]
        assert len(here.asked) == 2, "first as an owner, then as who has copies"

    def test_a_scan_that_no_copy_can_answer_is_none(self, two, new_worker):
        here, there = two
        asker = new_worker()
        own({asker.serve(): asker, here.app.queries.endpoint: here, there.app.queries.endpoint: there})
        there.server.close()
        here.app.progress = ()
        status, body = asker.json("/query/counts/range?stale=true")
        assert (status, body["partitions"]) == (503, [1, 2])


def test_the_statuses_of_all_failures_are_chosen():
    for reason in query_pages.FailureReason:
        assert reason in query_pages._STATUS or reason.value in (
            "not_present",
            "not_active",
            "not_up_to_bound",
            "store_damaged",
        )
    assert json_answer(200, {}).status == 200
