"""Back out, durably: the order in which results, changelogs, offsets and rows are made durable, for each guarantee."""
