"""References to secrets become values: the only place of the platform that reads them. Called by local.py when it starts a worker.

Values go into the environment of the worker's keeper and nowhere else; settings name the variable. They are in no file, and the
keeper masks them in the worker's output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from streamfleet_platform.errors import NotFoundError, PermanentError
from streamfleet_platform.model.app_policies import SecretReference, Setting
from streamfleet_platform.runtime.keeper import SECRET_PREFIX
from streamfleet_platform.runtime.specification import REFERENCE

_LONGEST = 64 * 1024


class SecretSource:
    """`allowed` are the environment variables that fleet.yaml lets apps name, asked each time; `directory` is the runtime's, for
    files.
    """

    def __init__(
        self, environment: Mapping[str, str], allowed: Callable[[], Collection[str]], directory: Path | None
    ) -> None:
        self._environment = environment
        self._allowed = allowed
        self._directory = directory

    def value(self, name: str, where: SecretReference) -> str:
        return self._variable(name, where.env) if where.env is not None else self._file(name, str(where.file))

    def _variable(self, name: str, variable: str) -> str:
        if variable not in self._allowed():
            raise PermanentError(
                f"secret {name} is in variable {variable}, which apps may not name",
                hint="add it to secrets.env of fleet.yaml, and apply that",
            )
        if variable not in self._environment:
            raise NotFoundError(f"secret {name}: variable {variable} is not set", hint="set it for the server")
        return self._environment[variable]

    def _file(self, name: str, file: str) -> str:
        if self._directory is None:
            raise NotFoundError(
                f"secret {name} is a file, and there is no secret directory", hint="give the server one"
            )
        root = self._directory.resolve()
        path = (root / file).resolve()
        if not path.is_relative_to(root):
            raise PermanentError(f"secret {name}: {file} leads out of the secret directory", hint="put the file inside")
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise NotFoundError(f"secret {name}: file {file} cannot be read", hint="check it") from error
        if len(text) > _LONGEST or "\0" in text:
            raise PermanentError(f"secret {name}: file {file} is no short text", hint="put only the secret into it")
        return text.removesuffix("\n")


def resolved(
    settings: Mapping[str, Setting], secrets: Mapping[str, SecretReference], source: SecretSource
) -> tuple[dict[str, Setting], dict[str, str]]:
    """Settings in which `${NAME}` is a variable that the engine reads, and those variables."""
    variables: dict[str, str] = {}

    def variable_of(match: re.Match[str]) -> str:
        name = match[1]
        if name not in secrets:
            raise PermanentError(f"a setting takes secret {name}, which is not declared", hint="write it under secrets")
        variable = SECRET_PREFIX + re.sub(r"[^A-Za-z0-9]", lambda other: f"_{ord(other[0]):x}_", name)
        variables[variable] = source.value(name, secrets[name])
        return f"${{{variable}}}"

    told = {
        name: REFERENCE.sub(variable_of, value) if isinstance(value, str) else value for name, value in settings.items()
    }
    return told, variables
