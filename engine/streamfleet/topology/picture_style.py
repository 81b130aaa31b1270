"""The colours and letters of the picture, for light and for dark surroundings. Called by picture.py.

Plain rules with literal colours, written out twice: CSS variables would be shorter, but many programs that draw SVG do
not know them. Every rule starts with the picture's own class, because a page may contain the picture's text directly.
"""

from __future__ import annotations

from collections.abc import Mapping

from streamfleet.topology.picture_labels import HEAD_PX, NOTE_PX, SMALL_HEAD_PX

CLASS = "streamfleet-topology"
SANS = "'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'Noto Sans', sans-serif"
MONO = "ui-monospace, Menlo, Consolas, 'Liberation Mono', 'DejaVu Sans Mono', monospace"

# Selector -> (fill, stroke). "ink" and "quiet" are the two colours of text, and lie on all fills.
Palette = Mapping[str, tuple[str, str]]

LIGHT: Palette = {
    "canvas": ("#ffffff", "none"),
    "ink": ("#172033", "none"),
    "quiet": ("#4d586b", "none"),
    "frame": ("#f5f7fa", "#cdd5e0"),
    "frame.global": ("#fdf4f8", "#e3b9cd"),
    "processor": ("#ffffff", "#8b98ac"),
    "stateful": ("#ffffff", "#6b4fc4"),
    "source": ("#e9f1fe", "#4c82d8"),
    "sink": ("#e9f1fe", "#4c82d8"),
    "topic": ("#e4f5ec", "#2e8f66"),
    "internal": ("#fff3df", "#bf7a14"),
    "store": ("#f0ebff", "#6b4fc4"),
    "store.global": ("#fde6ef", "#b53a70"),
    "flow": ("none", "#647188"),
    "head": ("#647188", "none"),
    "access": ("none", "#8368d4"),
    "feedback": ("none", "#bf7a14"),
    "feedback-head": ("#bf7a14", "none"),
}

DARK: Palette = {
    "canvas": ("#10151d", "none"),
    "ink": ("#eef2f8", "none"),
    "quiet": ("#aab5c6", "none"),
    "frame": ("#171e29", "#334053"),
    "frame.global": ("#221a23", "#5e3a4d"),
    "processor": ("#202938", "#6f7f97"),
    "stateful": ("#202938", "#a78bfa"),
    "source": ("#182a47", "#5b93e6"),
    "sink": ("#182a47", "#5b93e6"),
    "topic": ("#12312a", "#3fae80"),
    "internal": ("#3a2a10", "#d99a35"),
    "store": ("#2a2149", "#a78bfa"),
    "store.global": ("#421c31", "#e0709f"),
    "flow": ("none", "#8b99af"),
    "head": ("#8b99af", "none"),
    "access": ("none", "#a78bfa"),
    "feedback": ("none", "#d99a35"),
    "feedback-head": ("#d99a35", "none"),
}


def style_sheet() -> str:
    """All rules, light first."""
    return "\n".join(
        [
            f".{CLASS} {{ color-scheme: light dark; }}",
            f".{CLASS} text {{ font-family: {SANS}; font-size: {NOTE_PX}px; text-anchor: middle; }}",
            f".{CLASS} .word {{ font-size: {HEAD_PX}px; font-weight: 600; }}",
            f".{CLASS} .small {{ font-size: {SMALL_HEAD_PX}px; }}",
            f".{CLASS} .name {{ font-family: {MONO}; }}",
            f".{CLASS} .heading {{ font-size: 18px; font-weight: 600; text-anchor: start; }}",
            f".{CLASS} .caption {{ font-size: 12px; font-weight: 600; text-anchor: start; }}",
            f".{CLASS} .legend {{ font-size: 11px; text-anchor: start; }}",
            f".{CLASS} .flow, .{CLASS} .feedback {{ stroke-width: 1.5; }}",
            f".{CLASS} .access, .{CLASS} .feedback {{ stroke-dasharray: 5 4; }}",
            f".{CLASS} .stem {{ stroke-dasharray: none; }}",
            f".{CLASS} .processor, .{CLASS} .source, .{CLASS} .sink, .{CLASS} .topic {{ stroke-width: 1.25; }}",
            f".{CLASS} .internal {{ stroke-dasharray: 6 3; }}",
            f".{CLASS} .frame.global {{ stroke-dasharray: 2 3; }}",
            *_colours(LIGHT),
            "@media (prefers-color-scheme: dark) {",
            *_colours(DARK),
            "}",
            f".{CLASS} .rim {{ fill: none; }}",
        ]
    )


def _colours(palette: Palette) -> list[str]:
    return [f".{CLASS} .{name} {{ fill: {fill}; stroke: {stroke}; }}" for name, (fill, stroke) in palette.items()]
