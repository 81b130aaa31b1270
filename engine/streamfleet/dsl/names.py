"""Names of nodes and stores. One counter serves both, and a number is used up even where the user gave a name: names that were
generated must not change when a name is given elsewhere in the topology.
"""

from __future__ import annotations

from streamfleet.errors import TopologyError
from streamfleet.ids import LEGAL_NAME, MAX_NAME_LENGTH


class NameProvider:
    """Gives names, and remembers the resources on the broker or on disk that were named by number."""

    def __init__(self) -> None:
        self._next = 0
        self.unnamed: dict[str, list[str]] = {"changelog topic": [], "state store": [], "repartition topic": []}

    def generate(self, prefix: str) -> str:
        number = self._next
        self._next += 1
        return f"{prefix}{number:010d}"

    def generate_store(self, prefix: str, *, logged: bool) -> str:
        name = self.generate(f"{prefix}STATE-STORE-")
        self.unnamed["state store"].append(name)
        if logged:
            self.unnamed["changelog topic"].append(f"{name}-changelog")
        return name

    def burn_store(self, prefix: str) -> None:
        """Use up the number of a store that is not made, where the original does."""
        self.generate(prefix)

    def node(self, name: str | None, prefix: str) -> str:
        """The user's name, else a generated one."""
        generated = self.generate(prefix)
        return generated if name is None else checked_name(name)

    def suffixed(self, name: str | None, suffix: str, prefix: str) -> str:
        """The user's name with a suffix, else a generated one."""
        generated = self.generate(prefix)
        return generated if name is None else checked_name(name + suffix)


def checked_name(name: object) -> str:
    """Refuse what could not become part of a topic name."""
    if not isinstance(name, str) or name in ("", ".", ".."):
        raise TopologyError(f"{name!r} is not a name", hint="use a text of ASCII letters, digits, '.', '_' and '-'")
    if len(name) > MAX_NAME_LENGTH:
        raise TopologyError(
            f"name {name[:40]}... is {len(name)} characters long", hint=f"the limit is {MAX_NAME_LENGTH}"
        )
    if not LEGAL_NAME.fullmatch(name):
        raise TopologyError(
            f"name {name!r} has a character other than ASCII letters, digits, '.', '_' and '-'",
            hint="names become parts of topic names: leave the character out",
        )
    return name


def check_all_named(unnamed: dict[str, list[str]]) -> None:
    """What `ensure.explicit.internal.resource.naming` asks for."""
    lines = [f"{what}s: {', '.join(names)}" for what, names in unnamed.items() if names]
    if lines:
        raise TopologyError(
            f"some internal resources have generated names ({'; '.join(lines)})",
            hint="name them (store=..., name=... on group_by, joins and repartition), or switch "
            "ensure.explicit.internal.resource.naming off: a generated name changes with the topology, and its state is lost",
        )
