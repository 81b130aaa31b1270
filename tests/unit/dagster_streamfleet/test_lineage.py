from datetime import UTC, datetime

import dagster as dg
from tests.unit.streamfleet_platform.api.fake_fleet import app_detail

from dagster_streamfleet.assets import fleet_assets
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
    said = [key for key in found.get_all_asset_keys() if "feedback" in found.get(key).metadata]
    assert len(said) >= 2


def test_the_page_shows_a_fitting_picture_and_links_to_filled_in_verbs_but_no_confirmation():
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="1400" height="300"></svg>'
    text = graph(app("one", "in", "out"), pictures={"one": svg}).get(Key(["one", "app"])).description
    assert text.startswith("one of payments")
    assert "data:image/svg+xml;base64," in text
    assert "/locations/control/jobs/scale/playground/setup?config=ops%3A" in text
    assert "confirm" not in text


def test_a_snapshot_that_is_not_the_newest_says_why():
    found = graph(app("one", "in", "out"), stale="nobody answers")
    assert "nobody answers" in found.get(Key(["one", "app"])).metadata["not the newest"]
