"""Copies are spread over the values of tags (KIP-708), as far as there are enough."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.streamfleet.assignment.simulated_cluster import Cluster, Process

from streamfleet.assignment import SubTopologyInfo

COUNTS = SubTopologyInfo("counts", {"words": 6}, True, ("counts-log",))


def group(tags: list[dict[str, str]], *, names: tuple[str, ...] = ("zone",), replicas: int = 1, **more) -> Cluster:
    processes = [Process(f"p{number}", tags=each) for number, each in enumerate(tags)]
    return Cluster(
        (COUNTS,), processes, rack_aware_tags=names, num_standby_replicas=replicas, max_warmup_replicas=100, **more
    )


def values(cluster: Cluster, name: str) -> list[list[str | None]]:
    """For each task, the tag's values where it and its standbys are."""
    standbys = cluster.copies("standby")
    return [
        [cluster.processes[place].tags.get(name) for place in (cluster.active_places()[task], *standbys.get(task, ()))]
        for task in cluster.stateful
    ]


def test_standbys_are_in_another_zone():
    cluster = group([{"zone": zone} for zone in "aabb"])
    cluster.settle()
    assert all(sorted(zones) == ["a", "b"] for zones in values(cluster, "zone"))


def test_a_tag_that_is_not_named_does_not_count():
    cluster = group([{"zone": zone} for zone in "abab"], names=())
    cluster.settle()
    assert not all(sorted(zones) == ["a", "b"] for zones in values(cluster, "zone"))


def test_all_copies_are_in_different_zones_if_there_are_enough():
    cluster = group([{"zone": zone} for zone in "aabbcc"], replicas=2)
    cluster.settle()
    assert all(sorted(zones) == ["a", "b", "c"] for zones in values(cluster, "zone"))


def test_a_tag_with_too_few_values_makes_room_for_the_others():
    tags = [{"zone": zone, "cluster": place} for place in ("k1", "k2") for zone in "abc"]
    cluster = group(tags, names=("zone", "cluster"), replicas=2)
    cluster.settle()
    for zones, clusters in zip(values(cluster, "zone"), values(cluster, "cluster"), strict=True):
        assert sorted(zones) == ["a", "b", "c"] and set(clusters) == {"k1", "k2"}


def test_with_one_zone_only_there_are_still_copies():
    cluster = group([{"zone": "a"}, {"zone": "a"}])
    cluster.settle()
    assert values(cluster, "zone") == [["a", "a"]] * 6


def test_a_copy_in_the_wrong_zone_moves_when_a_better_one_comes():
    cluster = group([{"zone": "a"}, {"zone": "a"}])
    cluster.settle()
    for name in ("n1", "n2"):
        cluster.processes[name] = Process(name, tags={"zone": "b"})
    cluster.settle()
    cluster.converge(4)
    assert all(sorted(zones) == ["a", "b"] for zones in values(cluster, "zone"))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries({"zone": st.sampled_from("abc"), "rack": st.sampled_from("12")}), min_size=2, max_size=8
    ),
    st.integers(1, 3),
)
def test_copies_are_never_together_and_as_far_apart_as_the_zones_allow(tags, replicas):
    cluster = group(tags, replicas=replicas)
    cluster.settle()
    cluster.converge(6)
    zones = {each["zone"] for each in tags}
    standbys = cluster.copies("standby")
    for task, found in zip(cluster.stateful, values(cluster, "zone"), strict=True):
        places = [cluster.active_places()[task], *standbys.get(task, ())]
        assert len(set(places)) == len(places) == min(1 + replicas, len(tags))
        assert len(set(found)) == min(len(zones), len(places))
