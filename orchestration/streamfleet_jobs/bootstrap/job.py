"""The steps of a bootstrap in order, each told on stdout when it is proven. Called by the entry point.

    computed ──> staged ──> changelog_written ──> verified

Before each step that writes: the token is still the newest here, nobody is in the app's group, and no transaction of it is open.
What a record and its digests prove is not done again. STREAMFLEET_BOOTSTRAP_KILL_AFTER ends the process after a step, for tests.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from streamfleet.errors import StreamsError
from streamfleet.kafka.admin import KafkaAdmin
from streamfleet.worker.logs import configure_logs
from streamfleet.worker.secrets import secrets_of
from streamfleet_jobs.bootstrap import cut_over, source, verification
from streamfleet_jobs.bootstrap.changelog_topic import ChangelogTopic, client_settings
from streamfleet_jobs.bootstrap.input_records import InputTopic
from streamfleet_jobs.bootstrap.manifests import files_of, remove_manifests, write_manifests
from streamfleet_jobs.bootstrap.own_topology import Looked, Rows, check_by_topology
from streamfleet_jobs.bootstrap.recomputation import check_sample, choose_sample
from streamfleet_jobs.bootstrap.source import SourceFacts
from streamfleet_jobs.bootstrap.spec import BootstrapSpec, read_spec
from streamfleet_jobs.bootstrap.staging import computed_files, computed_rows, newest_time, stage, staged_rows
from streamfleet_jobs.bootstrap.steps import STATES, RunDirectory, checksums, still_there
from streamfleet_jobs.bootstrap.verification import rows_of
from streamfleet_jobs.columns.row_digest import Digest
from streamfleet_jobs.engines import EngineName
from streamfleet_jobs.errors import RefusedError, UnavailableError
from streamfleet_jobs.progress import Report

_CUT_OVER = ("next_offsets", "stream_times", "observed_times")
KILL_AFTER = "STREAMFLEET_BOOTSTRAP_KILL_AFTER"


class Engine(Protocol):
    """What counts and aggregates the table."""

    def facts(self) -> SourceFacts: ...

    def compute(self, target: Path) -> None: ...


def abort(spec_path: Path, report: Report) -> None:
    spec = read_spec(spec_path)
    _keep_stdout_clean(spec)
    with _engine_errors_told(), ExitStack() as opened:
        Bootstrap(spec, partial(_opened, spec, EngineName.LOCAL, opened, report), report).abort()  # computes nothing


def run(spec_path: Path, engine: EngineName, report: Report) -> None:
    spec = read_spec(spec_path)
    _keep_stdout_clean(spec)
    with _engine_errors_told(), ExitStack() as opened:
        Bootstrap(spec, partial(_opened, spec, engine, opened, report), report).run()


def _opened(spec: BootstrapSpec, engine: EngineName, opened: ExitStack, report: Report) -> Engine:
    """Only when there is something to compute: an attempt that finds it done needs no Spark."""
    if engine is EngineName.LOCAL:
        from streamfleet_jobs.bootstrap.local_engine import LocalEngine

        return LocalEngine(spec)
    from streamfleet_jobs.bootstrap.spark_engine import SparkEngine
    from streamfleet_jobs.spark.session import spark_session

    return SparkEngine(spec, opened.enter_context(spark_session(engine, report)))


def _keep_stdout_clean(spec: BootstrapSpec) -> None:
    """Only states are told there; what the engine logs goes to standard error."""
    configure_logs("console", "warning", secrets=secrets_of(client_settings(spec)))


@contextmanager
def _engine_errors_told() -> Iterator[None]:
    """What the engine's clients say of brokers and groups, as an error of the job."""
    try:
        yield
    except StreamsError as error:
        raise UnavailableError(f"the cluster does not do what is asked: {error}", hint="run the job again") from error


class Bootstrap:
    """One attempt at a run."""

    def __init__(self, spec: BootstrapSpec, open_engine: Callable[[], Engine], report: Report) -> None:
        self._spec = spec
        self._open_engine = open_engine
        self._report = report
        self._directory = RunDirectory(spec)
        self._computed = spec.directory / "computed"
        self._admin = KafkaAdmin(client_settings(spec))
        self._group = cut_over.AppGroup(spec, self._admin)
        self._topic = ChangelogTopic(spec, self._admin)
        self._partitions = range(spec.store.partitions)

    def run(self) -> None:
        steps: dict[str, Callable[[], tuple[dict[str, Any], bool]]] = {
            "computed": self._compute,
            "staged": self._stage,
            "changelog_written": self._write_changelog,
            "verified": self._verify,
        }
        with self._directory.held():
            for state in STATES:
                self._directory.check_token()
                self._group.check_idle()
                self._report(f"bootstrap of {self._spec.store.name}: {state} ...")
                begun = time.monotonic()
                detail, resumed = steps[state]()
                if not resumed:
                    self._directory.check_token()
                    self._directory.finish(state, detail)
                _tell(state, detail, resumed=resumed, seconds=time.monotonic() - begun)

    def abort(self) -> None:
        """The group goes on where it was before this run, if this run has set its offsets. What was written stays, unused."""
        with self._directory.held():
            self._group.check_idle()
            kept = self._directory.record("former_offsets")
            if kept is not None:
                self._report(f"bootstrap of {self._spec.store.name}: putting the group's offsets back")
                self._group.put_back(kept["offsets"])
            remove_manifests(self._spec)
            _tell("aborted", {"offsets": (kept or {}).get("offsets", [])}, resumed=False, seconds=0.0)

    def _compute(self) -> tuple[dict[str, Any], bool]:
        known = self._directory.record("computed")
        if known is not None and still_there(self._computed, known["files"]):
            self._group.check_input(_numbers(known["next_offsets"]))
            return known, True
        engine = self._open_engine()
        facts = engine.facts()
        source.check_source(self._spec, facts)
        next_offsets = source.next_offsets(self._spec, facts)
        self._group.check_input(next_offsets)
        draft = self._spec.directory / "computing"
        shutil.rmtree(draft, ignore_errors=True)
        shutil.rmtree(self._computed, ignore_errors=True)
        engine.compute(draft)
        draft.mkdir(exist_ok=True)
        draft.rename(self._computed)
        digests = {p: verification.digest_of_records(computed_rows(self._computed, p)) for p in self._partitions}
        files = [file for p in self._partitions for file in computed_files(self._computed, p)]
        stream_times = {p: found.stream_time for p, found in facts.partitions.items()}
        return {
            "records": sum(map(rows_of, digests.values())),
            "table_rows": sum(found.rows for found in facts.partitions.values()),
            "next_offsets": next_offsets,
            "stream_times": stream_times,
            "observed_times": stream_times if self._spec.input.through is None else self._newest(),
            "digests": {p: verification.to_detail(digest) for p, digest in digests.items()},
            "files": checksums(self._computed, files),
        }, False

    def _newest(self) -> dict[int, int]:
        """Stream time of the tasks behind a repartition topic: partitions of the input say nothing of those."""
        found = {p: newest_time(self._computed, p) for p in self._partitions}
        return {p: time for p, time in found.items() if time is not None}

    def _stage(self) -> tuple[dict[str, Any], bool]:
        known = self._directory.record("staged")
        root = self._spec.snapshot_directory
        if known is not None and still_there(root, known["files"]):
            return known, True
        remove_manifests(self._spec)
        staged = [entry for p in self._partitions for entry in stage(self._spec, self._computed, p)]
        rows = {str(path.relative_to(root)): count for path, count in staged}
        return {
            "files": checksums(root, [path for path, _ in staged]),
            "rows": rows,
            "records": sum(rows.values()),
        }, False

    def _write_changelog(self) -> tuple[dict[str, Any], bool]:
        info, ends = self._topic.ensure(), self._topic.ends()
        known = self._directory.record("changelog_written")
        written = {p: self._write_partition(p, end) for p, end in ends.items()}
        detail = {"topic": self._topic.name, "topic_id": info.topic_id, "ends": self._topic.ends()}
        if known is not None and not any(written.values()):
            return known, True
        return detail | {"written": sum(written.values())}, False

    def _write_partition(self, partition: int, end: int) -> int:
        """Only what the topic lacks a proof for."""
        wanted = self._digest(partition)
        found = self._topic.latest(partition, end)
        if verification.digest_of_records((k, *v) for k, v in found.items()) == wanted:
            return 0
        strange = set(found) - {key for key, _, _ in computed_rows(self._computed, partition)}
        if strange:
            raise RefusedError(
                f"{self._topic.name}-{partition} has {len(strange)} keys that this run did not compute",
                hint="somebody else has written it: begin a new run, with a new epoch",
            )
        self._directory.check_token()
        return self._topic.write(partition, computed_rows(self._computed, partition))

    def _verify(self) -> tuple[dict[str, Any], bool]:
        known = self._directory.record("verified")
        computed = self._directory.record("computed") or {}
        staged = self._directory.record("staged") or {}
        info, ends = self._topic.ensure(), self._topic.ends()
        for partition in self._partitions:
            self._verify_partition(partition, ends[partition], staged)
        sample = choose_sample(self._spec, self._computed, {p: rows_of(self._digest(p)) for p in self._partitions})
        replayed = check_sample(self._spec, sample)
        looked = self._check_by_topology(sample)
        targets = self._group.targets(*(_numbers(computed[name]) for name in _CUT_OVER))
        former = known["former_offsets"] if known else self._former()
        self._directory.check_token()
        self._group.check_idle()
        self._group.set(targets)
        write_manifests(self._spec, info.topic_id, ends, _numbers(computed["observed_times"]), staged)
        return {
            "epoch": self._spec.epoch,
            "changelog": self._topic.name,
            "changelog_topic_id": info.topic_id,
            "ends": ends,
            "records": computed["records"],
            "sample_keys": len(sample),
            "sample_records": replayed,
            "topology_keys": looked.keys,
            "topology_records": looked.records,
            "topology_told": looked.told,
            "offsets": cut_over.as_detail(targets),
            "former_offsets": former,
            "snapshot_directory": str(self._spec.snapshot_directory),
        }, False

    def _check_by_topology(self, sample: Rows) -> Looked:
        topic = InputTopic(self._spec, self._admin)
        looked = check_by_topology(self._spec, sample, topic.starts(), topic.read)
        why = f" ({looked.told})" if looked.told else ""
        self._report(f"the app's own topology was asked for {looked.keys} of {len(sample)} sampled keys{why}")
        return looked

    def _verify_partition(self, partition: int, end: int, staged: dict[str, Any]) -> None:
        wanted = self._digest(partition)
        files = [self._spec.snapshot_directory / name for name in files_of(self._spec, partition, staged)]
        rows = verification.as_records(staged_rows(files))
        placed = verification.check_placement(self._spec, partition, rows)
        verification.check_equal("table files", partition, verification.digest_of_records(placed), wanted)
        logged = ((key, *value) for key, value in self._topic.latest(partition, end).items())
        verification.check_equal("changelog records", partition, verification.digest_of_records(logged), wanted)

    def _former(self) -> list[dict[str, Any]]:
        """What the group had before; kept before it is changed, and never overwritten by a second attempt."""
        kept = self._directory.record("former_offsets")
        if kept is None:
            kept = {"offsets": cut_over.as_detail(self._group.committed())}
            self._directory.finish("former_offsets", kept)
        found: list[dict[str, Any]] = kept["offsets"]
        return found

    def _digest(self, partition: int) -> Digest:
        computed = self._directory.record("computed") or {}
        return verification.from_detail(computed["digests"][str(partition)])


def _numbers(detail: dict[Any, int]) -> dict[int, int]:
    """JSON makes text of numbers that are keys."""
    return {int(number): value for number, value in detail.items()}


def _tell(state: str, detail: dict[str, Any], *, resumed: bool, seconds: float) -> None:
    shown = {name: value for name, value in detail.items() if name not in ("digests", "files", "rows")}
    line = {"state": state, "detail": shown | {"resumed": resumed, "seconds": round(seconds, 2)}}
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
    if os.environ.get(KILL_AFTER) == state:
        os.kill(os.getpid(), signal.SIGKILL)
