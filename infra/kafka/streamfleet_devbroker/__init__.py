"""The development broker: a real Apache Kafka on this machine, for people and for tests.

In the order things happen:
    directories.py    where jars, data and logs lie
    java.py           a Java 17+ that is here, or one from the package index
    jars.py           the pinned jars, verified; maven.py and ivy.py fetch them
    storage.py        a node's formatted data directory and its settings; ports.py its ports
    node.py           one JVM: started, watched, stopped; guard.py ends it when its owner dies
    cluster.py        one or three nodes that form one cluster; readiness.py when they answer, diagnosis.py why not
    service.py        the broker of a person: start, stop, status, reset
    pytest_plugin.py  the broker of a test run
    cli.py            the commands
Not here: anything that an app needs in production. Of the engine only its `streamfleet` command imports this.
"""

from streamfleet_devbroker.cluster import Cluster, ClusterSpec
from streamfleet_devbroker.errors import (
    BrokerConflictError,
    BrokerCrashedError,
    BrokerError,
    JarsUnavailableError,
    JavaUnavailableError,
    NoSpaceError,
    NotReadyError,
    PortTakenError,
)

__all__ = [
    "BrokerConflictError",
    "BrokerCrashedError",
    "BrokerError",
    "Cluster",
    "ClusterSpec",
    "JarsUnavailableError",
    "JavaUnavailableError",
    "NoSpaceError",
    "NotReadyError",
    "PortTakenError",
]
