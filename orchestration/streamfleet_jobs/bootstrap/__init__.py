"""The bootstrap job: an app's store from data at rest, as table files and a full changelog of a new store epoch.

    spec.py              what is asked for
    job.py               the steps in order, each proven before it is skipped: computed, staged, changelog_written, verified
    steps.py             the record that a step leaves behind; the newest token fences all others
    source.py            what the table holds, offset by offset: where the app goes on reading
    rows.py              aggregates become the store's own keys and values, by the engine's serdes
    local_engine.py      aggregation with Arrow, in this process
    spark_engine.py      the same with Spark
    staging.py           sorted rows become table files
    changelog_topic.py   sorted rows become the changelog; reads it back
    verification.py      files, changelog and rows say the same
    recomputation.py     a sample of keys is computed again by the engine itself
    manifests.py         what makes table files count, written last
    cut_over.py          nobody is in the group; its offsets: set, read back, put back by an abort

The platform decides when to run it, gives out epochs and tokens, and publishes; workers adopt what it left (streamfleet/state).
"""
