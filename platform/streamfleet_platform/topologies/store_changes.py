"""What happens to stores between two locks. Called by lock_diff.py.

A store is known by its name: that names its rows on disk and its changelog. One that is gone while another of the same make
appeared in its place was probably renamed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamfleet_platform.topologies.lock import TopologyLock
from streamfleet_platform.topologies.verdicts import Change, Verdict

Store = Mapping[str, Any]

_NEEDS_NEW_STATE = "raise the generation, or reset the app; a bootstrap can fill the store from data at rest"
_FORMAT_FIELDS = {
    "kind": "kind",
    "windowed": "kind",
    "time_first": "key format",
    "retain_duplicates": "key format",
    "window_size_ms": "window size",
    "segment_interval_ms": "segment interval",
    "retention_ms": "retention",
}
"""What decides how rows and changelog records are laid out, and for how long they are kept."""


def renamed_stores(old: TopologyLock, new: TopologyLock) -> dict[str, str]:
    """New names by old ones, where exactly one store that is gone fits exactly one that is new."""
    gone = {name: _make(old, name) for name in old.stores.keys() - new.stores.keys()}
    fresh = {name: _make(new, name) for name in new.stores.keys() - old.stores.keys()}
    renames: dict[str, str] = {}
    for name, make in gone.items():
        twins = [other for other, its_make in gone.items() if _fits(its_make, make)]
        matches = [other for other, its_make in fresh.items() if _fits(its_make, make)]
        if len(twins) == 1 and len(matches) == 1:
            renames[name] = matches[0]
    return renames


def _possible_names(old: TopologyLock, new: TopologyLock, name: str) -> list[str]:
    """The new stores that a store which is gone may have become, where that is not certain."""
    make = _make(old, name)
    return sorted(other for other in new.stores.keys() - old.stores.keys() if _fits(_make(new, other), make))


Make = tuple[dict[str, Any], frozenset[str]]


def _fits(one: Make, other: Make) -> bool:
    """The same format, fed from some of the same topics: others may have come or gone in the same change."""
    return one[0] == other[0] and (one[1] == other[1] or not one[1].isdisjoint(other[1]))


def _make(lock: TopologyLock, name: str) -> Make:
    """What a rename leaves as it is: format and serdes, and where its records come from."""
    store = lock.stores[name]
    part = lock.part_of_store(name)
    sources = frozenset() if part is None else _external_sources(lock, part)
    named_after_it = ("changelog",)
    return {key: value for key, value in store.items() if key not in named_after_it}, sources


def _external_sources(lock: TopologyLock, part: Mapping[str, Any]) -> frozenset[str]:
    """Repartition topics are often named after the store they lead to."""
    topics = {topic for node in part["nodes"] if node["kind"] == "source" for topic in node["topics"]}
    return frozenset(topics - lock.internal_topics.keys())


def store_changes(old: TopologyLock, new: TopologyLock, renames: Mapping[str, str]) -> Iterator[Change]:
    for name in sorted(old.stores.keys() | new.stores.keys()):
        if name in renames:
            yield _renamed(name, renames[name])
        elif name in renames.values():
            continue
        elif name not in new.stores:
            yield _removed(name, old.stores[name], _possible_names(old, new, name))
        elif name not in old.stores:
            yield _added(name, new.stores[name])
        else:
            yield from _changed(name, old.stores[name], new.stores[name])


def _added(name: str, store: Store) -> Change:
    begins = (
        "it begins empty, or with a bootstrap"
        if store["source_topic"] is None
        else f"it is restored from {store['source_topic']}"
    )
    return Change(
        "store added",
        name,
        Verdict.RESTART,
        f"the content id of its sub-topology changes: stop all workers, start all; {begins}; other stores are taken over by name",
    )


def _removed(name: str, store: Store, possible_names: list[str]) -> Change:
    topic = f"; its changelog {store['changelog']} becomes an orphan candidate" if _owns_changelog(store) else ""
    reason = f"the content id of its sub-topology changes: stop all workers, start all; its content is given up{topic}"
    if not possible_names:
        return Change("store removed", name, Verdict.RESTART, reason, lost_state=(name,))
    # What may be a rename weighs as much as one that is certain: else one more change would hide it.
    now = " or ".join(possible_names)
    reason += f"; if it was renamed to {now}, keep its name, or have the new store built anew"
    return Change("store removed", name, Verdict.MIGRATE, reason, lost_state=(name,))


def _renamed(name: str, now: str) -> Change:
    return Change(
        "store renamed",
        f"{name} -> {now}",
        Verdict.MIGRATE,
        f"its rows and its changelog are found by name, so all of its content is lost: keep the name {name} in the code, or have "
        f"{now} built anew, from the inputs or by a bootstrap from data at rest",
        lost_state=(name,),
    )


def _changed(name: str, old: Store, new: Store) -> Iterator[Change]:
    for field, words in _FORMAT_FIELDS.items():
        if old.get(field) != new.get(field):
            reason = (
                f"{words} was {old.get(field)}, is {new.get(field)}: the rows it has cannot be used; {_NEEDS_NEW_STATE}"
            )
            yield Change(f"store {words} changed", name, Verdict.INCOMPATIBLE, reason, lost_state=(name,))
    for field in ("key_serde", "value_serde"):
        yield from _serde_changes(name, field.removesuffix("_serde"), old.get(field), new.get(field))
    yield from _logging_changes(name, old, new)
    if old.get("engine") != new.get("engine"):
        yield _engine_changed(name, old, new)
    if old.get("max_entries") != new.get("max_entries") and old.get("kind") == new.get("kind"):
        reason = f"it keeps {new.get('max_entries')} entries instead of {old.get('max_entries')}"
        yield Change("store size changed", name, Verdict.ROLLING, reason)
    if old.get("history_ms") != new.get("history_ms") and old.get("kind") == new.get("kind"):
        reason = f"it keeps versions for {new.get('history_ms')} ms instead of {old.get('history_ms')}; what is forgotten stays so"
        yield Change("store history changed", name, Verdict.ROLLING, reason)


def _serde_changes(name: str, side: str, old: Store | None, new: Store | None) -> Iterator[Change]:
    if old == new:
        return
    old_id, new_id = _id(old), _id(new)
    if old_id != new_id:
        reason = f"its {side}s were written with {old_id} and would be read with {new_id}; {_NEEDS_NEW_STATE}"
        yield Change(f"store {side} serde changed", name, Verdict.INCOMPATIBLE, reason, lost_state=(name,))
    else:
        yield Change(
            f"store {side} schema changed",
            name,
            Verdict.ROLLING,
            f"{side}s are still {new_id}, with other fields: {field_changes(old or {}, new or {})}; old rows are read with the new "
            "schema, and by old workers the other way round while both run: new fields need defaults",
            is_warning=True,
        )


def _id(serde: Store | None) -> str:
    return "the configured default" if serde is None else str(serde["id"])


def field_changes(old: Store, new: Store) -> str:
    """Which outermost fields of a schema differ, in words."""
    before, after = old.get("fields", {}), new.get("fields", {})
    words = [f"{name} added" for name in sorted(after.keys() - before.keys())]
    words += [f"{name} removed" for name in sorted(before.keys() - after.keys())]
    words += [
        f"{name} was {before[name]}, is {after[name]}"
        for name in sorted(before)
        if after.get(name, before[name]) != before[name]
    ]
    return ", ".join(words) or "inside the outermost ones"


def _logging_changes(name: str, old: Store, new: Store) -> Iterator[Change]:
    if old["logged"] and not new["logged"] and new["source_topic"] is None:
        reason = f"nothing restores it any more, its content goes with the disk; {old['changelog']} becomes an orphan"
        yield Change("store logging stopped", name, Verdict.RESTART, reason, is_warning=True)
    elif not old["logged"] and new["logged"] and old["source_topic"] is None:
        reason = "what it holds now is not in its new changelog and is lost with the next move: bootstrap it, or reset the app"
        yield Change("store logging begun", name, Verdict.MIGRATE, reason, lost_state=(name,))
    elif old["changelog"] != new["changelog"]:
        yield _changelog_changed(name, old, new)
    if old["log_config"] != new["log_config"]:
        names = sorted(set(old["log_config"].items()) ^ set(new["log_config"].items()))
        reason = f"settings of its changelog change: {', '.join(sorted({setting for setting, _ in names}))}"
        yield Change("store changelog settings changed", name, Verdict.ROLLING, reason)


def _changelog_changed(name: str, old: Store, new: Store) -> Change:
    moved = f"it was restored from {old['changelog']} and would be from {new['changelog']}"
    if new["source_topic"] is not None:
        reason = f"{moved}, an input: that must hold the last value of every key; stop all workers, start all, it is read again"
        return Change("store changelog changed", name, Verdict.RESTART, reason, is_warning=True)
    reason = f"{moved}, which is empty: bootstrap it, or what the store holds is lost with the next move"
    return Change("store changelog changed", name, Verdict.MIGRATE, reason, lost_state=(name,))


def _engine_changed(name: str, old: Store, new: Store) -> Change:
    restored = old["changelog"] is not None and new["changelog"] is not None
    where = f"its rows move from {old.get('engine')} to {new.get('engine')}"
    if restored:
        return Change(
            "store engine changed", name, Verdict.RESTART, f"{where}: all of it is restored from its changelog"
        )
    return Change(
        "store engine changed", name, Verdict.MIGRATE, f"{where}, and there is no changelog", lost_state=(name,)
    )


def _owns_changelog(store: Store) -> bool:
    return store["changelog"] is not None and store["source_topic"] is None
