import hashlib
from pathlib import Path

import pytest

from streamfleet_devbroker import jars as jars_module
from streamfleet_devbroker.errors import JarsUnavailableError
from streamfleet_devbroker.jars import ensure_jars
from streamfleet_devbroker.java import Java
from streamfleet_devbroker.pinned import Jar

JAVA = Java(Path("java"), 21)
CONTENT = {"one": b"first jar", "two": b"second jar"}
JARS = tuple(Jar("org.example", name, "1", hashlib.sha256(content).hexdigest()) for name, content in CONTENT.items())


@pytest.fixture(autouse=True)
def short_list(monkeypatch):
    monkeypatch.setattr(jars_module, "broker_jars", lambda: JARS)


class Repository:
    """A fetcher that serves from memory and remembers what it was asked for."""

    def __init__(self, content: dict[str, bytes]) -> None:
        self.content = content
        self.asked: list[list[str]] = []

    def __call__(self, jars, into, *, cache, java, report):
        self.asked.append([jar.artifact for jar in jars])
        for jar in jars:
            if jar.artifact in self.content:
                (into / jar.file_name).write_bytes(self.content[jar.artifact])


def ensure(cache: Path, repository: Repository) -> jars_module.JarSet:
    return ensure_jars(cache, JAVA, lambda _: None, fetcher=repository)


def test_everything_is_fetched_once_and_never_again(tmp_path):
    repository = Repository(CONTENT)
    first = ensure(tmp_path, repository)
    assert ensure(tmp_path, repository) == first
    assert repository.asked == [["one", "two"]]
    assert [Path(path).read_bytes() for path in first.class_path.split(":")] == list(CONTENT.values())


def test_only_the_missing_and_the_damaged_are_fetched(tmp_path):
    repository = Repository(CONTENT)
    directory = ensure(tmp_path, repository).directory
    (directory / "two-1.jar").write_bytes(b"second jaR")
    ensure(tmp_path, repository)
    assert repository.asked[1:] == [["two"]]
    assert (directory / "two-1.jar").read_bytes() == b"second jar"


def test_a_jar_with_another_checksum_never_reaches_the_cache(tmp_path):
    with pytest.raises(JarsUnavailableError, match="org.example:two:1 was delivered with a checksum other than"):
        ensure(tmp_path, Repository({**CONTENT, "two": b"something else"}))
    assert not list(tmp_path.rglob("two-1.jar"))


def test_a_jar_that_is_not_delivered_is_named(tmp_path):
    with pytest.raises(JarsUnavailableError, match="org.example:two:1 was not delivered"):
        ensure(tmp_path, Repository({"one": CONTENT["one"]}))


def test_the_reason_of_the_tool_is_passed_on_with_the_number_of_missing_jars(tmp_path):
    def unreachable(jars, into, *, cache, java, report):
        raise JarsUnavailableError("the repository did not answer", hint="connect the machine")

    with pytest.raises(JarsUnavailableError, match=r"^2 pinned jars are missing in .*: the repository did not"):
        ensure_jars(tmp_path, JAVA, lambda _: None, fetcher=unreachable)
