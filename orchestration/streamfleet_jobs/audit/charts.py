"""Small pictures for the report: inline SVG, no scripts, no fonts of their own. Pure; every text is escaped here.

Colours are named by what they mean, as variables of the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from streamfleet_jobs.audit.findings import size


class Part(NamedTuple):
    label: str
    value: float
    colour: str
    """`live`, `superseded`, `tombstone`, `accent`, `muted`."""


def stacked_bar(parts: Sequence[Part], *, height: int = 18) -> str:
    """Shares of a whole, with a legend."""
    total = sum(part.value for part in parts) or 1
    pieces, at = [], 0.0
    for part in parts:
        width = 100 * part.value / total
        title = f"{part.label}: {part.value:,.0f} ({part.value / total:.1%})"
        pieces.append(
            f'<rect x="{at:.3f}%" width="{width:.3f}%" height="{height}" fill="var(--{part.colour})">'
            f"<title>{escape(title)}</title></rect>"
        )
        at += width
    keys = "".join(
        f'<span><i style="background:var(--{part.colour})"></i>{escape(part.label)} '
        f"<b>{part.value:,.0f}</b> {part.value / total:.0%}</span>"
        for part in parts
    )
    return f'<svg class="bar" width="100%" height="{height}" role="img">{"".join(pieces)}</svg><p class="legend">{keys}</p>'


class Profile(NamedTuple):
    """Records by offset, and where the cleaner will begin."""

    live: Sequence[int]
    superseded: Sequence[int]
    tombstone: Sequence[int]
    start: int
    end: int
    low: int | None
    high: int | None
    active_base: int | None


def density(profile: Profile, *, width: int = 420, height: int = 70) -> str:
    """Stacked columns over offsets; the bracket as a band, the active segment as a dashed line."""
    columns = [sum(column) for column in zip(profile.live, profile.superseded, profile.tombstone, strict=True)]
    top, step = max(columns, default=0) or 1, width / max(len(columns), 1)
    layers = (("live", profile.live), ("superseded", profile.superseded), ("tombstone", profile.tombstone))
    shapes, heights = [], [0.0] * len(columns)
    for colour, values in layers:
        for at, value in enumerate(values):
            if value:
                tall = height * value / top
                y = height - heights[at] - tall
                shapes.append(
                    f'<rect x="{at * step:.2f}" y="{y:.2f}" width="{step * 0.92:.2f}" height="{tall:.2f}" fill="var(--{colour})"/>'
                )
                heights[at] += tall

    def x(offset: int) -> float:
        return width * min(1.0, max(0.0, (offset - profile.start) / max(1, profile.end - profile.start)))

    marks = []
    if profile.low is not None and profile.high is not None:
        left, right = x(profile.low), x(profile.high)
        marks.append(
            f'<rect x="{left - 1:.2f}" y="0" width="{max(2.0, right - left):.2f}" height="{height}" class="bracket">'
            f"<title>first dirty offset: {profile.low} to {profile.high}</title></rect>"
        )
    if profile.active_base is not None:
        at_x = x(profile.active_base)
        marks.append(f'<line x1="{at_x:.2f}" x2="{at_x:.2f}" y1="0" y2="{height}" class="active"/>')
    axis = (
        f'<text x="0" y="{height + 12}">{profile.start}</text>'
        f'<text x="{width}" y="{height + 12}" text-anchor="end">{profile.end}</text>'
    )
    box = f'viewBox="0 0 {width} {height + 16}"'
    return f'<svg class="density" {box} role="img">{"".join(shapes)}{"".join(marks)}{axis}</svg>'


def heat_map(values: Sequence[tuple[int, int]], *, cell: int = 34) -> str:
    """(partition, bytes): the darker, the more."""
    top = max((value for _, value in values), default=0) or 1
    per_row = 24
    cells = []
    for at, (number, value) in enumerate(values):
        x, y = (at % per_row) * cell, (at // per_row) * cell
        strength = 0.08 + 0.92 * value / top
        ink = "var(--paper)" if strength > 0.55 else "var(--ink)"
        cells.append(
            f'<g><rect x="{x}" y="{y}" width="{cell - 2}" height="{cell - 2}" rx="3" fill="var(--accent)" '
            f'fill-opacity="{strength:.3f}"><title>partition {number}: {escape(size(value))}</title></rect>'
            f'<text x="{x + cell / 2 - 1}" y="{y + cell / 2 + 3}" text-anchor="middle" style="fill:{ink}">{number}</text></g>'
        )
    rows = -(-len(values) // per_row) or 1
    wide = min(len(values), per_row) * cell or 1
    return f'<svg class="heat" width="{wide}" height="{rows * cell}" role="img">{"".join(cells)}</svg>'


def ranked_bars(rows: Sequence[tuple[str, float, str]]) -> str:
    """(label, value, text), the longest first."""
    top = max((value for _, value, _ in rows), default=0) or 1
    lines = "".join(
        f'<tr><td class="name">{escape(label)}</td><td class="wide"><svg width="100%" height="12">'
        f'<rect width="{max(0.4, 100 * value / top):.2f}%" height="12" rx="2" fill="var(--accent)"/></svg></td>'
        f"<td class='number'>{escape(text)}</td></tr>"
        for label, value, text in rows
    )
    return f'<table class="ranked">{lines}</table>'
