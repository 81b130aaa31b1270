"""What the README shows works as it stands there."""

import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

import streamfleet as sf
from streamfleet.cli import app

ROOT = Path(__file__).resolve().parents[3]
README = (ROOT / "README.md").read_text("utf-8")


def test_the_code_of_the_readme_builds_a_topology():
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names: dict = {}
    exec(code, names)
    topology = names["topology"]()
    assert isinstance(topology, sf.Topology)
    assert "orders-per-customer" in str(topology.describe())


def test_the_commands_of_the_readme_succeed(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.chdir(tmp_path)  # one of them writes a file
    commands = re.findall(r"^\.venv/bin/streamfleet (topology .*)$", README, re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        result = CliRunner().invoke(app, shlex.split(command))
        assert result.exit_code == 0, result.stderr


def test_links_of_the_readme_lead_to_files():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_every_make_command_that_the_pages_name_exists():
    targets = set(re.findall(r"^([a-z0-9]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        named = set(re.findall(r"`make ([a-z0-9]+)", page.read_text("utf-8")))
        assert named <= targets, page
