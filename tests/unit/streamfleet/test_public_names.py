"""The public API is one sorted list, and it is complete: whatever it names is there, whatever the root imports is named."""

import inspect

import streamfleet


def test_all_is_sorted_and_unique():
    assert list(streamfleet.__all__) == sorted(set(streamfleet.__all__))


def test_every_public_name_exists():
    assert [name for name in streamfleet.__all__ if not hasattr(streamfleet, name)] == []


def test_every_imported_class_or_function_is_listed():
    imported = {
        name
        for name, value in vars(streamfleet).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__.startswith("streamfleet")
    }
    assert imported <= set(streamfleet.__all__)
