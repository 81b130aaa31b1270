"""Functions over Arrow columns as Spark calls them. PySpark types none of this; here is the one place that says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql.pandas.functions import arrow_udf


def arrow_function(returns: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: arrays in, one array out; called with columns or their names."""
    wrap: Callable[[Callable[..., Any]], Callable[..., Any]] = arrow_udf(returns)  # type: ignore[call-overload]  # as documented
    return wrap
