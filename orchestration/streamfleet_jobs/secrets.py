"""`${NAME}` in a setting of a client becomes the secret of that name, in this process only. Called where clients are made.

A spec says where a secret is, never what it is: a variable, or a file. Who starts the job decides what may be taken, not who wrote
the spec: variables that STREAMFLEET_SECRET_VARIABLES lists, files below STREAMFLEET_SECRETS. What was taken is masked in all that
the job prints.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from streamfleet.worker.secrets import redactor
from streamfleet_jobs.errors import SpecError

VARIABLES = "STREAMFLEET_SECRET_VARIABLES"
DIRECTORY = "STREAMFLEET_SECRETS"
SecretPlace = dict[Literal["env", "file"], str]
"""{"env": VARIABLE} or {"file": PATH}."""

_REFERENCE = re.compile(r"\$\{([^}]*)\}")
_LONGEST = 64 * 1024
_taken: set[str] = set()
"""By this process, which is one job."""


def hidden(text: str) -> str:
    """Without the secrets that were taken."""
    return redactor(_taken)(text)


def resolved(
    settings: Mapping[str, Any], places: Mapping[str, SecretPlace], environment: Mapping[str, str] = os.environ
) -> dict[str, Any]:
    """Settings with values for references. SpecError, which names the setting and never a value."""
    return {
        setting: _with_values(setting, value, places, environment) if isinstance(value, str) else value
        for setting, value in settings.items()
    }


def _with_values(setting: str, text: str, places: Mapping[str, SecretPlace], environment: Mapping[str, str]) -> str:
    def value_of(match: re.Match[str]) -> str:
        name = match[1]
        told, place = f"setting {setting} takes secret {name}", places.get(name, {})
        if len(place) != 1:
            raise SpecError(f"{told}, and the spec does not say where it is", hint="name it under secrets")
        env = place.get("env")
        value = _file(told, place["file"], environment) if env is None else _variable(told, env, environment)
        _taken.add(value)
        return value

    return _REFERENCE.sub(value_of, text)


def _variable(told: str, variable: str, environment: Mapping[str, str]) -> str:
    allowed = {each.strip() for each in environment.get(VARIABLES, "").split(",")}
    if variable not in allowed:
        raise SpecError(
            f"{told} of variable {variable}, which jobs may not take here",
            hint=f"list it in {VARIABLES}, separated by commas, where the job is started",
        )
    if variable not in environment:
        raise SpecError(f"{told} of variable {variable}, which is not set", hint="set it where the job is started")
    return environment[variable]


def _file(told: str, file: str, environment: Mapping[str, str]) -> str:
    directory = environment.get(DIRECTORY)
    if not directory:
        raise SpecError(
            f"{told} of file {file}, and there is no secret directory", hint=f"set {DIRECTORY} where the job is started"
        )
    root = Path(directory).resolve()
    path = (root / file).resolve()
    if not path.is_relative_to(root):
        raise SpecError(f"{told} of file {file}, which leads out of {DIRECTORY}", hint="put the file inside")
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(
            f"{told} of file {file}, which cannot be read", hint=f"look for it below {DIRECTORY}"
        ) from error
    if len(text) > _LONGEST or "\0" in text:
        raise SpecError(f"{told} of file {file}, which is no short text", hint="put only the secret into it")
    return text.removesuffix("\n")
