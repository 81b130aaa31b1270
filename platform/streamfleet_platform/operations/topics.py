"""The topics an app needs: outputs and dead letters that are not there yet, and its internal topics. By most operations.

Internal topics are made here and not left to the workers, because what is deleted one day must be known by its id: names alone
are not enough (an app `a` with store `b-c` and an app `a-b` with store `c` would share one). A row is written before the topic is
made, so a topic without a row is never ours; its id is added when it is there, and never changes: a topic that is gone, or another
one of its name, is refused and not made up for.

Settings that the lock names are set on internal topics that are there already, and set back where an upgrade goes back; what else
somebody has set on them stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy.orm import Session

from streamfleet_platform.errors import TransientError
from streamfleet_platform.operations.cluster import TopicFacts, TopicWanted
from streamfleet_platform.operations.steps import Done, StepFailedError
from streamfleet_platform.operations.work import AppRevision, Work
from streamfleet_platform.registry import apps
from streamfleet_platform.registry.tables import InternalTopic
from streamfleet_platform.topologies.lock import TopologyLock
from streamfleet_platform.topologies.partition_changes import topic_widths


class TopicLostError(StepFailedError):
    """What an internal topic held is gone: begin the state anew."""


class TopicReplacedError(StepFailedError):
    """Another topic has the name of an internal one: whose is it?"""


def real_name(application_id: str, lock: TopologyLock, topic: str) -> str:
    """As it is on the cluster."""
    return f"{application_id}-{topic}" if topic in lock.internal_topics else topic


def real_names(revision: AppRevision, epochs: Mapping[str, int]) -> dict[str, str]:
    """Of its internal topics, by the lock's name. A store that was bootstrapped has a changelog of its epoch."""
    lock, application_id = revision.lock, revision.spec.application_id
    named = {name: f"{application_id}-{name}" for name in lock.internal_topics}
    for store, epoch in epochs.items():
        changelog = lock.stores.get(store, {}).get("changelog")
        if epoch and changelog in named:
            named[changelog] = f"{application_id}-{store}-e{epoch}-changelog"
    return named


def external_topics(revision: AppRevision) -> list[str]:
    """What it reads of others, by name."""
    return sorted(topic for topic in revision.lock.sources() if not topic.startswith("pattern:"))


def check_cluster(work: Work) -> Done:
    """The cluster answers, and what the app reads is there."""
    wanted = external_topics(work.target())
    found = work.cluster().topics(wanted)
    missing = sorted(set(wanted) - found.keys())
    if missing:
        raise TransientError(f"input topics are missing: {', '.join(missing)}", hint="create them, or deploy who does")
    return Done(f"{len(found)} input topics")


def create_topics(work: Work) -> Done:
    revision = work.target()
    cluster, spec = work.cluster(), revision.spec
    inputs = cluster.topics(external_topics(revision))
    widths = {name: facts.partitions for name, facts in inputs.items()}
    internal = internal_topics(revision, widths, work.app.epochs)
    known, there = {row.name: row for row in _rows(work)}, cluster.topics(internal)
    _refuse_foreign(known, there, internal)
    _refuse_lost(known, there, internal)
    _record(work, internal.values(), revision)
    outputs = [TopicWanted(o.topic, o.partitions or _width(inputs)) for o in spec.outputs.values()]
    if spec.errors.dead_letter_topic is not None:
        outputs.append(TopicWanted(spec.errors.dead_letter_topic, _width(inputs)))
    cluster.create_topics([*outputs, *internal.values()])
    found = cluster.topics(internal)
    _check_partitions(internal, found)
    _confirm(work, found)
    altered = _alter(work, internal)
    told = f"{len(internal)} internal topics" + (f", settings of {', '.join(altered)} altered" if altered else "")
    return Done(told, {"topics": sorted(internal)})


def restore_settings(work: Work) -> Done:
    """Of internal topics that are there, as the version wants them that is gone back to."""
    revision = work.former()
    names = real_names(revision, work.app.epochs)
    wanted = {
        names[name]: TopicWanted(names[name], 0, topic["configs"])
        for name, topic in revision.lock.internal_topics.items()
    }
    known = {row.name: row.topic_id for row in _rows(work)}
    there = work.cluster().topics(wanted)
    ours = {name: topic for name, topic in wanted.items() if name in there and there[name].topic_id == known.get(name)}

    def change(session: Session) -> None:
        for row in apps.topics_of(session, work.app.name):
            if row.name in ours:
                row.configs = dict(ours[row.name].configs)

    work.write(change)
    altered = _alter(work, ours)
    return Done(f"settings of {', '.join(altered)} altered back" if altered else "as they were")


def _alter(work: Work, topics: Mapping[str, TopicWanted]) -> list[str]:
    """What differs of the settings that the lock names; the topics it was. It is told before it is done."""
    cluster = work.cluster()
    now = cluster.configs(topics)
    changes = {
        name: {key: value for key, value in topics[name].configs.items() if settings.get(key) != value}
        for name, settings in now.items()
    }
    changes = {name: settings for name, settings in sorted(changes.items()) if settings}
    for name, settings in changes.items():
        told = [f"{key} from {now[name].get(key)} to {value}" for key, value in sorted(settings.items())]
        work.tell("topic", f"settings of topic {name}: {', '.join(told)}", topic=name)
    cluster.alter_configs(changes)
    return list(changes)


def internal_topics(
    revision: AppRevision, inputs: Mapping[str, int], epochs: Mapping[str, int]
) -> dict[str, TopicWanted]:
    """By real name. Partitions as the engine counts them."""
    lock = revision.lock
    names = real_names(revision, epochs)
    widths = topic_widths(lock, inputs)
    found: dict[str, TopicWanted] = {}
    for name, topic in lock.internal_topics.items():
        partitions = widths.get(name)
        if not partitions:
            raise StepFailedError(f"how many partitions {name} needs is not known", hint="are its inputs there?")
        real = names[name]
        found[real] = TopicWanted(real, partitions, topic["configs"])
    return found


def _width(inputs: Mapping[str, TopicFacts]) -> int:
    return max((facts.partitions for facts in inputs.values()), default=1)


def _rows(work: Work) -> list[InternalTopic]:
    with work.world.database.read() as session:
        return list(apps.topics_of(session, work.app.name))


def _refuse_foreign(
    known: Mapping[str, InternalTopic], there: Mapping[str, TopicFacts], wanted: Mapping[str, TopicWanted]
) -> None:
    """A topic of that name which nobody recorded may be anybody's: state of an app that was run by hand, for instance."""
    foreign = sorted(name for name in wanted if name in there and name not in known)
    if foreign:
        raise StepFailedError(
            f"topics are there that were not made for this app: {', '.join(foreign)}",
            hint="delete them, or choose another applicationId",
        )


def _refuse_lost(
    known: Mapping[str, InternalTopic], there: Mapping[str, TopicFacts], wanted: Mapping[str, TopicWanted]
) -> None:
    """A topic that was seen with its id and is gone, or is another one by now. Made anew, or taken for ours, its records would be
    missed by nobody: state that no longer fits its changelog, and one day a topic of somebody else deleted.
    """
    recorded = {name: row.topic_id for name, row in known.items() if name in wanted and row.topic_id is not None}
    other = sorted(name for name, id_ in recorded.items() if name in there and there[name].topic_id != id_)
    gone = sorted(recorded.keys() - there.keys())
    if other:
        raise TopicReplacedError(
            f"topics were deleted and made anew by somebody else: {', '.join(other)}",
            hint="delete them if nobody needs them; then reset the app, or bootstrap the store whose changelog it was",
        )
    if gone:
        raise TopicLostError(
            f"internal topics of the app are gone, with what they held: {', '.join(gone)}",
            hint="reset the app, or bootstrap the store whose changelog it was",
        )


def _record(work: Work, topics: Iterable[TopicWanted], revision: AppRevision) -> None:
    app, lock = work.app, revision.lock
    locked = {real: name for name, real in real_names(revision, app.epochs).items()}
    stores = {store["changelog"]: name for name, store in lock.stores.items() if store["changelog"]}

    def change(session: Session) -> None:
        known = {row.name: row for row in apps.topics_of(session, app.name)}
        names = set()
        for topic in topics:
            names.add(topic.name)
            own = locked[topic.name]
            row = known.get(topic.name)
            if row is None:
                row = InternalTopic(
                    application_id=app.application_id,
                    name=topic.name,
                    app=app.name,
                    generation=work.generation,
                    kind=lock.internal_topics[own]["kind"],
                    store=stores.get(own),
                    partitions=topic.partitions,
                    recorded_at=work.now,
                )
                session.add(row)
            row.configs, row.is_orphan = dict(topic.configs), False
        for name, row in known.items():
            row.is_orphan = name not in names

    work.write(change)


def _check_partitions(wanted: Mapping[str, TopicWanted], found: Mapping[str, TopicFacts]) -> None:
    for name, topic in wanted.items():
        if found[name].partitions != topic.partitions:
            raise StepFailedError(
                f"{name} has {found[name].partitions} partitions, the app needs {topic.partitions}",
                hint="an input was resized: reset the app, or run a repartition job",
            )


def _confirm(work: Work, found: Mapping[str, TopicFacts]) -> None:
    """Only what was not confirmed before: an id, once known, is the topic's for good."""

    def change(session: Session) -> None:
        for row in apps.topics_of(session, work.app.name):
            if row.name in found and row.topic_id is None:
                row.topic_id, row.partitions = found[row.name].topic_id, found[row.name].partitions

    work.write(change)


def recorded_ids(work: Work) -> dict[str, str]:
    """Recorded topics and their ids. One that was made and not confirmed (a crash in between) is looked up: its row was
    written when there was no topic of that name.
    """
    rows = _rows(work)
    unconfirmed = [row.name for row in rows if row.topic_id is None]
    found: dict[str, Any] = work.cluster().topics(unconfirmed) if unconfirmed else {}
    ids = {row.name: row.topic_id for row in rows if row.topic_id is not None}
    return ids | {name: facts.topic_id for name, facts in found.items()}


def delete_topics(work: Work) -> Done:
    """Only what is recorded, with that id."""
    ids = recorded_ids(work)
    deleted = work.cluster().delete_topics(ids)
    names = [row.name for row in _rows(work)]
    work.write(lambda session: apps.drop_topics(session, work.app.application_id, names))
    return Done(f"{len(deleted)} of {len(names)} recorded topics deleted", {"deleted_topics": sorted(deleted)})
