"""What is one app's code: everything it may import, whenever it does."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfleet_platform.definitions.app_code import CodeTree
from streamfleet_platform.definitions.imports import ANYTHING, imports_of
from streamfleet_platform.definitions.tree import TreeFile

ORDERS = "apps.orders:topology"
TREE = {
    "apps/__init__.py": "",
    "apps/orders.py": "import json\nfrom apps import money\n\ndef late():\n    from apps.shared.text import words\n",
    "apps/money.py": "from .shared import numbers as n\n",
    "apps/shared/__init__.py": "",
    "apps/shared/numbers.py": "",
    "apps/shared/text.py": "",
    "apps/other.py": "import apps.orders\n",
    "apps/wrapping.py": "",
}


def tree(changes=None):
    contents = {path: text.encode() for path, text in sorted((TREE | (changes or {})).items())}
    found = [TreeFile(path, len(data)) for path, data in contents.items()]
    prints = {path: hashlib.sha256(data).digest() for path, data in contents.items()}
    return CodeTree(found, prints, lambda paths: (contents[path] for path in paths), {})


def names(code):
    return {file.path.removeprefix("apps/").removesuffix(".py") for file in code.files}


def test_an_apps_code_is_what_its_entry_point_imports_from_there_on_and_also_late():
    found = {"__init__", "orders", "money", "shared/__init__", "shared/numbers", "shared/text"}
    assert names(tree().of(ORDERS, ())) == found


@pytest.mark.parametrize("changed", ["orders", "money", "shared/text", "shared/__init__"])
def test_another_content_of_its_code_is_another_id(changed):
    assert tree({f"apps/{changed}.py": "x = 1\n"}).of(ORDERS, ()).id != tree().of(ORDERS, ()).id


@pytest.mark.parametrize("changed", ["apps/other.py", "apps/new.py", "tests/test_orders.py"])
def test_other_files_change_nothing(changed):
    one, two = tree(), tree({changed: "x = 1\n"})
    assert two.of(ORDERS, ()) == one.of(ORDERS, ()) and two.id != one.id


def test_data_is_everybodys():
    assert tree({"limits.csv": "1\n"}).of(ORDERS, ()).id != tree().of(ORDERS, ()).id


def test_a_new_file_that_takes_the_place_of_an_import_is_the_apps():
    assert "json.py" in {file.path for file in tree({"json.py": "x = 1\n"}).of(ORDERS, ()).files}


def test_settings_and_texts_name_modules():
    assert "wrapping" in names(tree().of(ORDERS, ("apps.wrapping:Wrapper", 5, "${secret}")))
    assert "wrapping" in names(tree({"apps/orders.py": "LOADED = ['apps.wrapping.Wrapper']\n"}).of(ORDERS, ()))


@pytest.mark.parametrize(
    "text",
    [
        "import importlib\nimportlib.import_module('a' + 'b')\n",
        "from importlib import import_module as load\n",
        "__import__('a' + 'b')\n",
        "import pickle\n",
        "import sys\nsys.path.append('lib')\n",
        "from sys import path\n",
        "exec('import ' + name)\n",
        "from runpy import run_path\n",
        "def (\n",
    ],
)
def test_what_can_load_modules_that_no_text_names_makes_all_files_the_apps(text):
    found = tree({"apps/money.py": text})
    assert len(found.of(ORDERS, ()).files) == len(TREE)
    assert found.of(ORDERS, ()).id != tree({"apps/money.py": text, "apps/other.py": "x = 1\n"}).of(ORDERS, ()).id


def test_a_star_brings_the_modules_that_a_package_may_list():
    found = names(tree({"apps/orders.py": "from apps.shared import *\n"}).of(ORDERS, ()))
    assert found == {"__init__", "orders", "shared/__init__", "shared/numbers", "shared/text"}


@given(st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), st.sets(st.sampled_from(["a", "b", "c", "d"]))))
def test_whatever_can_be_reached_by_imports_is_in_the_code(graph):
    files = {f"m/{name}.py": "".join(f"import m.{to}\n" for to in sorted(graph.get(name, ()))) for name in "abcd"}
    reached, waiting = set(), {"a"}
    while waiting:
        reached |= waiting
        waiting = {to for name in waiting for to in graph.get(name, ())} - reached
    code = tree(files).of("m.a:topology", ())
    assert {file.path for file in code.files} == {f"m/{name}.py" for name in reached}


@given(st.binary(max_size=200))
def test_nothing_that_a_file_holds_fails(data):
    assert imports_of(data) is not None


def test_a_file_that_cannot_be_read_may_import_anything():
    assert imports_of(b"(" * 100_000) is ANYTHING
