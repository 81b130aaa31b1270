"""How many slots an app should have, and why: pure functions over a snapshot of measurements.

    measures.py     what is measured, and what the definition allows
    demand.py       what each task has to do: demand and load
    simulation.py   who would run what with another number of slots: the engine's own assignor is asked
    need.py         how many slots the numbers alone ask for
    price.py        what getting there costs, and what it brings
    guards.py       when nothing is decided, and what is the cause
    decision.py     decide(...): all together, with a written reason
    attempts.py     what became of earlier decisions: failures are not repeated at once, gains are measured
    budget.py       the slots that all apps share

Who measures, keeps the history and acts lives elsewhere.
"""
