"""Spark for the jobs: a session, and the Kafka connector's jars."""
