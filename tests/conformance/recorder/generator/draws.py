"""Random choices of one scenario, all from one seed: the same seed always gives the same scenario.

Everything in this package that chooses something asks a Draw. What is chosen is decided there, not here.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")
Json = Any


class Draw:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._numbers: dict[str, int] = {}

    def one(self, *choices: T) -> T:
        return self._random.choice(choices)

    def of(self, choices: Sequence[T]) -> T:
        return self._random.choice(choices)

    def weighted(self, choices: dict[T, int]) -> T:
        return self._random.choices(list(choices), weights=list(choices.values()))[0]

    def some(self, choices: Sequence[T], most: int) -> list[T]:
        return self._random.sample(choices, self.between(1, min(most, len(choices))))

    def between(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def chance(self, percent: int) -> bool:
        return self._random.randrange(100) < percent

    def fresh(self, prefix: str) -> str:
        """A name that this scenario has not used yet."""
        self._numbers[prefix] = self._numbers.get(prefix, 0) + 1
        return f"{prefix}{self._numbers[prefix]}"

    def maybe(self, percent: int, **fields: Json) -> dict[str, Json]:
        """The fields, or none of them: for parameters that an op can do without."""
        return fields if self.chance(percent) else {}

    def named(self, percent: int = 30) -> dict[str, Json]:
        return {"named": self.fresh("op")} if self.chance(percent) else {}
