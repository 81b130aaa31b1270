import json
import time
import tracemalloc

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from streamfleet_platform.definitions.yaml_nodes import MAX_ALIASES, MAX_BYTES, MAX_DEPTH, MAX_NODES, parse_yaml, plain
from streamfleet_platform.errors import InvalidDefinitionError, Place

SCALARS = st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.decimals(-(10**6), 10**6, places=3).map(float)
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp", "Cn", "Co"]), max_size=12
)
DOCUMENTS = st.recursive(
    SCALARS | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(TEXTS.filter(lambda key: key != "<<"), inner, max_size=4)
    ),
    max_leaves=20,
)


def read(text):
    return plain(parse_yaml(text if isinstance(text, bytes) else text.encode(), "x.yaml"))


def refusal(text):
    with pytest.raises(InvalidDefinitionError) as error:
        read(text)
    (problem,) = error.value.problems
    return problem


def tuples(value):
    if isinstance(value, list):
        return tuple(map(tuples, value))
    return {key: tuples(below) for key, below in value.items()} if isinstance(value, dict) else value


@given(DOCUMENTS)
def test_json_is_read_as_json(document):
    assert read(json.dumps(document, ensure_ascii=False)) == tuples(document)


@given(DOCUMENTS)
def test_what_other_writers_write_is_read_the_same_or_refused(document):
    try:
        ours = read(yaml.safe_dump(document, allow_unicode=True))
    except InvalidDefinitionError as error:
        ours = str(error)
    assert ours == tuples(document) or "some readers" in ours or "too large" in ours


@given(st.text("0123456789.:-+_eExXoObBnNyYsSfFtrualTRUE~=", max_size=8))
def test_a_plain_scalar_is_never_silently_read_otherwise_than_by_yaml_1_1(text):
    try:
        theirs = yaml.safe_load(f"[{text}]")
    except (yaml.YAMLError, ValueError):
        return
    if not isinstance(theirs, list) or len(theirs) != 1 or isinstance(theirs[0], dict):
        return
    try:
        (ours,) = read(f"[{text}]")
    except InvalidDefinitionError:
        return
    assert ours == theirs[0] and type(ours) is type(theirs[0])


@pytest.mark.parametrize(
    "word",
    [
        "no",
        "on",
        "yes",
        "off",
        "y",
        "N",
        "True",
        "NULL",
        "012",
        "0x1f",
        "1_000",
        "1:30",
        ".inf",
        "1e3",
        "1e999",
        "2026-01-01",
    ],
)
def test_a_word_that_readers_disagree_on_is_refused_where_it_stands(word):
    problem = refusal(f"a: 1\nb: {word}\n")
    assert problem.place == Place("x.yaml", 2, 4)
    assert "some readers" in problem.fact
    assert read(f'b: "{word}"') == {"b": word}


@pytest.mark.parametrize("number", ["9" * 19, "9" * 400, "0." + "1" * 400])
def test_a_number_beyond_all_bounds_is_refused(number):
    assert "too large" in refusal(f"a: {number}").fact


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system [x]", "!!str a", "!mine {a: 1}", "!!binary aGk="])
def test_tags_are_refused(tag):
    assert "tag" in refusal(f"a: {tag}").fact


def test_a_key_that_is_there_twice_is_refused_with_both_lines():
    problem = refusal("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n")
    assert problem.place == Place("x.yaml", 5, 3) and "first in line 3" in problem.fact


def test_keys_are_text():
    assert "not text" in refusal("1: a").fact
    assert "not text" in refusal("[a]: b").fact
    assert "merge keys" in refusal("a: &a {b: 1}\nc:\n  <<: *a\n").fact


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("", "empty"),
        ("# nothing\n", "empty"),
        ("a: 1\n---\nb: 2\n", "second document"),
        ("a: [1\n", "no YAML"),
        ("a: *b", "no anchor"),
        ("a: &a [*a]", "no anchor"),
        ("%TAG ! tag:x,2000:\n---\na: 1", "%TAG"),
        ("a: \x07", "no YAML"),
        ("a: b # \u202etxt", "U+202E"),
        (b"a: \xff\xfe", "not UTF-8"),
        ("a: 1".encode("utf-16"), "not UTF-8"),
        (b"a: 1\n" * (MAX_BYTES // 4), "bytes"),
    ],
)
def test_what_is_not_one_clean_document_is_refused(text, fact):
    assert fact in refusal(text).fact


def test_aliases_are_followed_up_to_a_small_number():
    assert read("a: &a {b: 1}\nc: *a") == {"a": {"b": 1}, "c": {"b": 1}}
    many = "a: &a 1\nb: [" + ", ".join(["*a"] * (MAX_ALIASES + 1)) + "]"
    assert f"more than {MAX_ALIASES} aliases" in refusal(many).fact


def test_an_alias_bomb_is_refused_before_it_is_built():
    levels = [f"l0: &l0 [{', '.join(['x'] * 800)}]"]
    levels += [f"l{n}: &l{n} [*l{n - 1}, *l{n - 1}, *l{n - 1}, *l{n - 1}]" for n in range(1, 5)]
    tracemalloc.start()
    try:
        assert f"more than {MAX_NODES} values" in refusal("\n".join(levels)).fact
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()


BOMBS = {
    "aliases": "\n".join(
        ["l0: &l0 [" + ", ".join(["x"] * 800) + "]"]
        + [f"l{n}: &l{n} [" + ", ".join([f"*l{n - 1}"] * 4) + "]" for n in range(1, 5)]
    ),
    "many aliases": "a: &a x\nb: [" + "*a, " * 60_000 + "]",
    "depth": "[" * 250_000,
    "depth of blocks": "- " * 100_000,
    "depth of keys": "? " * 100_000,
    "values": "[" + "1," * 120_000 + "]",
    "keys": "".join(f"k{n}: 1\n" for n in range(25_000)),
    "one long word": "a: " + "x" * 260_000,
    "one long number": "a: " + "9" * 260_000,
    "quotes": 'a: "' + "\\u0041" * 40_000 + '"',
    "comments": "#" * 260_000,
    "anchors": "".join(f"k{n}: &a{n} 1\n" for n in range(12_000)),
    "too large": "a" * 5_000_000,
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_whatever_a_file_does_it_is_answered_quickly(bomb):
    """By the time of this thread, so that a machine that does other things as well is no reason to fail."""
    data = BOMBS[bomb].encode()
    began = time.thread_time()
    is_refused = False
    try:
        parse_yaml(data, "bomb.yaml")
    except InvalidDefinitionError:
        is_refused = True
    took = time.thread_time() - began
    assert took < 1, f"{took:.2f} s"
    assert is_refused == (bomb not in ("one long word", "quotes")), "those are long, and nothing more"


@pytest.mark.parametrize("bomb", ["[" * 10_000, "{a: " * 10_000, "- " * 10_000, "? " * 10_000])
def test_depth_is_refused_after_a_few_levels(bomb):
    problem = refusal(bomb)
    assert (
        f"more than {MAX_DEPTH} deep" in problem.fact or "key is not text" in problem.fact or "no YAML" in problem.fact
    )


def test_the_number_of_values_is_bounded():
    assert f"more than {MAX_NODES} values" in refusal("[" + "1," * (MAX_NODES + 1) + "]").fact
