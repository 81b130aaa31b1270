"""The scenario language and the rules of comparison; no engine is involved."""

import string
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conformance import kit


def evaluate(expression, **variables):
    return kit.compile_expression(expression, variables)(variables)


def windowed(key, start, end):
    return SimpleNamespace(key=key, window=SimpleNamespace(start=start, end=end))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (["concat", "a", None, 1, True, 2.5], "anull1true2.5"),
        (["str", None], None),
        (["str", 7], "7"),
        (["upper", None], None),
        (["upper", "ab"], "AB"),
        (["first_char", ""], ""),
        (["last_char", "xyz"], "z"),
        (["tail", "abcdef", 4], "cdef"),
        (["tail", "ab", 4], "ab"),
        (["len", None], 0),
        (["before", "a:b:c", ":"], "a"),
        (["before", "abc", ":"], "abc"),
        (["after", "a:b:c", ":"], "b:c"),
        (["after", "abc", ":"], None),
        (["after", "abc:", ":"], ""),
        (["parse_long", "-12"], -12),
        (["parse_long", "1234567890123456"], None),
        (["parse_long", "1x"], None),
        (["sum", 1, None, 2], 3),
        (["sum", None], 0),
        (["sum", 1, 0.5], 1.5),
        (["sub", None, 4], -4),
        (["mod", -3, 1000], 997),
        (["min", None, 4], 4),
        (["max", 3, 4], 4),
        (["is_even", None], False),
        (["eq", 1, 1.0], True),
        (["eq", 1, True], False),
        (["eq", None, None], True),
        (["lt", None, 1], False),
        (["gt", 2, 1], True),
        (["contains", None, "a"], False),
        (["starts_with", "ab", "a"], True),
        (["split_words", " a  b "], ["a", "b"]),
        (["split_words", None], []),
        (["pair", "k", "v"], ("k", "v")),
        (["window_key", None], None),
        (["not", False], True),
        (["and", True, False], False),
        (["or", True, False], True),
    ],
)
def test_functions_give_what_the_format_says(expression, expected):
    assert evaluate(expression) == expected


def test_windowed_keys_are_shown_with_their_bounds():
    key = windowed("a", 0, 10)
    assert evaluate(["concat", "$k"], k=key) == "[a@0/10]"
    assert evaluate(["list", ["window_key", "$k"], ["window_start", "$k"], ["window_end", "$k"]], k=key) == ["a", 0, 10]


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0.0, "0.0"), (1e7, "1.0E7"), (12345678.9, "1.23456789E7"), (0.0005, "5.0E-4"), (float("inf"), "Infinity")],
)
def test_doubles_are_shown_as_java_shows_them(number, shown):
    assert kit.text(number) == shown


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_integers_wrap_at_64_bits(x, y):
    product = evaluate(["mul", x, y])
    assert -(2**63) <= product < 2**63
    assert (product - x * y) % 2**64 == 0


def test_only_the_chosen_branch_of_if_is_evaluated():
    assert evaluate(["if", True, "kept", ["fail", "x"]]) == "kept"
    with pytest.raises(kit.Boom, match="boom x"):
        evaluate(["if", False, "kept", ["fail", "x"]])


@pytest.mark.parametrize("expression", [["no_such_function", 1], "$unbound", ["if", True, 1], [], {"a": 1}])
def test_a_wrong_expression_is_refused_before_it_is_run(expression):
    with pytest.raises(kit.MalformedScenarioError):
        kit.compile_expression(expression, ("k", "v"))


def test_bound_functions_take_their_variables_by_position():
    assert kit.bind("x")() == "x"
    assert kit.bind(["concat", "$v"], "v")("a") == "a"
    assert kit.bind(["concat", "$k", "$v"], "k", "v")("a", "b") == "ab"
    assert kit.bind(["concat", "$k", "$v", "$agg"], "k", "v", "agg")("a", "b", "c") == "abc"


def test_mentions_looks_into_nested_calls():
    assert kit.mentions(["concat", ["upper", "$k"]], "k")
    assert not kit.mentions(["concat", ["upper", "$key"]], "k")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(string.ascii_letters), lambda inner: st.lists(inner, max_size=4)
)


@given(JSON)
def test_every_value_matches_itself_and_the_star(value):
    assert kit.matches(value, value)
    assert kit.matches("*", value)
    assert not kit.matches([value, 1], [value, 2])
    assert not kit.matches([value], [value, value])


def test_booleans_do_not_match_numbers():
    assert not kit.matches(1, True)
    assert not kit.matches([True], [1])


def test_order_is_kept_within_a_topic_and_ignored_between_topics():
    one = kit.by_topic([["a", 1], ["b", 2], ["a", 3]])
    assert one == kit.by_topic([["b", 2], ["a", 1], ["a", 3]])
    assert one != kit.by_topic([["a", 3], ["b", 2], ["a", 1]])


def test_rows_are_compared_as_a_multiset():
    assert kit.row_differences([["a", 1], ["b", 2]], [["b", 2], ["a", 1]]) == ([], [])
    missing, unexpected = kit.row_differences([["a", 1], ["a", 1]], [["a", 1], ["c", 3]])
    assert missing == ["['a', 1]"]
    assert unexpected == ["['c', 3]"]


DESCRIPTION = [
    "Topologies:",
    "   Sub-topology: 0",
    "    Source: s (topics: [b, a])",
    "      --> q, p",
    "    Processor: p (stores: [y, x])",
    "      --> none",
    "      <-- s",
    "",
]


def test_descriptions_are_equal_when_only_the_order_of_names_and_nodes_differs():
    shuffled = [
        "Topologies:",
        "   Sub-topology: 0",
        "    Processor: p (stores: [x, y])",
        "      --> none",
        "      <-- s",
        "    Source: s (topics: [a, b])",
        "      --> p, q",
    ]
    assert kit.normalized_description(DESCRIPTION) == kit.normalized_description(shuffled)


def test_descriptions_differ_when_an_edge_differs():
    other = [line.replace("--> none", "--> k") for line in DESCRIPTION]
    assert kit.normalized_description(DESCRIPTION) != kit.normalized_description(other)
