"""Every metric a worker shows, once: name, kind, labels, meaning. The exporter shows what is here and nothing else;
docs/metrics.md has the same table, and a test keeps the two equal.

Few on purpose: each is one that somebody would draw or raise an alarm on. Labels have few values (threads, tasks,
operators of one app), never a key or anything else out of a record.
"""

from __future__ import annotations

from typing import Literal

import msgspec

PREFIX = "streamfleet_"

Kind = Literal["counter", "gauge", "histogram"]


class MetricSpec(msgspec.Struct, frozen=True):
    """`name` is without the prefix; that of a counter ends in _total."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    meaning: str

    @property
    def full_name(self) -> str:
        return PREFIX + self.name


METRICS = (
    MetricSpec("info", "gauge", ("application_id", "version", "topology_hash"), "Always 1; says what runs here."),
    MetricSpec("state", "gauge", ("state",), "1 for the state the app is in, 0 for the others."),
    MetricSpec("threads", "gauge", ("phase",), "Number of StreamThreads by phase."),
    MetricSpec("tasks", "gauge", ("phase",), "Number of tasks by phase."),
    MetricSpec(
        "failures_total",
        "counter",
        ("kind",),
        "Times the app could not start, or a StreamThread failed, by the name of the error.",
    ),
    MetricSpec(
        "last_step_age_seconds",
        "gauge",
        ("thread",),
        "Time since the StreamThread last told its status; it does between steps, four times a second.",
    ),
    MetricSpec(
        "processed_records_total",
        "counter",
        ("thread", "sub_topology"),
        "Input records taken by tasks, those they dropped included.",
    ),
    MetricSpec(
        "dropped_records_total",
        "counter",
        ("operator", "reason"),
        "Records that an operator or store left out of the results.",
    ),
    MetricSpec(
        "read_stalls_total",
        "counter",
        ("topic", "cause"),
        "Times a partition of an input, a changelog or a global topic could not be read on.",
    ),
    MetricSpec(
        "empty_changelogs_total",
        "counter",
        ("topic",),
        "Changelogs that were missing at the start although the app has run: made anew, and empty.",
    ),
    MetricSpec(
        "broker_outages_total",
        "counter",
        (),
        "Times the brokers, or one of them that was asked, did not answer; one for all threads together.",
    ),
    MetricSpec("broker_away_seconds", "gauge", (), "How long they have not answered by now; 0 when they do."),
    MetricSpec(
        "input_lag_records",
        "gauge",
        ("topic", "partition"),
        "Records of an input partition that are not processed yet, as of the last fetch.",
    ),
    MetricSpec("polls_total", "counter", ("thread",), "Times a StreamThread asked for input records."),
    MetricSpec("polled_records_total", "counter", ("thread",), "Input records it was given."),
    MetricSpec(
        "activity_seconds_total",
        "counter",
        ("thread", "activity"),
        "Where a StreamThread's time goes: restore, poll (mostly waiting), process, punctuate.",
    ),
    MetricSpec("commit_seconds", "histogram", ("thread",), "Duration of commits that had something to commit."),
    MetricSpec(
        "commit_failures_total", "counter", ("thread",), "Commits that raised; they are repeated or taken back."
    ),
    MetricSpec("uncommitted_bytes", "gauge", ("thread",), "Store changes in memory since the last commit."),
    MetricSpec("restored_records_total", "counter", ("thread",), "Changelog records applied to stores."),
    MetricSpec(
        "restore_remaining_records",
        "gauge",
        ("task",),
        "Changelog offsets a restoring task has still to read; gone when it runs.",
    ),
    MetricSpec(
        "restore_remaining_bytes",
        "gauge",
        ("task",),
        "About how many bytes these are, by the size of what was read; absent until something was.",
    ),
    MetricSpec(
        "restore_eta_seconds",
        "gauge",
        ("task",),
        "Time until it has read them at the mean rate since it began; absent while there is none.",
    ),
    MetricSpec(
        "standby_tasks", "gauge", ("kind",), "Copies of other processes' tasks that are kept here: standby or warmup."
    ),
    MetricSpec(
        "standby_lag_records",
        "gauge",
        ("task", "kind"),
        "Changelog offsets that a copy is behind its active task, as of the last fetch.",
    ),
    MetricSpec(
        "corrupted_tasks_total",
        "counter",
        ("thread",),
        "Tasks whose local state was unusable, so that it was wiped and restored.",
    ),
    MetricSpec(
        "lost_rows_total",
        "counter",
        ("thread",),
        "Rows of wiped state that a truncated changelog did not bring back; expired windows and deleted keys among them.",
    ),
    MetricSpec(
        "full_disk_waits_total",
        "counter",
        ("thread",),
        "Times a StreamThread closed its tasks because their disk was full; they are opened again when it has room.",
    ),
    MetricSpec(
        "moved_timestamps_total",
        "counter",
        ("thread",),
        "Records of time 0, which the client cannot write: they were written with time 1.",
    ),
    MetricSpec(
        "queries_total",
        "counter",
        ("kind", "status"),
        "Queries over HTTP by what was asked for (key, scan, none that could be told) and the answer's status; "
        "a forwarded one counts in both workers.",
    ),
    MetricSpec("query_seconds", "histogram", ("kind",), "Time until their answers were ready to send."),
    MetricSpec("rebalances_total", "counter", ("thread",), "Plans that a StreamThread got from its group."),
    MetricSpec(
        "lost_assignments_total",
        "counter",
        ("thread",),
        "Times the group went on without this StreamThread, so that it dropped its tasks.",
    ),
    MetricSpec(
        "lost_transactions_total",
        "counter",
        ("thread",),
        "Transactions that were fenced, aborted or of unknown outcome; tasks went back to the last commit.",
    ),
)
