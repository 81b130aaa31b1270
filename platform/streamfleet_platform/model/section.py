"""The base of every part of a definition: frozen, strict, no unknown fields, camelCase in files and snake_case here.

The classes are pydantic's: they give all errors of a document at once, and the JSON Schema that editors use.
definitions/validation.py turns their errors into problems with a place and a hint.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError


class Section(BaseModel):
    """A mapping of a definition with known fields."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        use_attribute_docstrings=True,
        allow_inf_nan=False,
    )


def refusal(fact: str, hint: str | None = None) -> PydanticCustomError:
    """What a check of a value raises."""
    return PydanticCustomError("refused", "{fact}", {"fact": fact, "hint": hint})


def shown(value: object) -> str:
    """A value in an error message: not longer than a name, so that nothing large or secret is repeated."""
    text = repr(value)
    return text if len(text) <= 48 else f"{text[:40]}...{text[-1]}"
