"""Field lists of the messages of streams groups, version 0, which the message library does not have. Read by messages.py."""
