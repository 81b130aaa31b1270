"""What the platform does to apps: one module per operation, each a list of steps that can be killed anywhere and done again.

    journal.py    writes a step down before it acts and after it, and carries operations on
    steps.py      what a step is given, and what it answers
    work.py       one app under work: its rows, its runtime, its cluster, what was seen of it
    cluster.py    the app's Kafka cluster, as far as operations change it; kafka_cluster.py: the real one
    topics.py     the topics an app needs
    slots.py      steps about workers: start, drain, stop, replace; gates.py: waiting for them to be well
    removal.py    steps about the end of an app; code_directories.py: code that no revision names
    bootstrap_runs.py bootstrap_adoption.py       runs of bootstraps: ended, cleaned up after, taken over
    deploy.py scale.py probe.py reset.py upgrade.py start_stop.py retire.py bootstrap.py

When they are done, and to which apps, is decided in reconcile/ and by people, through server/.
"""
