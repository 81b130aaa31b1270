"""Fixtures for every test set: the development broker (`broker`, `broker_cluster`), started when a test asks for it."""

pytest_plugins = ["streamfleet_devbroker.pytest_plugin"]
