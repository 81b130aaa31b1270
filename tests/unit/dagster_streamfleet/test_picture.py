"""A picture is broken into rows as a text is into lines: nothing is cut through, nothing is lost, and it fits."""

import importlib
import itertools
import re

import pytest

from dagster_streamfleet.picture import MAX_PIXELS, fitted
from streamfleet.topology.picture import to_svg

APPS = ("country_activity", "country_view", "order_enrichment", "orders")
ROW = re.compile(r'<svg x="0" y="([\d.]+)" width="([\d.]+)" height="[\d.]+" viewBox="([\d.]+) 0 ([\d.]+)')
BOX = re.compile(r'<rect class="(?:source|processor|sink)[^"]*" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"')


def drawn(app):
    return to_svg(importlib.import_module(f"examples.apps.{app}").topology().describe())


def size(svg):
    return tuple(float(re.search(rf'{name}="([\d.]+)"', svg)[1]) for name in ("width", "height"))


@pytest.mark.parametrize("app", APPS)
def test_every_shape_is_whole_in_one_row_and_no_strip_is_left_out(app):
    svg = drawn(app)
    fit = fitted(svg)
    rows = [(float(start), float(start) + float(wide)) for _, _, start, wide in ROW.findall(fit)]
    assert rows[0][0] == 0
    assert rows[-1][1] == size(svg)[0]
    assert all(one[1] == other[0] for one, other in itertools.pairwise(rows))
    for x, wide in BOX.findall(svg):
        assert sum(start < float(x) and float(x) + float(wide) < end for start, end in rows) == 1


@pytest.mark.parametrize("app", APPS)
def test_it_is_no_larger_than_the_column_and_larger_than_in_one_row(app):
    svg = drawn(app)
    width, height = size(fitted(svg))
    assert max(width, height) <= MAX_PIXELS
    shown = max(float(wide) for _, wide, _, _ in ROW.findall(fitted(svg)))
    assert width / shown >= min(1.0, MAX_PIXELS / size(svg)[0])


def test_a_small_picture_stays_in_one_row_of_its_own_size():
    svg = '<svg xmlns="http://www.w3.org/2000/svg" class="x" width="300" height="100"><rect/></svg>'
    fit = fitted(svg)
    assert size(fit) == (300, 100)
    assert len(ROW.findall(fit)) == 1
    assert '<g id="whole" class="x"><rect/></g>' in fit


def test_one_without_gaps_or_sizes_is_left_as_it_is():
    assert fitted("<svg/>") == "<svg/>"
    wide = '<svg class="" width="7000" height="100"><rect class="processor" x="5" y="5" width="6990"/></svg>'
    assert len(ROW.findall(fitted(wide))) == 1
