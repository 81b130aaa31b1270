"""The tree of errors: what is drawn is what is there, and every error says where and what to do."""

import inspect
import re

import pytest

from streamfleet import errors


def drawn_tree():
    """class -> parent, as the module docstring draws it."""
    stack, tree = {}, {}
    for line in errors.__doc__.splitlines():
        match = re.match(r"^    ([│├└─ ]*)([A-Z]\w+Error)\b", line)
        if match:
            depth = len(match[1]) // 4
            tree[match[2]] = stack.get(depth - 1)
            stack[depth] = match[2]
    return tree


def test_the_drawing_names_every_error_and_its_parent():
    classes = {
        name: cls for name, cls in inspect.getmembers(errors, inspect.isclass) if cls.__module__ == errors.__name__
    }
    tree = drawn_tree()
    assert set(tree) == set(classes)
    for name, parent in tree.items():
        if parent is not None:
            assert classes[parent] in classes[name].__bases__


def test_wrong_settings_and_arguments_are_value_errors_too():
    assert issubclass(errors.ConfigError, ValueError)
    assert issubclass(errors.OptionError, ValueError)


def test_a_message_is_the_fact_and_then_the_hint():
    error = errors.StreamsError("the store is closed", hint="open it first")
    assert str(error) == "the store is closed; open it first"


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        ({}, "it broke"),
        ({"operator": "M"}, "it broke (operator M)"),
        ({"topic": "in", "partition": 2, "offset": 7}, "it broke (topic in, partition 2, offset 7)"),
        (
            {"operator": "M", "topic": "in", "partition": 2, "offset": 7},
            "it broke (operator M; topic in, partition 2, offset 7)",
        ),
    ],
)
def test_a_record_error_says_which_operator_and_which_record(place, shown):
    assert str(errors.ProcessingError("it broke", **place)) == shown
