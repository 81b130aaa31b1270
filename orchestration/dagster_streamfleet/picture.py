"""A topology's picture, made to fit the column in which Dagster shows an app's page. Used by app_page.py.

The server draws a topology as one line from left to right; squeezed into the column, nobody could read a long one. So it is cut
into rows where no shape stands, as a text is broken between words. The drawing is in the result once and shown once per row.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass

MAX_PIXELS = 700
"""What is larger is clipped."""
_MAX_ROWS = 8
_LEGIBLE = 0.7
"""Of its size: its smallest letters have ten pixels."""
_ROOT = re.compile(r"<svg\b[^>]*>", re.DOTALL)
_ATTRIBUTE = re.compile(r'([\w:-]+)="([^"]*)"')
_BOX = re.compile(r'<rect class="(?!frame|canvas)[^"]*" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"')
_OUTLINE = re.compile(r'<path class="(?:topic|store)[^"]*" d="([^"]*)"')
_PLACE = re.compile(r"[MH]([\d.]+)|A[\d.]+ [\d.]+ 0 [01] [01] ([\d.]+)")
_BULGE = 8.0
"""By which a topic's round ends stand out of the places its outline names."""


def data_uri(svg: str) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def fitted(svg: str) -> str:
    """The picture, no larger than Dagster shows whole, in the fewest rows in which it can be read, or is read best."""
    root = _ROOT.search(svg)
    attributes = dict(_ATTRIBUTE.findall(root.group())) if root else {}
    if root is None or not {"width", "height"} <= attributes.keys():
        return svg
    width, height = float(attributes["width"]), float(attributes["height"])
    gaps = _gaps(svg, width)
    best = max(
        (_Rows(_borders(gaps, width, rows), height) for rows in range(1, _MAX_ROWS + 1)), key=lambda rows: rows.scale
    )
    return best.drawn(svg[root.end() :].rpartition("</svg>")[0], attributes.get("class", ""))


@dataclass(frozen=True)
class _Rows:
    borders: Sequence[float]
    """Where rows begin, and where the last one ends."""
    height: float
    """Of one row."""

    @property
    def size(self) -> tuple[float, float]:
        return max(end - start for start, end in self._parts), self.height * (len(self.borders) - 1)

    @property
    def scale(self) -> float:
        return min(1.0, MAX_PIXELS / max(*self.size, 1.0))

    @property
    def _parts(self) -> list[tuple[float, float]]:
        return list(zip(self.borders, self.borders[1:], strict=False))

    def drawn(self, content: str, style_class: str) -> str:
        width, height = self.size
        shown = "".join(
            f'<svg x="0" y="{row * self.height:g}" width="{end - start:g}" height="{self.height:g}" '
            f'viewBox="{start:g} 0 {end - start:g} {self.height:g}"><use href="#whole"/></svg>'
            for row, (start, end) in enumerate(self._parts)
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * self.scale:.0f}" '
            f'height="{height * self.scale:.0f}" viewBox="0 0 {width:g} {height:g}">'
            f'<defs><g id="whole" class="{style_class}">{content}</g></defs>{shown}</svg>'
        )


def _gaps(svg: str, width: float) -> list[float]:
    """The middle of every gap between shapes, from left to right."""
    shapes = [(float(x), float(x) + float(wide)) for x, wide in _BOX.findall(svg)]
    for outline in _OUTLINE.findall(svg):
        places = [float(one or other) for one, other in _PLACE.findall(outline)]
        if places:
            shapes.append((min(places) - _BULGE, max(places) + _BULGE))
    found, right = [], 0.0
    for start, end in sorted(shapes):
        if start > right > 0:
            found.append((start + right) / 2)
        right = max(right, end)
    return [gap for gap in found if 0 < gap < width]


def _borders(gaps: Sequence[float], width: float, rows: int) -> list[float]:
    """Rows of about the same length; fewer, where there are no gaps for so many."""
    wanted = [width * row / rows for row in range(1, rows)]
    inner = {min(gaps, key=lambda gap: abs(gap - place)) for place in wanted} if gaps else set()
    return [0.0, *sorted(inner), width]
