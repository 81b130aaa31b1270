"""What the jobs ask brokers: pinned ends, records in columns, batch headers."""
