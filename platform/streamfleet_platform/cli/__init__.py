"""The fleet on the command line. The command `streamfleet` (the engine's cli.py) finds `commands` here and offers them as its own.

    entry.py        which commands there are, in the order of their help
    connection.py   which server, with which token; errors as sentences and exit codes
    pages.py        what is shown: tables, and JSON with --json
    following.py    progress of an operation while it runs
    looking.py      status, describe, logs, query
    operating.py    plan, apply, and the verbs of an app
    files.py        validate, lock, diff, schema: about files here, without a server
    jobs.py         audit, bootstrap: run as child processes, reported to the server
    serving.py      server, up, down
    tokens.py       token create, list, revoke
    doctor.py       what is wrong with this machine, and what to do

Results go to standard output, everything else to standard error. Exit codes: 0 done, 1 refused or failed, 2 misused,
3 something is pending: changes that a plan or diff shows, a lock that is out of date, an operation that asks for a person.
"""

from streamfleet_platform.cli.entry import commands

__all__ = ["commands"]
