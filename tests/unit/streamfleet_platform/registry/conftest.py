"""Every test of the registry runs on SQLite and on Postgres. Where Postgres is not installed that half is reported as not run."""

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from streamfleet_platform.registry.database import Database
from streamfleet_platform.registry.migrations import migrate

BINARIES = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)


def _as_user():
    """Postgres refuses to run as root."""
    return {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.getuid() == 0 else {}


@pytest.fixture(scope="session")
def postgres():
    """The URL of a server of its own, in a temporary directory, gone at the end."""
    if BINARIES is None:
        pytest.skip("NOT RUN: Postgres is not installed; the registry was tested on SQLite only")
    root = Path(tempfile.mkdtemp(prefix="streamfleet-postgres-"))
    if os.getuid() == 0:
        shutil.chown(root, "nobody", "nogroup")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = root / "data"
    run = {"check": True, "capture_output": True, "cwd": root, **_as_user()}
    subprocess.run([BINARIES / "initdb", "-D", data, "-U", "fleet", "--auth=trust", "-E", "UTF8", "--no-sync"], **run)
    options = f"-p {port} -c listen_addresses=127.0.0.1 -k {root} -c fsync=off"
    subprocess.run([BINARIES / "pg_ctl", "-D", data, "-w", "-l", root / "log", "-o", options, "start"], **run)
    try:
        yield f"postgresql+psycopg://fleet@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([BINARIES / "pg_ctl", "-D", data, "-m", "immediate", "stop"], **run)
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'registry.db'}"
    base = request.getfixturevalue("postgres")
    admin = Database(base)
    name = f"t{os.urandom(6).hex()}"
    with admin.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    admin.close()
    return base.removesuffix("/postgres") + f"/{name}"


@pytest.fixture
def database(url):
    database = Database(url)
    migrate(database)
    yield database
    database.close()
