"""A fleet without processes and without Kafka: the real server over a simulated runtime, cluster and doors, by a clock that tests
move. `Lab` outlives its servers, as the world does: kill one, start the next on the same registry.
"""

from __future__ import annotations

import copy
import json
import shutil
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from streamfleet_platform import views
from streamfleet_platform.errors import ConflictError
from streamfleet_platform.operations.cluster import GroupFacts, TopicFacts
from streamfleet_platform.operations.seen import AppSeen, WorkerSeen
from streamfleet_platform.runtime.api import WorkerPhase
from streamfleet_platform.runtime.simulated import SimulatedRuntime
from streamfleet_platform.server.process import Outside, Server
from streamfleet_platform.server.settings import ServerSettings
from streamfleet_platform.topologies.compiler import Compiled
from streamfleet_platform.topologies.lock import TopologyLock
from streamfleet_platform.views import TaskView

LOCK = Path(__file__).parents[3] / "examples" / "fleet" / "apps" / "country-activity.lock.json"
FLEET = """\
apiVersion: streamfleet/v1
kind: Fleet
metadata: {name: lab}
spec:
  clusters: {dev: {bootstrap: "broker:9092"}}
  defaults: {rollout: {gate: {restoredWithin: 1m, lagBelow: 100, for: 0s}}}
"""
APP = """\
apiVersion: streamfleet/v1
kind: StreamsApp
metadata: {name: %(name)s, owner: team-a}
spec:
  code: {entrypoint: "code:%(entry)s"}
  cluster: dev
  applicationId: %(name)s
  generation: %(generation)d
  inputs: {orders: {topic: %(name)s-in}}
  outputs: {activity: {topic: %(name)s-out, partitions: 4}}
  scale: {min: %(min)d, max: 8}
  %(more)s
"""


RUNNING = {"role": "active", "state": "running", "lag_records": 0}


class Killed(BaseException):
    """The server's process is gone."""


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class SimulatedCluster:
    """Keeps the contract of the real one (tests/contracts). An app's workers are the members of its group."""

    def __init__(self, runtime: SimulatedRuntime) -> None:
        self.there: dict[str, TopicFacts] = {}
        self.settings: dict[str, dict[str, str]] = {}
        self.records: dict[str, int] = {}
        """By topic: how many were put there."""
        self.offsets: dict[str, dict[str, int]] = {}
        """By group and topic: how many records lie behind what was set."""
        self.deleted: list[str] = []
        self._runtime = runtime

    def add(self, name, partitions=4):
        self.there[name] = TopicFacts(name, uuid.uuid4().hex, partitions)
        self.settings[name], self.records[name] = {}, 0

    def put(self, topic, records):
        self.records[topic] += records

    def topics(self, names):
        return {name: self.there[name] for name in names if name in self.there}

    def create_topics(self, topics):
        for topic in topics:
            if topic.name not in self.there:
                self.add(topic.name, topic.partitions)
                self.settings[topic.name] = dict(topic.configs)

    def delete_topics(self, topics):
        ours = [n for n, i in topics.items() if n in self.there and self.there[n].topic_id == i]
        for name in ours:
            del self.there[name]
        self.deleted += ours
        return tuple(ours)

    def configs(self, names):
        return {name: dict(self.settings[name]) for name in self.topics(names)}

    def alter_configs(self, configs):
        for name in self.topics(configs):
            self.settings[name] = self.settings[name] | configs[name]

    def end_offsets(self, names):
        found = {}
        for name, facts in self.topics(names).items():
            each, more = divmod(self.records[name], facts.partitions)
            found[name] = {number: each + (number < more) for number in range(facts.partitions)}
        return found

    def group(self, group):
        return self.groups([group])[group]

    def groups(self, groups):
        found = {}
        for group in groups:
            alive = [w for w in self._runtime.list(group) if w.is_alive]
            found[group] = GroupFacts(not alive, "stable" if alive else "empty")
        return found

    def delete_group(self, group):
        self._refuse_members(group)
        self.offsets.pop(group, None)

    def set_offsets(self, group, topics, start_at):
        self._refuse_members(group)
        there = self.topics(topics)
        if there:
            told = {name: self.records[name] if start_at == "latest" else 0 for name in there}
            self.offsets[group] = self.offsets.get(group, {}) | told
        return {name: facts.partitions for name, facts in there.items()}

    def committed(self, group, topics):
        """Workers process everything; a group that never was set began with its first worker."""
        runs = not self.group(group).is_empty or (group not in self.offsets and bool(self._runtime.list(group)))
        told = self.offsets.get(group, {})
        return {name: self.records[name] if runs else told.get(name, 0) for name in self.topics(topics)}

    def _refuse_members(self, group):
        if not self.group(group).is_empty:
            raise ConflictError("that was refused: the group has members")

    def close(self):
        pass


class SimulatedDoors:
    def __init__(self) -> None:
        self.drained: set[int] = set()
        self.orders: list[tuple[str, int, str]] = []
        self.probed = lambda: None
        """What a probing rebalance does."""

    def order(self, worker, name, details=None):
        self.orders.append((worker.app, worker.slot, name))
        if name == "drain":
            self.drained.add(worker.pid)
        if name == "probe":
            self.probed()

    def client_state(self, worker):
        return "not_running" if worker.pid in self.drained else "running"


class SimulatedObserver:
    """Every worker that runs is well, and runs what it was started with, unless `sick`. The slots that are up share the tasks of
    both sub-topologies, the stateful ones (1_n) as `placed` says; the first of them leads the group, or `leader`.
    """

    def __init__(self, lab) -> None:
        self.lab = lab
        self.sick: set[str] = set()
        """Revisions whose workers do not become ready."""
        self.unready: set[int] = set()
        """Slots whose workers do not."""
        self.unknown_lag = False
        """Workers run, and none has fetched anything."""
        self.store_bytes: dict[str, int] = {}
        self.leader: int | None = None
        self.placed: dict[int, int] = {}
        """By partition: the slot that runs its stateful task, if it is up."""
        self.warm_ups: dict[int, tuple[int, int]] = {}
        """By partition: the slot that its stateful task is to move to, and how many records it lacks."""

    def observe(self, apps):
        now = self.lab.clock()
        return {app.app.name: self._one(app, now) for app in apps}

    def move_what_is_ready(self):
        """What a probing rebalance does, if all is well."""
        ready = {partition: slot for partition, (slot, lag) in self.warm_ups.items() if lag == 0}
        self.placed |= ready
        self.warm_ups = {partition: told for partition, told in self.warm_ups.items() if partition not in ready}

    def _one(self, app, now):
        workers, placement = {}, []
        up = []
        for state in app.workers:
            is_running = state.phase is WorkerPhase.RUNNING
            is_up = is_running and state.revision not in self.sick and state.slot not in self.unready
            lock = self.lab.world.revisions.get(app.app.name, state.revision).lock
            told = "running" if is_up else "rebalancing" if is_running else None
            workers[state.slot] = WorkerSeen(state, told, lock.hash if told else None, is_up)
            up += [state.slot] if is_up else []
        if up:
            leader = self.leader if self.leader in up else up[0]
            workers[leader] = replace(workers[leader], is_leader=True)
        for partition in range(4 if up else 0):
            slot = up[partition % len(up)]
            placed = self.placed[partition] if self.placed.get(partition) in up else slot
            placement.append(TaskView(id=f"0_{partition}", sub_topology=0, partition=partition, slot=slot, **RUNNING))
            placement.append(TaskView(id=f"1_{partition}", sub_topology=1, partition=partition, slot=placed, **RUNNING))
        for partition, (slot, lag) in self.warm_ups.items():
            if slot in up:
                how = {"role": "warmup", "state": "caught_up" if lag == 0 else "catching_up", "lag_records": lag}
                placement.append(TaskView(id=f"1_{partition}", sub_topology=1, partition=partition, slot=slot, **how))
        lag = 0 if up and not self.unknown_lag else None
        return AppSeen(now, workers, tuple(placement), lag_records=lag, store_bytes=self.store_bytes)


def locks_of(name: str, entry: str) -> TopologyLock:
    """What an entry point `compiles` to: one named `rolling` renames a node, `restart` has a store more, `lossy` another serde,
    `settings` a changelog that keeps records for longer.
    """
    content = json.loads(LOCK.read_text())
    content.pop("hash")
    text = json.dumps(content).replace("enriched-orders", f"{name}-in").replace('"country-activity"', f'"{name}-out"')
    content = json.loads(text)
    if entry.endswith("rolling"):
        next(n for n in content["sub_topologies"][1]["nodes"] if n["name"] == "updates")["name"] = "changes"
        for node in content["sub_topologies"][1]["nodes"]:
            node["parents"] = ["changes" if p == "updates" else p for p in node.get("parents", [])]
    if entry.endswith("restart"):
        stateful = content["sub_topologies"][1]
        content["stores"]["more"] = {**content["stores"]["activity-by-minute"], "changelog": "more-changelog"}
        content["internal_topics"]["more-changelog"] = content["internal_topics"]["activity-by-minute-changelog"]
        stateful["stores"].append("more")
        next(n for n in stateful["nodes"] if n["name"] == "updates")["stores"].append("more")
        stateful["content_id"] = stateful["content_id"][::-1]  # it names the stores
    if entry.endswith("settings"):
        content["internal_topics"]["activity-by-minute-changelog"]["configs"]["retention.ms"] = "99999999"
    if entry.endswith("lossy"):
        store = content["stores"]["activity-by-minute"]
        store["value_serde"] = {"id": "string"}
    return TopologyLock.from_topology_json(json.dumps(content))


class Lab:
    def __init__(self, path: Path, registry: str | None = None) -> None:
        self.source = path / "source"
        self.settings = ServerSettings(source=self.source, data=path / "data", registry=registry, lease_seconds=15)
        self.clock = Clock()
        self.runtime = SimulatedRuntime()
        self.cluster = SimulatedCluster(self.runtime)
        self.doors = SimulatedDoors()
        self.observer = SimulatedObserver(self)
        self.doors.probed = self.observer.move_what_is_ready
        self.compiled: list[str] = []
        self.server: Server | None = None
        (self.source / "apps").mkdir(parents=True)
        (self.source / "fleet.yaml").write_text(FLEET)
        (self.source / "code.py").write_text("pass\n")

    @property
    def world(self):
        return self.server.world

    @property
    def fleet(self):
        return self.server.fleet

    def declare(self, name="one", *, entry="topology", generation=1, min=1, more=""):
        values = {"name": name, "entry": entry, "generation": generation, "min": min, "more": more}
        (self.source / "apps" / f"{name}.yaml").write_text(APP % values)
        if f"{name}-in" not in self.cluster.there:
            self.cluster.add(f"{name}-in")
            self.cluster.put(f"{name}-in", 10)

    def compile(self, _code, entrypoint, **_):
        self.compiled.append(entrypoint)
        _, _, entry = entrypoint.partition(":")
        name = self.names.get(entry, "one") if hasattr(self, "names") else "one"
        return Compiled(locks_of(name, entry), True, "<svg/>")

    def start(self, failpoint=None, holder=None):
        outside = Outside(self.runtime, self.doors, self.observer, lambda _: self.cluster)
        more = {} if failpoint is None else {"failpoint": failpoint}
        self.server = Server(
            self.settings,
            outside,
            clock=self.clock,
            holder=holder or uuid.uuid4().hex,
            compile_app=self.compile,
            **more,
        )
        self.server.loop.step()
        return self.server

    def kill(self):
        """Nothing is released, nothing is said; its lease runs out by itself."""
        self.server.database.close()
        self.clock.advance(20)

    def step(self):
        self.server.loop.step()
        self.clock.advance(0.3)

    def run(self, operation_id, steps=200):
        for _ in range(steps):
            found = self.fleet.operation(operation_id)
            if found.state.is_over:
                return found
            self.step()
        raise AssertionError(f"not over: {found}")

    def apply(self, **given):
        return self.fleet.apply(views.ApplyRequest(**given), actor="ann", intent_id=uuid.uuid4().hex)

    def operate(self, kind, app="one", intent_id=None, **params):
        return self.fleet.start_operation(kind, app, params, actor="ann", intent_id=intent_id or uuid.uuid4().hex)

    def deployed(self, **given):
        """A fleet with one app that runs."""
        self.declare(**given)
        self.start()
        [operation] = self.apply().operations
        assert self.run(operation.id).state == "succeeded"
        self.step()
        return self

    def copied(self, path):
        """The same world once more, without a server: what was prepared once can be gone on with many times."""
        other = Lab(path)
        shutil.copytree(self.source, other.source, dirs_exist_ok=True)
        shutil.copytree(self.settings.data, other.settings.data)
        other.clock.now = self.clock.now
        kept = {name: copy.copy(value) for name, value in vars(self.observer).items() if name != "lab"}
        vars(other.observer).update(kept)
        kept = {name: copy.copy(value) for name, value in vars(self.cluster).items() if name != "_runtime"}
        vars(other.cluster).update(kept)
        kept = {name: copy.copy(value) for name, value in vars(self.runtime).items() if name != "_lock"}
        vars(other.runtime).update(kept)
        other.doors.drained = set(self.doors.drained)
        return other

    def pids(self):
        return {worker.slot: worker.pid for worker in self.runtime.list("one") if worker.is_alive}
