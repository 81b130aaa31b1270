"""Support of the audit's tests: logs in columns, topics that are really compacted, an app that runs."""
