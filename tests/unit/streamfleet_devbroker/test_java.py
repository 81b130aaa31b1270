import pytest

from streamfleet_devbroker.java import find_java, probe


def fake_java(path, version_line, *, exit_code=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{version_line}' >&2\nexit {exit_code}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("line", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_292"', 8),
        ('openjdk version "25-ea" 2025-09-16', 25),
    ],
)
def test_the_major_version_is_read_from_what_java_says(tmp_path, line, major):
    java = probe(fake_java(tmp_path / "java", line))
    assert java is not None
    assert java.major == major


def test_a_program_that_fails_or_says_something_else_is_no_java(tmp_path):
    assert probe(fake_java(tmp_path / "stub", "Unable to locate a Java Runtime", exit_code=1)) is None
    assert probe(fake_java(tmp_path / "other", "hello")) is None
    assert probe(tmp_path / "missing") is None


def test_java_home_is_asked_before_the_path(tmp_path, monkeypatch):
    at_home = fake_java(tmp_path / "home" / "bin" / "java", 'openjdk version "21.0.1"')
    fake_java(tmp_path / "path" / "java", 'openjdk version "17.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert find_java(tmp_path, lambda _: None).executable == at_home


def test_an_old_java_at_home_is_passed_over(tmp_path, monkeypatch):
    fake_java(tmp_path / "home" / "bin" / "java", 'openjdk version "11.0.1"')
    on_path = fake_java(tmp_path / "path" / "java", 'openjdk version "17.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert find_java(tmp_path, lambda _: None).executable == on_path
