"""docs/configuration.md has every setting with its default; a setting without a row is not finished."""

import re
from dataclasses import MISSING, fields
from pathlib import Path

import yaml

from streamfleet.config import StreamsConfig
from streamfleet.worker.config_file import EXTRACTORS, SERDES, parse_settings

PAGE = (Path(__file__).parents[4] / "docs" / "configuration.md").read_text()


def default_of(field):
    if field.default is MISSING:
        return "required" if field.default_factory is MISSING else "none"
    if field.name == "state_dir":
        return "`streamfleet` in the temporary directory"
    if field.default in (None, ()):
        return "none"
    return f"`{str(field.default).lower() if isinstance(field.default, bool) else field.default}`"


def test_the_documented_settings_are_those_of_streams_config_with_their_defaults():
    section = PAGE.partition("## Settings\n")[2].partition("\n## ")[0]
    documented = dict(re.findall(r"^\| `([^`]+)` \| (.+?) \| .+ \|$", section, re.MULTILINE))
    known = {field.metadata["name"]: default_of(field) for field in fields(StreamsConfig) if "name" in field.metadata}
    assert documented == known


def test_the_documented_names_of_objects_are_those_that_a_file_may_use():
    for names in (SERDES, EXTRACTORS):
        assert ", ".join(f"`{name}`" for name in sorted(names)) in PAGE


def test_the_example_is_a_configuration():
    example = PAGE.partition("```yaml\n")[2].partition("```")[0]
    assert yaml.safe_load(example)
    config = StreamsConfig.from_mapping(parse_settings(example, {"KAFKA_PASSWORD": "x"}))
    assert config.application_id == "word-count"
