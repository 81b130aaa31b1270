"""The two code locations, ready to be served: `dagster code-server start -m dagster_streamfleet.locations.fleet`."""
