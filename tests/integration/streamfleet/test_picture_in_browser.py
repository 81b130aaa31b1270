"""The picture as a browser draws it, with real letters: does every text lie inside its shape, in both colour schemes?"""

import html
import itertools
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

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
from streamfleet.topology.picture_labels import HEAD_PX, head_width
from streamfleet.topology.picture_style import DARK, LIGHT

pytestmark = pytest.mark.browser

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=5000",
]

# Measures every shape in the page's own coordinates: its outline, its texts, and the colour that the first text stands on.
MEASURE = """
const rect = e => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
const shapes = [...document.querySelectorAll('g[data-name]')].map(g => ({
  kind: g.getAttribute('class'),
  name: g.dataset.name,
  outline: rect(g.querySelector('rect, path')),
  fill: getComputedStyle(g.querySelector('rect, path')).fill,
  texts: [...g.querySelectorAll('text')].map(t => ({
    words: t.textContent, place: rect(t), px: parseFloat(getComputedStyle(t).fontSize), ink: getComputedStyle(t).fill })),
}));
const others = [...document.querySelectorAll('text.legend, text.heading')].map(rect);
const canvas = document.querySelector('rect.canvas');
document.getElementById('result').textContent = JSON.stringify({
  shapes, others, canvas: rect(canvas), canvasFill: getComputedStyle(canvas).fill });
"""


def chain(
    number: int,
    *paths: str,
    reads: dict[str, tuple[str, ...]],
    writes: dict[str, str],
    stores: dict[str, tuple[str, ...]],
) -> SubTopologyDescription:
    edges = dict.fromkeys(edge for path in paths for edge in itertools.pairwise(path.split(" > ")))
    nodes: list[NodeDescription] = []
    for name in dict.fromkeys(name for path in paths for name in path.split(" > ")):
        before, after = tuple(a for a, b in edges if b == name), tuple(b for a, b in edges if a == name)
        if name in reads:
            nodes.append(SourceDescription(name, reads[name], None, after))
        elif name in writes:
            nodes.append(SinkDescription(name, writes[name], None, before))
        else:
            nodes.append(ProcessorDescription(name, stores.get(name, ()), before, after))
    return SubTopologyDescription(number, tuple(nodes))


FIVE = TopologyDescription(
    (
        chain(
            0,
            "KSTREAM-SOURCE-0000000000 > KSTREAM-FLATMAPVALUES-0000000001 > KSTREAM-AGGREGATE-0000000003"
            " > KTABLE-TOSTREAM-0000000004 > KSTREAM-SINK-0000000005",
            reads={"KSTREAM-SOURCE-0000000000": ("lines",)},
            writes={"KSTREAM-SINK-0000000005": "word-counts"},
            stores={"KSTREAM-AGGREGATE-0000000003": ("KSTREAM-AGGREGATE-STATE-STORE-0000000002",)},
        ),
    ),
    (),
)

RATES = GlobalStoreDescription(
    9,
    SourceDescription("rates-source", ("exchange-rates",), None, ("KTABLE-SOURCE-0000000047",)),
    ProcessorDescription("KTABLE-SOURCE-0000000047", ("exchange-rates-STATE-STORE-0000000045",), ("rates-source",), ()),
)


def stage(number):
    """Ten nodes with a join, a shared store, names of every length and a second exit."""
    n = f"{number:02}"
    table, join = f"KTABLE-SOURCE-00000000{n}", f"KSTREAM-LEFTJOIN-00000000{n}"
    return chain(
        number,
        f"events-{n} > drop-duplicates-{n} > {join} > KSTREAM-PEEK-00000000{n}"
        f" > WWWWWW-MMMMMMMM-WWWWWWWWWW-MMMMMMMMMMM-{n} > out-{n}",
        f"customers-{n} > {table} > {join}",
        f"drop-duplicates-{n} > an-operator-with-quite-a-long-name-that-does-not-fit-{n} > rejected-{n}",
        reads={
            f"events-{n}": (f"events-{n}-repartition",),
            f"customers-{n}": ("customers", "顧客マスターデータ変更履歴"),
        },
        writes={
            f"out-{n}": f"events-{number + 1:02}-repartition",
            f"rejected-{n}": f"rejected-by-stage-{n}-of-the-pipeline",
        },
        stores={
            table: (f"customers-STATE-STORE-00000000{n}",),
            join: (f"customers-STATE-STORE-00000000{n}", f"join-buffer-{n}"),
        },
    )


SAMPLES = {
    5: FIVE,
    15: TopologyDescription((stage(0), replace(FIVE.sub_topologies[0], id=7)), ()),
    42: TopologyDescription(tuple(stage(number) for number in range(4)), (RATES,)),
}


@pytest.fixture(scope="module")
def chromium() -> str:
    return next(path for name in BROWSERS if (path := shutil.which(name)))


def measure(chromium: str, tmp_path: Path, svg: str, scheme: str, style: str = ""):
    page = tmp_path / "picture.html"
    page.write_text(
        f"<!doctype html><meta charset=utf-8><style>body {{ margin: 0 }} {style}</style>{svg}"
        f"<pre id=result></pre><script>{MEASURE}</script>",
        encoding="utf-8",
    )
    preference = f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}"
    command = [chromium, *FLAGS, preference, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()]
    dom = subprocess.run(command, check=True, capture_output=True, timeout=120).stdout.decode()
    found = re.search(r'<pre id="result">(.+?)</pre>', dom, re.DOTALL)
    assert found is not None, dom[-2000:]
    return json.loads(html.unescape(found[1]))


def inside(inner, outer, slack=0.5):
    return all(a >= b - slack for a, b in zip(inner[:2], outer[:2], strict=True)) and all(
        a <= b + slack for a, b in zip(inner[2:], outer[2:], strict=True)
    )


def overlap(one, other):
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("nodes", sorted(SAMPLES))
def test_every_text_lies_inside_its_shape_and_no_shapes_overlap(chromium, tmp_path, nodes, scheme):
    seen = measure(chromium, tmp_path, to_svg(SAMPLES[nodes], title=f"{nodes} nodes"), scheme)
    shapes = [shape for shape in seen["shapes"] if shape["kind"] != "sub-topology"]
    for shape in seen["shapes"]:
        for text in shape["texts"]:
            assert inside(text["place"], shape["outline"]), (shape["name"], text)
            assert text["px"] >= 10
        for one, other in itertools.combinations(shape["texts"], 2):
            assert not overlap(one["place"], other["place"]), (shape["name"], one, other)
    for one, other in itertools.combinations(shapes, 2):
        assert not overlap(one["outline"], other["outline"]), (one["name"], other["name"])
    for place in seen["others"]:
        assert inside(place, seen["canvas"])
        assert not any(overlap(place, shape["outline"]) for shape in seen["shapes"])
    for one, other in itertools.combinations(seen["others"], 2):
        assert not overlap(one, other)


@pytest.mark.parametrize("face", ["DejaVu Sans", "Liberation Sans"])
def test_text_fits_whatever_face_the_system_has(chromium, tmp_path, face):
    style = f".streamfleet-topology text {{ font-family: '{face}' !important }}"
    style += " .streamfleet-topology .name { font-family: 'DejaVu Sans Mono', monospace !important }"
    seen = measure(chromium, tmp_path, to_svg(SAMPLES[42]), "light", style)
    for shape in seen["shapes"]:
        for text in shape["texts"]:
            assert inside(text["place"], shape["outline"]), (shape["name"], text)


def test_no_letter_is_wider_than_the_layout_assumes(chromium, tmp_path):
    letters = [chr(code) for code in range(33, 127)]
    rows = "".join(
        f'<g data-name="{face}"><rect/>'
        + "".join(f'<text style="font: bold {HEAD_PX}px {face}">{html.escape(char * 20)}</text>' for char in letters)
        + "</g>"
        for face in ("DejaVu Sans", "Liberation Sans", "sans-serif")
    )
    seen = measure(chromium, tmp_path, f'<svg><rect class="canvas"/>{rows}</svg>', "light")
    for shape in seen["shapes"]:
        for text in shape["texts"]:
            left, _, right, _ = text["place"]
            assert 0 < right - left <= head_width(text["words"]) + 0.5, (shape["name"], text["words"])


@pytest.mark.parametrize(("scheme", "palette"), [("light", LIGHT), ("dark", DARK)])
def test_colours_follow_the_preference_of_the_reader(chromium, tmp_path, scheme, palette):
    seen = measure(chromium, tmp_path, to_svg(SAMPLES[42]), scheme)
    assert seen["canvasFill"] == rgb(palette["canvas"][0])
    fills = {shape["name"]: shape["fill"] for shape in seen["shapes"]}
    assert fills["customers"] == rgb(palette["topic"][0])
    assert fills["events-01-repartition"] == rgb(palette["internal"][0])
    assert fills["join-buffer-00"] == rgb(palette["store"][0])
    assert fills["exchange-rates-STATE-STORE-0000000045"] == rgb(palette["store.global"][0])
    assert {text["ink"] for shape in seen["shapes"] for text in shape["texts"]} == {
        rgb(palette["ink"][0]),
        rgb(palette["quiet"][0]),
    }


def rgb(colour: str) -> str:
    return "rgb({}, {}, {})".format(*(int(colour[at : at + 2], 16) for at in (1, 3, 5)))
