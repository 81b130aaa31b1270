"""How the registry's tables came to be, by Alembic: `migrate(database)` brings any older registry up to this version.

Run under one lock: two servers that start together migrate once.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config

from streamfleet_platform.registry.database import Database


def migrate(database: Database, revision: str = "head") -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    with database.engine.begin() as connection:
        if not database.is_sqlite:  # there BEGIN IMMEDIATE is the lock
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7211864)")
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
