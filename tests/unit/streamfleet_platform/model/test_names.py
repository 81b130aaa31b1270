from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from streamfleet_platform.model.names import Name, StoreName, TopicName, is_name

BAD = [
    "../x",
    "..",
    ".",
    "a/b",
    "a\0b",
    "%2e%2e",
    "CON",
    "a" * 250,
    "\u00e9",
    "e\u0301",
    "a\u200f",
    "",
    "a\n",
    "a b",
    "a:b",
]


@pytest.mark.parametrize("name", [*BAD, "-a", "a-", "A", "a_b", "a.b", "a" * 64, "__consumer_offsets"])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(ValidationError):
        TypeAdapter(Name).validate_python(name)


@pytest.mark.parametrize(
    "name", [bad for bad in BAD if bad != "CON"] + ["__consumer_offsets", "a-changelog", "a-repartition"]
)
def test_what_is_no_topic_of_an_app_is_refused(name):
    with pytest.raises(ValidationError):
        TypeAdapter(TopicName).validate_python(name)


@pytest.mark.parametrize("name", [bad for bad in BAD if bad != "CON"])
def test_what_is_no_store_is_refused(name):
    with pytest.raises(ValidationError):
        TypeAdapter(StoreName).validate_python(name)


@given(st.text(max_size=80) | st.from_regex(r"[a-z0-9./%\\-]{0,70}", fullmatch=True))
def test_a_name_stays_below_the_directory_it_is_put_in(text):
    if is_name(text):
        path = PurePosixPath("/state") / text
        assert path.parts == ("/", "state", text) and len(text) <= 63
