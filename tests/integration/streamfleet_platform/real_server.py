"""One real server process, for tests that end it: `python real_server.py SETTINGS-AS-JSON`. What it is killed by is in its
environment (server/failpoints.py). Its lease is short, so that its successor need not wait for long.
"""

import json
import sys
from pathlib import Path

from streamfleet_platform.server.process import run_server
from streamfleet_platform.server.settings import ServerSettings

if __name__ == "__main__":
    told = json.loads(sys.argv[1])
    run_server(
        ServerSettings(
            source=Path(told["source"]),
            data=Path(told["data"]),
            registry=told.get("registry"),
            port=told["port"],
            lease_seconds=3.0,
            idle_seconds=0.5,
        )
    )
