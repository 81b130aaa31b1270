"""How the registry's tables came to be, by Alembic: `migrate(database)` brings any older registry up to this version.

Run under one lock: two servers that start together migrate once.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy.exc import OperationalError

from streamfleet_platform.errors import ConflictError
from streamfleet_platform.registry.database import Database, away


def migrate(database: Database, revision: str = "head") -> None:
    """TransientError: it cannot be reached or opened. ConflictError: a newer version has migrated it."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    try:
        with database.engine.begin() as connection:
            if not database.is_sqlite:  # there BEGIN IMMEDIATE is the lock
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7211864)")
            config.attributes["connection"] = connection
            command.upgrade(config, revision)
    except OperationalError as error:
        raise away(error) from error
    except CommandError as error:
        raise ConflictError(
            f"the registry is of another version of streamfleet: {error}", hint="use that version, or a newer one"
        ) from error
