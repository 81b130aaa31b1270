"""Poll, process, punctuate, commit: the step machine of one group member and the tasks it runs.

Nothing here owns an operating-system thread, sleeps or reads a clock of its own: whoever owns a StreamThread steps it.
"""
