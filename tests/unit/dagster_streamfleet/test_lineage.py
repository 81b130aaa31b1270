from datetime import UTC, datetime

import dagster as dg
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.streamfleet_platform.api.fake_fleet import app_detail

from dagster_streamfleet.assets import fleet_assets
from dagster_streamfleet.lineage import Node, lineage, without_circles
from dagster_streamfleet.resource import StreamfleetResource
from dagster_streamfleet.snapshot import FleetSnapshot
from dagster_streamfleet.translator import FleetTranslator
from streamfleet_platform import views

Key = dg.AssetKey


def app(name, source, sink, **given):
    """source -> sub-0 -> repartition -> sub-1 with a store -> sink."""
    between = f"{name}-by-key-repartition"
    sub = lambda i, a, b, stores=(): views.SubTopologyView(
        id=i, content_id=str(i), sources=(a,), sinks=(b,), stores=stores
    )
    return app_detail(
        name,
        "payments",
        sub_topologies=(sub(0, source, between), sub(1, between, sink, ("counts",))),
        stores=(views.StoreView(name="counts", kind="kv", changelog=f"{name}-counts-changelog", sub_topology=1),),
        topics=(
            views.TopicView(name=source, role="input"),
            views.TopicView(name=sink, role="output"),
            views.TopicView(name=between, role="repartition"),
            views.TopicView(name=f"{name}-counts-changelog", role="changelog", store="counts"),
        ),
        **given,
    )


def graph(*apps, pictures=None, stale=None):
    snapshot = FleetSnapshot(
        taken_at=datetime(2026, 1, 1, tzinfo=UTC), apps=apps, pictures=pictures or {}, stale_reason=stale
    )
    definitions = dg.Definitions(
        assets=fleet_assets(snapshot, FleetTranslator(), "control"),
        resources={"streamfleet": StreamfleetResource(url="http://127.0.0.1:1", token="")},
    )
    return definitions.resolve_asset_graph()


def test_an_app_reads_from_its_source_to_its_changelog_and_its_sink():
    found = graph(app("one", "in", "out"))
    parents = lambda *key: found.get(Key(list(key))).parent_keys
    assert parents("one", "app") == {Key(["topic", "in"])}
    assert parents("one", "sub-0") == {Key(["topic", "in"]), Key(["one", "app"])}
    assert parents("one", "repartition", "one-by-key-repartition") == {Key(["one", "sub-0"])}
    assert Key(["one", "repartition", "one-by-key-repartition"]) in parents("one", "sub-1")
    assert parents("one", "store", "counts") == {Key(["one", "sub-1"])}
    assert parents("one", "changelog", "one-counts-changelog") == {Key(["one", "store", "counts"])}
    assert parents("topic", "out") == {Key(["one", "sub-1"])}


def test_a_topic_between_two_apps_is_one_asset_in_its_writers_group():
    found = graph(app("two", "mid", "out"), app("one", "in", "mid"))
    assert found.get(Key(["topic", "mid"])).group_name == "payments/one"
    assert found.get(Key(["topic", "mid"])).parent_keys == {Key(["one", "sub-1"])}
    assert Key(["topic", "mid"]) in found.get(Key(["two", "app"])).parent_keys
    assert found.get(Key(["topic", "in"])).group_name == "source_topics"


def test_apps_that_feed_each_other_are_sorted_and_what_was_cut_is_said():
    found = graph(app("one", "a", "b"), app("two", "b", "a"), app("own", "c", "c"))
    assert len(found.toposorted_asset_keys) == len(found.get_all_asset_keys())
    said = {
        key.to_user_string(): found.get(key).metadata["feedback"]
        for key in found.get_all_asset_keys()
        if "feedback" in found.get(key).metadata
    }
    # one edge per circle, at the place where the first app of the alphabet would read what comes back to it
    assert {place: words.split(":")[0] for place, words in said.items()} == {
        "one/app": "also reads topic/a",
        "one/sub-0": "also reads topic/a",
        "own/sub-0": "also reads topic/c",
    }


def test_the_same_circle_is_cut_at_the_same_place_whatever_the_order_of_the_apps():
    apps = [app("one", "a", "b"), app("two", "b", "c"), app("three", "c", "a")]
    cut = lambda nodes: {node.key: node.cut for node in nodes}
    assert cut(lineage(apps, FleetTranslator())) == cut(lineage(apps[::-1], FleetTranslator()))


def node(key, *upstream):
    return Node(Key([key]), "topic", "group", frozenset(Key([name]) for name in upstream))


def is_sorted_somehow(nodes):
    """Whether nodes can be taken one by one, each after its upstream."""
    left = {key: set(each.upstream) for key, each in nodes.items()}
    while free := [key for key, above in left.items() if not above & left.keys()]:
        for key in free:
            del left[key]
    return not left


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.sets(st.sampled_from("abcdefgh")), max_size=8))
def test_any_graph_comes_out_without_circles_and_every_edge_is_kept_or_recorded(edges):
    nodes = {Key([name]): node(name, *above) for name, above in edges.items()}
    cut = without_circles(nodes)
    assert is_sorted_somehow(cut)
    for key, before in nodes.items():
        assert cut[key].upstream | set(cut[key].cut) == before.upstream
        assert not cut[key].upstream & set(cut[key].cut)
    if is_sorted_somehow(nodes):
        assert cut == nodes


def test_a_chain_longer_than_pythons_stack_is_no_trouble():
    nodes = {Key([str(n)]): node(str(n), str(n + 1)) for n in range(3000)}
    assert without_circles(nodes) == nodes


def test_a_source_topic_that_serves_as_changelog_is_drawn_once_as_the_topic_it_is():
    store = views.StoreView(name="table", kind="kv", changelog="prices", sub_topology=0)
    sub = views.SubTopologyView(id=0, content_id="0", sources=("prices",), sinks=(), stores=("table",))
    found = graph(
        app_detail(
            "one",
            "payments",
            sub_topologies=(sub,),
            stores=(store,),
            topics=(views.TopicView(name="prices", role="input"),),
        )
    )
    assert {key.to_user_string() for key in found.get_all_asset_keys()} == {
        "one/app",
        "one/sub-0",
        "one/store/table",
        "topic/prices",
    }


def test_two_apps_that_read_one_topic_share_it_and_neither_owns_it():
    found = graph(app("one", "in", "a"), app("two", "in", "b"))
    topic = found.get(Key(["topic", "in"]))
    assert topic.child_keys >= {Key(["one", "sub-0"]), Key(["two", "sub-0"])}
    assert topic.group_name == "source_topics"
    assert "streamfleet/app" not in topic.tags


def test_the_page_shows_a_fitting_picture_and_links_to_filled_in_verbs_but_no_confirmation():
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="1400" height="300"></svg>'
    text = graph(app("one", "in", "out"), pictures={"one": svg}).get(Key(["one", "app"])).description
    assert text.startswith("one of payments")
    assert "data:image/svg+xml;base64," in text
    assert "/locations/control/jobs/scale/playground/setup?config=ops%3A" in text
    assert "confirm" not in text
    assert (
        "[Lineage](/asset-groups~tag%3A%22streamfleet%2Fapp%22%3D%22one%22/?expanded=global%40global%3Apayments%2C"
        in text
    )


def test_a_snapshot_that_is_not_the_newest_says_why():
    found = graph(app("one", "in", "out"), stale="nobody answers")
    assert "nobody answers" in found.get(Key(["one", "app"])).metadata["not the newest"]
