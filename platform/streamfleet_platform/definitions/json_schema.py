"""The JSON Schemas of both files, for editors: completion, documentation and errors while typing.

Made from the model, so they cannot disagree with it about fields. What needs other files (references, application ids, the
allow-list of settings) is checked by loading only.
"""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from streamfleet_platform.model.app_definition import IDENTITY_FIELDS, AppDefinition
from streamfleet_platform.model.fleet_definition import FleetDefinition

DIALECT = GenerateJsonSchema.schema_dialect


def app_schema() -> dict[str, Any]:
    """Of apps/NAME.yaml. Nothing a tier or fleet can give is required."""
    schema = AppDefinition.model_json_schema(by_alias=True)
    return {"$schema": DIALECT, "title": "Streamfleet app", **schema}


def fleet_schema() -> dict[str, Any]:
    """Of fleet.yaml. `defaults` are an app's spec in which nothing is required, and what an app is cannot be given."""
    schema = FleetDefinition.model_json_schema(by_alias=True)
    definitions = schema["$defs"]
    for name, section in AppDefinition.model_json_schema(by_alias=True)["$defs"].items():
        definitions.setdefault(_default(name), _optional(section))
    defaults = definitions[_default("AppSpec")]
    defaults["properties"] = {name: of for name, of in defaults["properties"].items() if name not in IDENTITY_FIELDS}
    for holder in ("FleetSpec", "Tier"):
        properties = definitions[holder]["properties"]
        description = properties["defaults"].get("description", "")
        properties["defaults"] = {"$ref": f"#/$defs/{_default('AppSpec')}", "description": description}
    return {"$schema": DIALECT, "title": "Streamfleet fleet", **schema}


def _default(name: str) -> str:
    return f"Default{name}"


def _optional(schema: Any) -> Any:
    """A copy in which no field is required, and sections refer to such copies."""
    if isinstance(schema, dict):
        copied = {key: _optional(value) for key, value in schema.items() if key != "required"}
        if isinstance(reference := schema.get("$ref"), str):
            copied["$ref"] = f"#/$defs/{_default(reference.rpartition('/')[2])}"
        return copied
    return [_optional(item) for item in schema] if isinstance(schema, list) else schema
