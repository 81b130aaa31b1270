"""What the platform remembers: which apps there should be, what was done to them, and what was seen.

    tables.py       every table, as typed classes
    migrations/     how they came to be; applied when a server starts
    database.py     SQLite or Postgres: transactions, and how long a busy one is waited for
    lease.py        who may act: one leader, with a fencing token that every write shows
    apps.py         apps, their revisions, workers and topics
    journal.py      operations and their steps
    history.py      events, phases, observations, recommendations
    audits.py       what audits found; bootstraps.py: how far bootstraps are

Nothing here decides anything. Rows never leave their session: what others get is detached and is not written back by itself.
"""
