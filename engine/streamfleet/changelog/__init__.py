"""The store's copy in Kafka, read back: restoring tasks before they run. Writing changelogs is done by the stores themselves."""
