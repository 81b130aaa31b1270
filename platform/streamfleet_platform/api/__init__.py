"""The fleet over HTTP: FleetService (service.py) with addresses, tokens and statuses. server/ serves what create_app makes.

    app.py           create_app: everything below put together
    gatekeeper.py    in front of every route: Host, token, rate, security headers
    access.py        who may do what: one table
    token_file.py    the tokens: made by `streamfleet token create`, kept as hashes
    commands.py      bodies and idempotency of calls that change something
    problems.py      every error as application/problem+json
    looking.py, operating.py, jobs.py    the routes
    change_feed.py   /v1/events/stream: what changed, as it changes
    gateway.py       keys of stores, asked through the workers' doors
    console_files.py the console's static files

It decides who may call, never what happens: that is the service's.
"""

from streamfleet_platform.api.app import create_app
from streamfleet_platform.api.token_file import TokenFile

__all__ = ["TokenFile", "create_app"]
