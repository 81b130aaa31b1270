import itertools
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamfleet.errors import TopologyError
from streamfleet.topology.description import (
    GlobalStoreDescription,
    NodeDescription,
    ProcessorDescription,
    SinkDescription,
    SourceDescription,
    SubTopologyDescription,
    TopologyDescription,
)
from streamfleet.topology.picture import to_svg
from streamfleet.topology.picture_graph import Kind, Vertex, to_graph
from streamfleet.topology.picture_items import Item, Link
from streamfleet.topology.picture_labels import fit_head, fit_note, head_width, note_width, store_label, vertex_label
from streamfleet.topology.picture_layout import lay_out
from streamfleet.topology.picture_order import arrange
from streamfleet.topology.picture_style import DARK, LIGHT

SVG = "{http://www.w3.org/2000/svg}"
REPARTITION = "KSTREAM-AGGREGATE-STATE-STORE-0000000003-repartition"


def part(
    number: int,
    *chains: str,
    reads: dict[str, str],
    writes: dict[str, str] | None = None,
    stores: dict[str, tuple[str, ...]] | None = None,
) -> SubTopologyDescription:
    """A sub-topology from chains such as "source > filter > sink"."""
    writes, stores = writes or {}, stores or {}
    paths = [chain.split(" > ") for chain in chains]
    edges = dict.fromkeys(edge for path in paths for edge in itertools.pairwise(path))
    nodes: list[NodeDescription] = []
    for name in dict.fromkeys(name for path in paths for name in path):
        before, after = tuple(a for a, b in edges if b == name), tuple(b for a, b in edges if a == name)
        if name in reads:
            nodes.append(SourceDescription(name, tuple(reads[name].split(", ")), None, after))
        elif name in writes:
            nodes.append(SinkDescription(name, writes[name], None, before))
        else:
            nodes.append(ProcessorDescription(name, tuple(stores.get(name, ())), before, after))
    return SubTopologyDescription(number, tuple(nodes))


def feed(number, topic, store):
    source = SourceDescription(f"{topic}-source", (topic,), None, (f"{topic}-table",))
    return GlobalStoreDescription(number, source, ProcessorDescription(f"{topic}-table", (store,), (source.name,), ()))


COUNT = TopologyDescription(
    (
        part(
            0,
            "KSTREAM-SOURCE-0000000000 > KSTREAM-KEY-SELECT-0000000001 > KSTREAM-SINK-0000000004",
            reads={"KSTREAM-SOURCE-0000000000": "orders"},
            writes={"KSTREAM-SINK-0000000004": REPARTITION},
        ),
        part(
            1,
            "KSTREAM-SOURCE-0000000006 > KSTREAM-AGGREGATE-0000000002 > KTABLE-TOSTREAM-0000000007 > counts-sink",
            reads={"KSTREAM-SOURCE-0000000006": REPARTITION},
            writes={"counts-sink": "counts"},
            stores={"KSTREAM-AGGREGATE-0000000002": ("KSTREAM-AGGREGATE-STATE-STORE-0000000003",)},
        ),
    ),
    (),
)

STREAM_JOIN = TopologyDescription(
    (
        part(
            0,
            "left > left-windowed > this-join > merge > out",
            "right > right-windowed > other-join > merge",
            reads={"left": "l", "right": "r"},
            writes={"out": "joined"},
            stores={
                "left-windowed": ("left-store",),
                "right-windowed": ("right-store",),
                "this-join": ("right-store", "unmatched"),
                "other-join": ("left-store", "unmatched"),
            },
        ),
    ),
    (),
)

FOREIGN_KEY_JOIN = TopologyDescription(
    (
        part(
            0,
            "l > l-table > fk-subscription-registration-processor > registration-sink",
            "response-source > fk-subscription-response-resolver > fk-result > out",
            reads={"l": "left", "response-source": "fk-subscription-response-topic"},
            writes={"registration-sink": "fk-subscription-registration-topic", "out": "joined"},
            stores={"l-table": ("l-store",), "fk-subscription-response-resolver": ("l-store",)},
        ),
        part(
            1,
            "r > r-table > fk-foreign-join-subscription > response-sink",
            "registration-source > fk-subscription-receive > fk-subscription-join-foreign > response-sink",
            reads={"r": "right", "registration-source": "fk-subscription-registration-topic"},
            writes={"response-sink": "fk-subscription-response-topic"},
            stores={"r-table": ("r-store",), "fk-subscription-join-foreign": ("r-store",)},
        ),
    ),
    (),
)

RETRIES = TopologyDescription(
    (
        part(
            0,
            "in > step > again",
            "step > done",
            reads={"in": "todo, retries"},
            writes={"again": "retries", "done": "results"},
        ),
    ),
    (),
)


def forty_nodes():
    """Five sub-topologies in a row, eight nodes each, that fan out and in and share a store."""
    parts = []
    for number in range(5):
        p = f"stage-{number}"
        topics = f"topic-{number}" if number else "topic-0, topic-of-a-second-input"
        parts.append(
            part(
                number,
                f"{p}-source > {p}-parse > {p}-count > {p}-merge > {p}-sink",
                f"{p}-parse > {p}-enrich > {p}-merge",
                f"{p}-parse > {p}-reject > {p}-rejects-sink",
                reads={f"{p}-source": topics},
                writes={f"{p}-sink": f"topic-{number + 1}", f"{p}-rejects-sink": f"rejects-{number}"},
                stores={
                    f"{p}-count": (f"{p}-counts",),
                    f"{p}-enrich": (f"{p}-counts", f"{p}-a-store-with-a-long-name"),
                },
            )
        )
    return TopologyDescription(tuple(parts), ())


# --- any topology ----------------------------------------------------------------------------------------------------

NAMES = st.one_of(
    st.sampled_from(["KSTREAM-AGGREGATE-0000000002", "KTABLE-TOSTREAM-0000000007", "j-this-join", "orders <&> 'é'"]),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60),
)
TOPICS = [f"topic-{n}" for n in range(5)] + ["a-repartition", "b-subscription-response-topic", "名前", 'q"<t>']


@st.composite
def sub_topologies(draw: st.DrawFn, number: int) -> SubTopologyDescription:
    """Nodes in an order in which parents come first, so that there are no circles except through topics."""
    names = [f"{name} {number}" for name in draw(st.lists(NAMES, min_size=1, max_size=9, unique=True))]
    sources = draw(st.integers(1, max(1, len(names) // 2)))
    parents = {
        name: draw(st.lists(st.sampled_from(names[:at]), min_size=1, max_size=3, unique=True))
        for at, name in enumerate(names)
        if at >= sources
    }
    children = {name: tuple(child for child in parents if name in parents[child]) for name in names}
    stores = st.lists(st.sampled_from([f"store-{number}-{n}" for n in range(3)]), max_size=2, unique=True)
    nodes: list[NodeDescription] = []
    for name in names:
        if name not in parents:
            topics = draw(st.lists(st.sampled_from(TOPICS), max_size=3, unique=True))
            nodes.append(SourceDescription(name, tuple(topics), None if topics else r"logs-.*", children[name]))
        elif children[name] or draw(st.booleans()):
            used = tuple(draw(stores)) + (("rates",) if draw(st.booleans()) else ())
            nodes.append(ProcessorDescription(name, used, tuple(parents[name]), children[name]))
        else:
            topic = draw(st.one_of(st.none(), st.sampled_from(TOPICS)))
            nodes.append(SinkDescription(name, topic, None if topic else "choose", tuple(parents[name])))
    return SubTopologyDescription(number, tuple(nodes))


@st.composite
def descriptions(draw):
    parts = tuple(draw(sub_topologies(number)) for number in range(draw(st.integers(1, 4))))
    feeds = (feed(9, "topic-0", "rates"),) if draw(st.booleans()) else ()
    return TopologyDescription(parts, feeds)


def overlap(one, other):
    return one.x < other.right and other.x < one.right and one.y < other.bottom and other.y < one.bottom


def contains(outer, inner):
    return outer.x <= inner.x and inner.right <= outer.right and outer.y <= inner.y and inner.bottom <= outer.bottom


@given(descriptions())
@settings(max_examples=80, deadline=None)
def test_no_two_boxes_overlap_in_any_topology(description):
    layout = lay_out(to_graph(description))
    for one, other in itertools.combinations([*layout.vertices.values(), *layout.stores.values()], 2):
        assert not overlap(one, other)
    for one, other in itertools.combinations(layout.frames.values(), 2):
        assert not overlap(one, other)


@given(descriptions())
@settings(max_examples=80, deadline=None)
def test_frames_hold_their_nodes_and_stores_and_no_topic_in_any_topology(description):
    graph = to_graph(description)
    layout = lay_out(graph)
    for id, box in layout.vertices.items():
        inside = {number for number, frame in layout.frames.items() if overlap(frame, box)}
        number = graph.vertices[id].frame
        assert inside == (set() if number is None else {number})
        assert number is None or contains(layout.frames[number], box)
        assert box.x >= 0 and box.right <= layout.width and box.y >= 0 and box.bottom <= layout.height
    for store, box in layout.stores.items():
        number = graph.vertices[layout.homes[store]].frame
        assert number is not None and contains(layout.frames[number], box)


@given(descriptions())
@settings(max_examples=80, deadline=None)
def test_every_edge_goes_left_to_right_unless_records_are_written_back_in_any_topology(description):
    graph = to_graph(description)
    layout = lay_out(graph)
    assert [(route.tail, route.head) for route in layout.flows] == list(graph.edges)
    for route in layout.flows:
        xs = [x for x, _ in route.points]
        assert xs == sorted(set(xs))
        assert xs[0] == layout.vertices[route.tail].right and xs[-1] == layout.vertices[route.head].x
    for route in layout.feedback:
        assert graph.vertices[route.tail].kind is Kind.SINK and graph.vertices[route.head].kind.is_topic
        assert layout.vertices[route.head].x < layout.vertices[route.tail].x


@given(descriptions())
@settings(max_examples=80, deadline=None)
def test_no_line_runs_over_a_box_in_any_topology(description):
    layout = lay_out(to_graph(description))
    boxes = [*layout.vertices.values(), *layout.stores.values()]
    for route in (*layout.flows, *layout.accesses):
        for (x, y), (to_x, to_y) in itertools.pairwise(route.points):
            if to_x <= x + 22:
                continue  # a loop beside one column
            for box in boxes:
                crosses = x < box.x + 1 and box.right - 1 < to_x and min(y, to_y) < box.bottom and box.y < max(y, to_y)
                on_it = y == to_y and x < box.right - 0.01 and box.x + 0.01 < to_x and box.y < y < box.bottom
                assert not crosses and not on_it


@given(descriptions(), st.one_of(st.none(), NAMES))
@settings(max_examples=80, deadline=None)
def test_each_node_topic_and_store_is_drawn_exactly_once_in_any_topology(description, title):
    root = ET.fromstring(to_svg(description, title=title))
    drawn = Counter((g.get("class"), g.get("data-name")) for g in root.iter(f"{SVG}g") if g.get("data-name"))
    nodes = [node for sub in description.sub_topologies for node in sub.nodes]
    nodes += [node for feed in description.global_stores for node in (feed.source, feed.processor)]
    expected = Counter(("node-shape", legal(node.name)) for node in nodes)
    expected += Counter(("sub-topology", str(p.id)) for p in (*description.sub_topologies, *description.global_stores))
    stores = {store for node in nodes if isinstance(node, ProcessorDescription) for store in node.stores}
    sources = [node for node in nodes if isinstance(node, SourceDescription)]
    sinks = [node for node in nodes if isinstance(node, SinkDescription)]
    topics = {topic for source in sources for topic in (source.topics if source.pattern is None else (source.pattern,))}
    topics |= {sink.topic for sink in sinks if sink.topic is not None}
    chosen = sum(sink.topic is None for sink in sinks)
    expected += Counter({("topic-shape", topic): 1 for topic in topics} | {("topic-shape", "choose"): chosen})
    expected += Counter(("store-shape", store) for store in stores)
    assert drawn == expected


def legal(text):
    """XML has no way to say most control characters; they are shown as the replacement character."""
    return re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "\ufffd", text)


@given(descriptions())
@settings(max_examples=30, deadline=None)
def test_the_same_description_gives_the_same_text(description):
    assert to_svg(description, title="a") == to_svg(description, title="a")


def test_the_text_does_not_depend_on_the_order_of_hashes():
    program = (
        "import hashlib, pathlib, importlib.util as u\n"
        f"s = u.spec_from_file_location('samples', {__file__!r}); m = u.module_from_spec(s); s.loader.exec_module(m)\n"
        "print(hashlib.sha256(m.to_svg(m.forty_nodes()).encode()).hexdigest())"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1


@st.composite
def items_and_links(draw):
    items = []
    for at in range(draw(st.integers(1, 14))):
        first = draw(st.integers(0, 5))
        last = first + draw(st.sampled_from([0, 0, 0, 1, 3]))
        items.append(Item(f"{at}", first, last, draw(st.sampled_from([18.0, 64.0, 121.0, 300.5]))))
    pairs = [(a, b) for a in items for b in items if a.last + 1 == b.first]
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=14, unique=True)) if pairs else []
    return items, [Link(a.id, a.height / 2, b.id, 9.0, a.last, draw(st.sampled_from([1.0, 0.4]))) for a, b in chosen]


@given(items_and_links())
@settings(max_examples=300, deadline=None)
def test_items_that_share_a_column_never_overlap_however_they_are_linked(problem):
    items, links = problem
    tops = arrange(items, links)
    for one, other in itertools.combinations(items, 2):
        if one.first <= other.last and other.first <= one.last:
            upper, lower = sorted((one, other), key=lambda item: tops[item.id])
            assert tops[upper.id] + upper.height <= tops[lower.id] + 1e-6
    assert min(tops.values()) == pytest.approx(0)


# --- what is in it ---------------------------------------------------------------------------------------------------


def texts(svg):
    return [element.text for element in ET.fromstring(svg).iter(f"{SVG}text")]


def shape(svg, name):
    return next(g for g in ET.fromstring(svg).iter(f"{SVG}g") if g.get("data-name") == name)


def classes(element):
    return [child.get("class") for child in element.iter() if child.get("class")]


def test_a_repartition_topic_stands_between_the_two_sub_topologies_it_connects():
    layout = lay_out(to_graph(COUNT))
    topic = layout.vertices[f"topic:{REPARTITION}"]
    assert layout.frames[0].right < topic.x and topic.right < layout.frames[1].x
    assert {y for route in layout.flows for _, y in route.points} == {topic.middle}, "a chain is one straight line"


def test_topics_say_whether_they_are_read_written_or_internal():
    kinds = {v.name: v.kind for v in to_graph(COUNT).vertices.values() if v.kind.is_topic}
    assert kinds == {"orders": Kind.INPUT, REPARTITION: Kind.REPARTITION, "counts": Kind.OUTPUT}
    svg = to_svg(COUNT)
    assert "topic internal" in classes(shape(svg, REPARTITION))
    assert "topic internal" not in classes(shape(svg, "orders"))
    assert {"input topic", "output topic", "internal topic"} <= set(texts(svg))


def test_a_topic_that_the_app_itself_created_for_nobody_is_not_called_a_repartition_topic():
    both = TopologyDescription(
        (
            part(0, "a > b", reads={"a": "in"}, writes={"b": "middle"}),
            part(1, "c > d", reads={"c": "middle"}, writes={"d": "x-repartition"}),
        ),
        (),
    )
    kinds = {v.name: v.kind for v in to_graph(both).vertices.values() if v.kind.is_topic}
    assert kinds == {"in": Kind.INPUT, "middle": Kind.INTERMEDIATE, "x-repartition": Kind.OUTPUT}


def test_generated_names_are_shown_as_words_with_the_name_in_small_letters():
    aggregate = shape(to_svg(COUNT), "KSTREAM-AGGREGATE-0000000002")
    large, small = aggregate.iter(f"{SVG}text")
    assert (large.text, small.text) == ("aggregate", "KSTREAM-AGGREGATE-0000000002")
    assert large.get("class") == "word ink" and small.get("class") == "quiet name"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("KSTREAM-FLATMAPVALUES-0000000001", "flat map values"),
        ("KSTREAM-KEY-SELECT-0000000001", "select key"),
        ("KSTREAM-BRANCH-0000000022", "branch"),
        ("KSTREAM-BRANCH-0000000022premium", "branch premium"),
        ("KTABLE-SOURCE-0000000002", "table source"),
        ("KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR-0000000012", "foreign-key resolve"),
        ("COGROUPKSTREAM-MERGE-0000000009", "merge"),
        ("COGROUPKSTREAM-AGGREGATE-STATE-STORE-0000000004-repartition-filter", "repartition filter"),
        ("KSTREAM-SOMETHING-NEW-0000000009", "something new"),
        ("payments-outer-other-join", "outer join other"),
        ("score-payments", "score-payments"),
    ],
)
def test_processors_show_their_operator(name, words):
    assert vertex_label(Vertex("node:x", Kind.PROCESSOR, name, 0)).head == words


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("KSTREAM-AGGREGATE-STATE-STORE-0000000003", "aggregate store"),
        ("KSTREAM-JOINTHIS-0000000004-store", "join this store"),
        ("KSTREAM-LEFTJOIN-0000000004-Buffer", "left join buffer"),
        ("KTABLE-SUPPRESS-STATE-STORE-0000000004", "suppress store"),
        ("KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-0000000010", "foreign-key subscription store"),
        ("customers-STATE-STORE-0000000002", "customers store"),
        ("word-counts", "word-counts"),
    ],
)
def test_stores_show_what_they_are_for(name, words):
    assert store_label(name, is_global=False).head == words


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        (Kind.REPARTITION, REPARTITION, "aggregate repartition"),
        (Kind.REPARTITION, "KSTREAM-REPARTITION-0000000003-repartition", "repartition"),
        (Kind.REPARTITION, "by-user-repartition", "by-user-repartition"),
        (Kind.FOREIGN_KEY, "KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000006-topic", "foreign-key subscribe"),
        (Kind.INPUT, REPARTITION, REPARTITION),
    ],
)
def test_only_internal_topics_with_generated_names_are_shown_as_words(kind, name, words):
    assert vertex_label(Vertex("topic:x", kind, name)).head == words


def test_a_store_used_by_several_processors_is_drawn_once_at_the_one_that_fills_it():
    graph = to_graph(STREAM_JOIN)
    layout = lay_out(graph)
    home, store = layout.vertices["node:left-windowed"], layout.stores["left-store"]
    assert home.bottom < store.y and home.x < store.x and store.right == home.right
    used = {(route.tail, route.head) for route in layout.accesses}
    assert {("left-store", "node:other-join"), ("right-store", "node:this-join")} <= used
    svg = to_svg(STREAM_JOIN)
    assert svg.count('data-name="left-store"') == 1
    assert "processor stateful" in classes(shape(svg, "left-windowed"))
    assert "processor stateful" not in classes(shape(svg, "merge"))


def test_two_users_in_one_column_are_joined_to_their_store_by_a_loop_beside_it():
    layout = lay_out(to_graph(STREAM_JOIN))
    (route,) = [route for route in layout.accesses if route.tail == "unmatched"]
    (x, y), (to_x, to_y) = route.points
    assert (x, to_x) == (layout.stores["unmatched"].x, layout.vertices[route.head].x)
    assert layout.vertices[route.head].y < to_y < layout.vertices[route.head].bottom and y != to_y


def test_a_global_store_is_marked_and_has_its_own_frame():
    svg = to_svg(TopologyDescription(COUNT.sub_topologies, (feed(2, "rates", "rates-store"),)))
    assert "store global" in classes(shape(svg, "rates-store"))
    assert "Sub-topology 2 · global store" in texts(svg)
    assert "store global" not in classes(shape(svg, "KSTREAM-AGGREGATE-STATE-STORE-0000000003"))


def test_a_sub_topology_that_gets_its_answers_back_from_another_still_reads_left_to_right():
    graph = to_graph(FOREIGN_KEY_JOIN)
    layout = lay_out(graph)
    assert graph.feedback == ()
    asked, answered = (layout.vertices[f"topic:fk-subscription-{t}-topic"] for t in ("registration", "response"))
    inner, outer = layout.frames[1], layout.frames[0]
    assert asked.right < inner.x < inner.right < answered.x
    assert outer.x < asked.x and answered.right < outer.right


def test_an_input_that_is_not_needed_yet_waits_at_the_entrance_of_its_sub_topology():
    layout = lay_out(to_graph(FOREIGN_KEY_JOIN))
    assert layout.vertices["topic:right"].x == layout.vertices["topic:fk-subscription-registration-topic"].x


def test_outputs_stand_at_the_end_of_their_sub_topology():
    layout = lay_out(to_graph(forty_nodes()))
    for number in range(5):
        assert layout.vertices[f"topic:rejects-{number}"].x > layout.frames[number].right


def test_records_written_back_are_shown_as_a_return_line_under_everything():
    graph = to_graph(RETRIES)
    layout = lay_out(graph)
    assert graph.feedback == (("node:again", "topic:retries"),)
    (route,) = layout.feedback
    lowest = max(box.bottom for box in [*layout.vertices.values(), *layout.frames.values()])
    assert max(y for _, y in route.points) > lowest
    assert "written back" in texts(to_svg(RETRIES))
    assert "written back" not in texts(to_svg(COUNT))


def test_processors_in_a_circle_are_refused():
    nodes = (ProcessorDescription("a", (), ("b",), ("b",)), ProcessorDescription("b", (), ("a",), ("a",)))
    with pytest.raises(TopologyError, match="circle: b, a, b; send one of them through a topic"):
        to_svg(TopologyDescription((SubTopologyDescription(0, nodes),), ()))


def test_a_topology_without_nodes_is_an_empty_picture():
    root = ET.fromstring(to_svg(TopologyDescription((SubTopologyDescription(0, ()),), ()), title="nothing yet"))
    assert [text.text for text in root.iter(f"{SVG}text")] == ["nothing yet"]


def test_forty_nodes_do_not_overlap_and_no_line_crosses_another_without_need():
    layout = lay_out(to_graph(forty_nodes()))
    boxes = [*layout.vertices.values(), *layout.stores.values()]
    assert len([id for id in layout.vertices if id.startswith("node:")]) == 40
    assert not [pair for pair in itertools.combinations(boxes, 2) if overlap(*pair)]
    assert crossings(layout) == 0


def test_lines_are_straight_or_clearly_bent():
    orders = part(
        0,
        "orders > clean > by-product > not-null > repartition-sink",
        "clean > rejected-sink",
        "clean > enrich > format > enriched-sink",
        "customers > table > enrich",
        reads={"orders": "orders", "customers": "customers"},
        writes={"repartition-sink": "x-repartition", "rejected-sink": "rejected", "enriched-sink": "enriched"},
        stores={"table": ("customers-store",), "enrich": ("customers-store",)},
    )
    layout = lay_out(to_graph(TopologyDescription((orders,), ())))
    bends = [abs(b[1] - a[1]) for route in layout.flows for a, b in itertools.pairwise(route.points)]
    assert [bend for bend in bends if 0.05 < bend < 20] == []
    assert sum(bend > 20 for bend in bends) == 2, "to the first and the last of three branches"


def crossings(layout):
    """Bends that swap places in the gap between two columns."""
    bends = [pair for route in layout.flows for pair in list(itertools.pairwise(route.points))[::2]]
    return sum(
        a[0][0] == b[0][0] and (a[0][1] - b[0][1]) * (a[1][1] - b[1][1]) < 0
        for a, b in itertools.combinations(bends, 2)
    )


# --- text ------------------------------------------------------------------------------------------------------------


def test_long_names_lose_their_middle_and_keep_it_in_the_tooltip():
    name = "remove-everything-that-nobody-will-ever-ask-for-again-v42"
    long = TopologyDescription((part(0, f"a > {name}", reads={"a": "in"}),), ())
    group = shape(to_svg(long), name)
    shown = group.findtext(f"{SVG}text") or ""
    assert shown.startswith("remove-") and shown.endswith("-v42") and shown.count("…") == 1 and len(shown) < len(name)
    assert (group.findtext(f"{SVG}title") or "").startswith(name)


@given(st.text(max_size=80), st.floats(30, 300))
def test_fitted_text_is_never_wider_than_its_room(text, room):
    head, size_px = fit_head(text, room)
    assert head_width(head, size_px) <= room
    assert note_width(fit_note(text, room)) <= room


@given(st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=12))
def test_a_name_that_its_column_can_hold_is_shown_in_full_size(name):
    svg = to_svg(TopologyDescription((part(0, "a > b", reads={"a": f"t{name}"}, writes={"b": "o"}),), ()))
    text = shape(svg, f"t{name}").find(f"{SVG}text")
    assert text is not None and (text.text, text.get("class")) == (f"t{name}", "word ink")


def test_names_are_escaped():
    evil = '</text><script>alert("&")</script>'
    svg = to_svg(TopologyDescription((part(0, f"a > {evil}", reads={"a": "<in>"}),), ()), title="<b>")
    root = ET.fromstring(svg)
    assert not list(root.iter(f"{SVG}script"))
    assert shape(svg, evil) is not None and root.findtext(f"{SVG}title") == "<b>"


def test_the_picture_tells_screen_readers_what_it_shows():
    root = ET.fromstring(to_svg(COUNT, title="Order counts"))
    title, desc = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None and desc is not None
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == f"{title.get('id')} {desc.get('id')}"
    assert title.text == "Order counts"
    assert desc.text == "2 sub-topologies, 7 nodes, 1 store. Reads orders. Writes counts."


def test_two_pictures_on_one_page_have_different_ids():
    ids = [set(re.findall(r'id="(\w+)"', to_svg(COUNT, title=title))) for title in ("a", "b")]
    assert len(ids[0]) == 2 and not ids[0] & ids[1]


def test_the_picture_needs_nothing_from_outside():
    svg = to_svg(forty_nodes(), title="t")
    assert not re.search(r"href|url\(|@import|<script|<image", svg)
    assert re.findall(r"https?://[^\"]+", svg) == ["http://www.w3.org/2000/svg"]


def test_letters_are_never_smaller_than_ten_pixels():
    sizes = [int(size) for size in re.findall(r"font-size: (\d+)px", to_svg(COUNT))]
    assert sizes and min(sizes) >= 10


def test_the_style_follows_the_colour_scheme_of_the_reader():
    style = ET.fromstring(to_svg(COUNT)).findtext(f"{SVG}style") or ""
    assert "color-scheme: light dark" in style
    light, dark = style.split("@media (prefers-color-scheme: dark)")
    assert LIGHT["canvas"][0] in light and DARK["canvas"][0] in dark


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_text_has_enough_contrast_on_every_surface(palette):
    surfaces = [fill for name, (fill, stroke) in palette.items() if stroke != "none" and fill != "none"]
    for text, surface in itertools.product(["ink", "quiet"], [*surfaces, palette["canvas"][0]]):
        assert contrast(palette[text][0], surface) >= 4.5, (text, surface)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_lines_and_outlines_of_nodes_can_be_told_from_what_is_behind_them(palette):
    for name in ("flow", "access", "feedback", "processor", "stateful", "source", "topic", "internal", "store"):
        assert contrast(palette[name][1], palette["canvas"][0]) >= 2.8, name


def contrast(one, other):
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
