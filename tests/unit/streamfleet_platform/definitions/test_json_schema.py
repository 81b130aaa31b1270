import json
import re

import pytest

from streamfleet_platform.definitions.json_schema import app_schema, fleet_schema


def resolve(root, *path):
    schema = root
    for part in path:
        schema = schema["properties"][part]
        if "anyOf" in schema:
            schema = schema["anyOf"][0]
        if "$ref" in schema:
            schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    return schema


@pytest.mark.parametrize("make", [app_schema, fleet_schema])
def test_a_schema_is_json_and_all_its_references_lead_somewhere(make):
    schema = make()
    text = json.dumps(schema)
    for name in re.findall(r"#/\$defs/(\w+)", text):
        assert name in schema["$defs"]
    assert all(part["additionalProperties"] is False for part in schema["$defs"].values() if "properties" in part)


def test_fields_have_their_names_in_files_their_text_and_their_patterns():
    app = app_schema()
    assert set(resolve(app)["required"]) == {"apiVersion", "kind", "metadata", "spec"}
    assert "deliberate new start" in resolve(app, "spec")["properties"]["generation"]["description"]
    delay = resolve(app, "spec", "scale", "scaleDown")["properties"]["delay"]
    assert delay["type"] == "string" and re.fullmatch(delay["pattern"], "72h")
    assert resolve(app, "spec", "rollout", "gate")["properties"]["for"]["type"] == "string"


def test_defaults_of_a_fleet_require_nothing_and_cannot_say_what_an_app_is():
    fleet = fleet_schema()
    defaults = resolve(fleet, "spec", "defaults")
    assert "required" not in defaults
    assert "applicationId" not in defaults["properties"] and "scale" in defaults["properties"]
    assert "required" not in resolve(fleet, "spec", "defaults", "errors", "budget")
