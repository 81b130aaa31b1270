"""What is written on the shapes of a picture: readable words for generated names, and how much room a text needs.

Called by picture_layout.py (how wide a column must be) and picture_shapes.py (what fits). A generated name such as
KSTREAM-AGGREGATE-0000000002 says "aggregate" in large letters and itself in small ones; a given name is large itself.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from streamfleet.topology.picture_graph import Kind, Vertex

HEAD_PX = 13
SMALL_HEAD_PX = 11  # for a name that would not fit otherwise
NOTE_PX = 10

_GENERATED = re.compile(r"^(?:KSTREAM|KTABLE|COGROUPKSTREAM|GLOBALKTABLE)-(?P<operator>.+?)-\d{10}(?P<rest>.*)$")
_GENERATED_STORE = re.compile(r"^(?P<what>.+?)(?:-STATE-STORE-\d{10}|-\d{10}-(?P<noun>store|Buffer))$")
_GENERATED_TOPIC = re.compile(
    r"^(?:KSTREAM|KTABLE|COGROUPKSTREAM)-(?P<what>.+?)(?:-STATE-STORE)?-\d{10}-(?:repartition|topic)$"
)

# Generated operator words that are not plain English when in lower case.
_WORDS = {
    "FK-JOIN-OUTPUT": "foreign-key join result",
    "FK-JOIN-SUBSCRIPTION-PROCESSOR": "foreign-key join",
    "FK-JOIN-SUBSCRIPTION-REGISTRATION": "foreign-key subscribe",
    "FK-JOIN-SUBSCRIPTION-RESPONSE": "foreign-key response",
    "FK-JOIN-SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR": "foreign-key resolve",
    "FK-JOIN-SUBSCRIPTION": "foreign-key subscription",
    "FLATMAP": "flat map",
    "FLATMAPVALUES": "flat map values",
    "FOREACH": "for each",
    "JOINOTHER": "join other",
    "JOINTHIS": "join this",
    "KEY-SELECT": "select key",
    "LEFTJOIN": "left join",
    "MAPVALUES": "map values",
    "OUTEROTHER": "outer join other",
    "OUTERSHARED": "outer join shared",
    "OUTERTHIS": "outer join this",
    "PRINTER": "print",
    "PROCESSOR": "process",
    "PROCESSVALUES": "process values",
    "SELECT": "select key",
    "TOSTREAM": "to stream",
    "TOTABLE": "to table",
    "TRANSFORMVALUES": "transform values",
    "WINDOWED": "window for join",
}

# What the DSL appends to a given name when one operator becomes several nodes. Longer endings first.
_ENDINGS = {
    "-subscription-registration-processor": "foreign-key subscribe",
    "-subscription-response-resolver": "foreign-key resolve",
    "-subscription-receive": "foreign-key receive",
    "-subscription-join-foreign": "foreign-key join",
    "-foreign-join-subscription": "foreign-key join",
    "-repartition-filter": "repartition filter",
    "-outer-other-join": "outer join other",
    "-outer-this-join": "outer join this",
    "-other-windowed": "window for join",
    "-this-windowed": "window for join",
    "-cogroup-merge": "cogroup merge",
    "-join-other": "join other",
    "-other-join": "join other",
    "-join-this": "join this",
    "-this-join": "join this",
}

# Widths of bold letters, in parts of their size. Those of DejaVu Sans, the widest of the faces that the picture may be
# shown in, so that text which fits here fits everywhere.
_ADVANCES = {
    char: width
    for width, chars in (
        (0.39, "ijl '/I\\|,."),
        (0.47, ":;-f!()[]"),
        (0.53, 'tr`"*'),
        (0.62, "?zcsJ_"),
        (0.71, "LvxyakEFTeo"),
        (0.74, "0123456789hnuSYbdgpqCPZ{}$"),
        (0.88, "BAKRVXUGD#+<=>HN^~OQ&"),
        (1.11, "w%@MmW…"),
    )
    for char in chars
}


@dataclass(frozen=True)
class Label:
    """`note_is_name`: the small line is an exact name, set in the typewriter face."""

    head: str
    note: str
    note_is_name: bool = False

    @property
    def width(self) -> float:
        """What both lines need, unshortened."""
        return max(head_width(self.head), note_width(self.note))


def vertex_label(vertex: Vertex) -> Label:
    """What stands on a node or a topic."""
    generated = _GENERATED_TOPIC.match(vertex.name) if vertex.kind.is_internal else None
    if generated is not None:
        words = _in_words(generated["what"])
        is_plain = words == "repartition" or vertex.kind is Kind.FOREIGN_KEY
        return Label(words if is_plain else f"{words} repartition", vertex.name, note_is_name=True)
    if vertex.kind.is_topic:
        return Label(vertex.name, vertex.kind.value)
    if vertex.kind is Kind.PROCESSOR:
        operator = _operator(vertex.name)
        return Label(vertex.name, "processor") if operator is None else Label(operator, vertex.name, note_is_name=True)
    # Sources and sinks have their topic beside them, so their own name is never the news.
    return Label(vertex.kind.value, vertex.name, note_is_name=True)


def store_label(name: str, *, is_global: bool) -> Label:
    """What stands on a store."""
    kind = "global store" if is_global else "state store"
    generated = _GENERATED_STORE.match(name)
    if generated is None:
        return Label(name, kind)
    what = re.sub(r"^(KSTREAM|KTABLE|COGROUPKSTREAM)-", "", generated["what"])
    word = _in_words(what) if what != generated["what"] else what
    noun = "global store" if is_global else (generated["noun"] or "store").lower()
    return Label(f"{word} {noun}", name, note_is_name=True)


def _operator(name: str) -> str | None:
    ending = next((words for ending, words in _ENDINGS.items() if name.endswith(ending)), None)
    if ending is not None:
        return ending
    generated = _GENERATED.match(name)
    if generated is None:
        return None
    words = "table source" if name.startswith("KTABLE-SOURCE-") else _in_words(generated["operator"])
    return f"{words} {generated['rest'].lstrip('-')}".rstrip()


def _in_words(operator: str) -> str:
    return _WORDS.get(operator, operator.lower().replace("-", " "))


def head_width(text: str, size_px: int = HEAD_PX) -> float:
    """At most this wide, whatever the face."""
    return sum(_advance(char) for char in text) * size_px


def note_width(text: str) -> float:
    """Typewriter faces are 0.6 of their size wide; anything wider than Latin letters takes two such places."""
    return sum(1.25 if _is_wide(char) else 0.61 for char in text) * NOTE_PX


def fit_head(text: str, width: float) -> tuple[str, int]:
    """The text and the size to set it in: smaller letters first, then the middle left out."""
    if head_width(text) <= width:
        return text, HEAD_PX
    return shorten(text, width, lambda part: head_width(part, SMALL_HEAD_PX)), SMALL_HEAD_PX


def fit_note(text: str, width: float) -> str:
    """The text, or as much of it as there is room for."""
    return shorten(text, width, note_width)


def shorten(text: str, width: float, measure: Callable[[str], float]) -> str:
    """Names differ at both ends (the operator, the number), so the middle goes."""
    if measure(text) <= width:
        return text
    for kept in range(len(text) - 1, 0, -1):
        tail = kept // 2
        shorter = f"{text[: kept - tail]}…{text[len(text) - tail :]}"
        if measure(shorter) <= width:
            return shorter
    return "…"


def _advance(char: str) -> float:
    return _ADVANCES.get(char, 1.3 if _is_wide(char) else 0.9)


def _is_wide(char: str) -> bool:
    return unicodedata.east_asian_width(char) in "WF" or ord(char) > 0x2FFF
