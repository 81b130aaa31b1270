"""Which engine runs a job. Named on the command line, and written into results."""

from __future__ import annotations

from enum import StrEnum


class EngineName(StrEnum):
    """`local` needs no Java; both others run the same code over DataFrames."""

    LOCAL = "local"
    SPARK_LOCAL = "spark-local"
    SPARK_CONNECT = "spark-connect"
