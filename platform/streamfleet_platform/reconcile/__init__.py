"""From what should be and what is to what is done: one pass over all apps, again and again.

    planner.py      definitions at a ref against the registry: what applying them would mean
    applying.py     a plan becomes revisions and operations
    phases.py       one word for what an app is doing, and why
    drift.py        differences between what should be and what is, and their correction
    decisions.py    scaling and probing, written down for sensors
    reconciler.py   the pass

What an operation does is in operations/, how the world is looked at in observe/.
"""
