"""`python -m streamfleet_platform.cli`: the fleet's commands by themselves, as `up` starts the server."""

from streamfleet_platform.cli.entry import commands

if __name__ == "__main__":
    commands()
