"""The audit: an app's changelogs, read to a pinned end, and what is wrong with them."""
