"""The order of a commit, for each guarantee: what is durable first, and what a failure in between leaves."""

import pytest

from streamfleet.commit.at_least_once import AtLeastOnceCommit
from streamfleet.commit.exactly_once import MAX_REPLAYS, ExactlyOnceCommit
from streamfleet.errors import StreamsError
from streamfleet.failpoints import NoFailpoints
from streamfleet.ids import TopicPartition
from streamfleet.kafka.client_errors import (
    BrokerUnavailableError,
    ProducerLostError,
    RecordRefusedError,
    TransactionAbortRequiredError,
    UnknownTransactionOutcomeError,
)
from streamfleet.kafka.errors import GroupTimeoutError
from streamfleet.ports import DeliveryFailure, ProducerIdentity
from streamfleet.records import ProducerRecord
from streamfleet.task.offsets import CommittedOffset

INPUT, CHANGELOG = TopicPartition("in", 0), TopicPartition("app-s-changelog", 0)


class Journal(list):
    """What happened, in order; `fails_at` makes one of them raise."""

    fails_at = None

    def note(self, what):
        self.append(what)
        if what == self.fails_at:
            raise StreamsError(f"{what} failed")


class Task:
    commit_needed = True
    changelogs = {CHANGELOG.topic: CHANGELOG}

    def __init__(self, journal, sends=True):
        self.journal, self.sends, self.commit = journal, sends, None
        self.rows_offset = None

    def prepare_commit(self):
        if self.sends:
            self.commit.producer.send(ProducerRecord(CHANGELOG.topic, b"k", b"v", 1, partition=0))
        self.journal.note("prepare")
        return {INPUT: CommittedOffset(5)}

    def post_commit(self, offsets):
        self.rows_offset = offsets
        self.journal.note("rows")


class Clients:
    """Producer, Admin and GroupOffsets in one, writing into the journal."""

    def __init__(self, journal):
        self.journal = journal
        self.in_transaction = self.has_sent = False
        self.is_usable = True
        self.identity = ProducerIdentity("id", 1, 0)
        self.failures = []

    def init(self, timeout_ms):
        self.journal.note("init")

    def begin(self):
        self.in_transaction, self.has_sent = True, False
        self.journal.note("begin")

    def send(self, record):
        self.has_sent = True
        self.journal.note("send")

    def flush(self, timeout_ms):
        self.journal.note("flush")

    def take_failures(self):
        taken, self.failures = self.failures, []
        return taken

    def last_offsets(self):
        return {CHANGELOG: 41} if self.has_sent else {}

    def list_offsets(self, partitions, kind):
        self.journal.note("ends")
        return dict.fromkeys(partitions, 42)

    def commit(self, *_):
        self.in_transaction = False
        self.journal.note("commit")

    def abort(self, timeout_ms):
        self.in_transaction = False
        self.journal.note("abort")

    def close(self):
        self.journal.note("close")

    def renew(self):
        self.journal.note("renew")

    # the group's offsets

    def commit_in_transaction(self, producer, offsets):
        self.journal.note("offsets")

    def end_transaction(self, producer, *, commit):
        self.journal.note("end commit" if commit else "end abort")


class Offsets(Clients):
    def commit(self, offsets):
        self.journal.note("offsets")


@pytest.fixture
def journal():
    return Journal()


def exactly_once(journal, **task_options):
    clients = Clients(journal)
    task = Task(journal, **task_options)
    task.commit = ExactlyOnceCommit(lambda blames: clients, clients, NoFailpoints())
    return task.commit, task, clients


def test_at_least_once_commits_results_then_offsets_then_rows(journal):
    commit, task, _ = at_least_once(journal)
    commit.commit([task])
    assert journal == ["send", "prepare", "flush", "ends", "offsets", "rows"]
    assert task.rows_offset == {CHANGELOG.topic: 41}


def test_exactly_once_puts_results_and_offsets_into_one_transaction_and_rows_behind_it(journal):
    commit, task, _ = exactly_once(journal)
    commit.commit([task])
    assert journal == ["init", "begin", "send", "prepare", "flush", "offsets", "commit", "rows"]
    assert task.rows_offset == {CHANGELOG.topic: 41}


def test_a_transaction_with_offsets_only_is_ended_by_the_group_client(journal):
    commit, task, _ = exactly_once(journal, sends=False)
    commit.commit([task])
    assert journal[-3:] == ["commit", "end commit", "rows"]


def test_a_producer_whose_offsets_end_unknown_is_not_used_again(journal):
    commit, task, _ = exactly_once(journal, sends=False)
    journal.fails_at = "end commit"
    with pytest.raises(StreamsError):
        commit.commit([task])
    assert journal[-2:] == ["end commit", "close"] and "rows" not in journal
    journal.fails_at = None
    commit.abort()
    journal.clear()
    commit.commit([task])
    assert journal[:2] == ["init", "begin"], "a new one takes over the transactional id, which ends what was left open"


@pytest.mark.parametrize("step", ["prepare", "flush", "offsets", "commit"])
def test_no_row_is_written_when_anything_before_it_fails(journal, step):
    commit, task, _ = exactly_once(journal)
    journal.fails_at = step
    with pytest.raises(StreamsError):
        commit.commit([task])
    assert "rows" not in journal


def test_a_producer_whose_offsets_may_come_late_is_not_used_again(journal, monkeypatch):
    commit, task, clients = exactly_once(journal)

    def no_answer(producer, offsets):
        raise GroupTimeoutError("no answer")

    monkeypatch.setattr(clients, "commit_in_transaction", no_answer)
    with pytest.raises(UnknownTransactionOutcomeError):
        commit.commit([task])
    assert journal[-1] == "close" and "rows" not in journal
    monkeypatch.undo()
    commit.abort()
    journal.clear()
    commit.open()
    assert journal == ["init"], "a new one takes over the transactional id"


def at_least_once(journal):
    clients = Clients(journal)
    task = Task(journal)
    task.commit = AtLeastOnceCommit(clients, clients, Offsets(journal), NoFailpoints())
    return task.commit, task, clients


def test_what_was_sent_for_work_that_was_given_up_is_in_the_topics_before_the_work_begins_again(journal):
    commit, task, _ = at_least_once(journal)
    commit.open()
    assert journal == []
    commit.producer.send(OTHER)
    commit.abort()
    commit.open()
    commit.open()
    assert journal == ["send", "flush"]


def test_what_failed_of_work_that_was_given_up_is_not_held_against_the_work_that_is_done_again(journal):
    commit, task, clients = at_least_once(journal)
    commit.abort()
    clients.failures = [DeliveryFailure(OTHER, BrokerUnavailableError("too late", code="_MSG_TIMED_OUT"))]
    commit.open()
    commit.commit([task])
    assert task.rows_offset == {CHANGELOG.topic: 41}


def test_a_plain_producer_that_is_lost_is_renewed_before_the_work_begins_again(journal):
    commit, task, clients = at_least_once(journal)
    clients.is_usable = False
    commit.abort()
    commit.open()
    assert journal == ["renew"]


def test_an_abort_of_offsets_only_is_ended_by_the_group_client_too(journal):
    commit, task, clients = exactly_once(journal, sends=False)
    journal.fails_at = "offsets"
    with pytest.raises(StreamsError):
        commit.commit([task])
    clients.in_transaction = True
    commit.abort()
    assert journal[-2:] == ["abort", "end abort"]


def test_a_producer_that_is_not_usable_is_replaced_before_it_is_used_again(journal):
    commit, task, clients = exactly_once(journal)
    commit.open()
    clients.is_usable = False
    commit.open()
    assert journal == ["init", "close", "init"]


@pytest.mark.parametrize("goes_on", ["send", "partition_count", "open", "commit"])
def test_a_producer_that_is_lost_in_a_transaction_is_not_replaced_before_the_work_is_given_up(journal, goes_on):
    commit, task, clients = exactly_once(journal)
    commit.producer.send(OTHER)
    clients.is_usable = clients.in_transaction = False  # told by a callback, to nobody else
    goings_on = {
        "send": lambda: commit.producer.send(OTHER),
        "partition_count": lambda: commit.producer.partition_count("out"),
        "open": commit.open,
        "commit": lambda: commit.commit([task]),
    }
    for _ in range(2):
        with pytest.raises(ProducerLostError, match="middle of a transaction"):
            goings_on[goes_on]()
    assert journal == ["init", "begin", "send"]
    commit.abort()
    clients.is_usable = True
    commit.commit([task])
    assert journal[3:] == ["close", "init", "begin", "send", "prepare", "flush", "offsets", "commit", "rows"]


OTHER = ProducerRecord("out", b"k", b"v", 1)


def refused(number):
    """A record that is another one in every replay."""
    record = ProducerRecord("out", b"k", b"%d" % number, 1)
    return DeliveryFailure(record, RecordRefusedError("too large", code="MSG_SIZE_TOO_LARGE"))


def failing(clients, call, number):
    def fail(*_):
        clients.failures = [refused(number)]
        clients.in_transaction = True
        raise TransactionAbortRequiredError("the transaction has failed", code="MSG_SIZE_TOO_LARGE")

    setattr(clients, call, fail)


@pytest.mark.parametrize("call", ["flush", "send"])
def test_a_record_that_a_failed_transaction_blames_is_refused_in_the_replay(journal, call):
    commit, task, clients = exactly_once(journal)
    failing(clients, call, 7)
    with pytest.raises(TransactionAbortRequiredError):
        commit.commit([task])
    delattr(clients, call)
    commit.abort()
    with pytest.raises(RecordRefusedError):
        commit.producer.send(refused(7).record)
    commit.producer.send(OTHER)


@pytest.mark.parametrize("call", ["flush", "send"])
def test_replays_that_blame_another_record_each_time_come_to_an_end(journal, call):
    commit, task, clients = exactly_once(journal)
    task.handle_delivery_failure = lambda record, error: journal.append("handler")
    task.may_send_to = lambda topic: topic == "out"
    for number in range(MAX_REPLAYS):
        failing(clients, call, number)
        with pytest.raises(TransactionAbortRequiredError):
            commit.commit([task])
        commit.abort()
    failing(clients, call, MAX_REPLAYS)
    with pytest.raises(StreamsError, match="too large") as caught:
        commit.commit([task])
    assert not isinstance(caught.value, TransactionAbortRequiredError)


def test_nothing_to_commit_does_nothing(journal):
    commit, task, _ = exactly_once(journal)
    task.commit_needed = False
    assert commit.commit([task]) == {}
    assert journal == []
