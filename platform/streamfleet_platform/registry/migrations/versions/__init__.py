"""One module per version of the registry's tables, in order."""
