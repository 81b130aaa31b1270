"""The server: one process that holds the registry, reconciles, and serves the API.

settings.py     where everything is
fleet.py        Fleet: the FleetService, put together from the parts below
looking.py      rows become views
changing.py     what callers ask for becomes rows: plan, apply, operations
resetting.py    previews of resets, and resets that Git asks for
auditing.py     what audits have to know, and what they report
bootstrapping.py  bootstraps: begun, gone on with, reported by their jobs, aborted
loop.py         holds the lease and makes pass after pass
following.py    a branch of Git that is followed: planned or applied as it moves
process.py      run_server: all of it, and a clean end
"""
