"""The worker: one process that runs one app. `streamfleet run` and `streamfleet worker reset` are its commands.

Here is what a process needs beyond the engine: a configuration file, logs, signals and exit codes, and an HTTP door
through which others see how it is. Nothing here touches a record.
"""
