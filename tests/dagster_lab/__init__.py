"""A fleet that Dagster really runs: apps whose work is known, their load, Dagster's own processes, and a browser to look at both.

source/        definitions and code of the apps, copied into a Git repository of the test's own
fleet.py       the server and its apps; load.py: what is written to them, and what must come of it
placement.py   where tasks are, and how long warm-ups wait
daemon.py      Dagster: its ticks, runs and observations, asked as its pages ask
browser.py     Chromium; what was seen is kept below build/screenshots
"""
