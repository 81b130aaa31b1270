"""Names of client settings: which may be set by an app, which belong to the engine, and what Java's are called here.

Read by client_settings.py. An allow-list, because librdkafka also has settings that load code or run commands, and
because a setting that silently does nothing is worse than one that is refused.
"""

from __future__ import annotations

from types import MappingProxyType


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


CONNECTION = _names(
    """
    bootstrap.servers broker.address.family broker.address.ttl client.dns.lookup client.rack connections.max.idle.ms debug
    enable.metrics.push enable.ssl.certificate.verification log.connection.close log_level metadata.max.age.ms
    metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy receive.message.max.bytes reconnect.backoff.max.ms
    reconnect.backoff.ms retry.backoff.max.ms retry.backoff.ms security.protocol socket.connection.setup.timeout.ms
    socket.keepalive.enable socket.max.fails socket.nagle.disable socket.receive.buffer.bytes socket.send.buffer.bytes
    socket.timeout.ms topic.metadata.propagation.max.ms topic.metadata.refresh.interval.ms
    sasl.kerberos.keytab sasl.kerberos.min.time.before.relogin sasl.kerberos.principal sasl.kerberos.service.name
    sasl.mechanism sasl.mechanisms sasl.oauthbearer.client.id sasl.oauthbearer.client.secret sasl.oauthbearer.config
    sasl.oauthbearer.extensions sasl.oauthbearer.grant.type sasl.oauthbearer.method sasl.oauthbearer.scope
    sasl.oauthbearer.token.endpoint.url sasl.password sasl.username
    ssl.ca.certificate.stores ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.certificate.pem ssl.cipher.suites
    ssl.crl.location ssl.curves.list ssl.endpoint.identification.algorithm ssl.key.location ssl.key.password ssl.key.pem
    ssl.keystore.location ssl.keystore.password ssl.sigalgs.list
    """
)
"""For every client. Without a prefix they hold for all; `admin.` and the like narrow them."""

CONSUMER = _names(
    """
    fetch.error.backoff.ms fetch.max.bytes fetch.message.max.bytes fetch.min.bytes fetch.queue.backoff.ms fetch.wait.max.ms
    max.partition.fetch.bytes queued.max.messages.kbytes queued.min.messages
    """
)

PRODUCER = _names(
    """
    batch.num.messages batch.size compression.codec compression.level compression.type delivery.timeout.ms linger.ms
    max.in.flight max.in.flight.requests.per.connection message.max.bytes message.send.max.retries message.timeout.ms
    queue.buffering.backpressure.threshold queue.buffering.max.kbytes queue.buffering.max.messages queue.buffering.max.ms
    request.timeout.ms retries sticky.partitioning.linger.ms transaction.timeout.ms
    """
)

_MEMBERSHIP = "the engine is a member of the group by itself, its clients are not"
_NO_COMMIT = "offsets are committed by the engine, with the records they belong to"
_GUARANTEE = "it follows from processing.guarantee"
_CALLBACK = "the engine listens to its clients itself"

ENGINE_OWNED = MappingProxyType(
    {
        "acks": "every record must be acknowledged by all in-sync replicas",
        "allow.auto.create.topics": "a misspelt topic must be an error, not a new topic",
        "auto.commit.enable": _NO_COMMIT,
        "auto.commit.interval.ms": _NO_COMMIT,
        "auto.offset.reset": "it would jump over records silently; say offset_reset where the source is made",
        "check.crcs": "corrupt records are always looked for",
        "client.id": "clients are named after the app and the thread",
        "delivery.report.only.error": _CALLBACK,
        "enable.auto.commit": _NO_COMMIT,
        "enable.auto.offset.store": _NO_COMMIT,
        "enable.gapless.guarantee": "one refused record must not end the producer",
        "enable.idempotence": "a retried record must not be written twice",
        "enable.partition.eof": _CALLBACK,
        "error_cb": _CALLBACK,
        "group.id": "it is the application.id",
        "group.instance.id": _MEMBERSHIP,
        "group.protocol": _MEMBERSHIP,
        "group.protocol.type": _MEMBERSHIP,
        "group.remote.assignor": _MEMBERSHIP,
        "heartbeat.interval.ms": _MEMBERSHIP,
        "isolation.level": _GUARANTEE,
        "logger": _CALLBACK,
        "max.poll.interval.ms": _MEMBERSHIP,
        "offset.store.method": _NO_COMMIT,
        "on_delivery": _CALLBACK,
        "partition.assignment.strategy": _MEMBERSHIP,
        "partitioner": "records must go where Java clients would put them, or joins miss each other",
        "request.required.acks": "every record must be acknowledged by all in-sync replicas",
        "session.timeout.ms": _MEMBERSHIP,
        "statistics.interval.ms": _CALLBACK,
        "stats_cb": _CALLBACK,
        "throttle_cb": _CALLBACK,
        "transactional.id": _GUARANTEE,
    }
)
"""Settings an app cannot choose, with the reason it is given."""

_SERDES = "say key_serde and value_serde where sources and sinks are made"

JAVA_NAMES = MappingProxyType(
    {
        "buffer.memory": "use queue.buffering.max.kbytes",
        "default.api.timeout.ms": "use socket.timeout.ms",
        "fetch.max.wait.ms": "use fetch.wait.max.ms",
        "interceptor.classes": "there are no interceptors here; leave it out",
        "key.deserializer": _SERDES,
        "key.serializer": _SERDES,
        "max.block.ms": "use message.timeout.ms",
        "max.poll.records": "use queued.min.messages for what is fetched ahead; how many are taken at once is the engine's",
        "max.request.size": "use message.max.bytes",
        "metric.reporters": "metrics are exported by the worker; leave it out",
        "partitioner.class": "the partitioner is always Java's default; say a partitioner where the sink is made",
        "receive.buffer.bytes": "use socket.receive.buffer.bytes",
        "sasl.client.callback.handler.class": "use sasl.oauthbearer.method",
        "sasl.jaas.config": "use sasl.username and sasl.password",
        "sasl.login.callback.handler.class": "use sasl.oauthbearer.method",
        "sasl.login.class": "use sasl.mechanism",
        "send.buffer.bytes": "use socket.send.buffer.bytes",
        "socket.connection.setup.timeout.max.ms": "use socket.connection.setup.timeout.ms",
        "ssl.enabled.protocols": "use ssl.cipher.suites",
        "ssl.keystore.certificate.chain": "use ssl.certificate.pem",
        "ssl.keystore.key": "use ssl.key.pem",
        "ssl.keystore.type": "ssl.keystore.location takes PKCS#12; for PEM use ssl.certificate.location and ssl.key.location",
        "ssl.protocol": "use ssl.cipher.suites",
        "ssl.truststore.certificates": "use ssl.ca.pem",
        "ssl.truststore.location": "use ssl.ca.location, with a file of PEM certificates",
        "ssl.truststore.password": "use ssl.ca.location, with a file of PEM certificates, which needs none",
        "ssl.truststore.type": "use ssl.ca.location, with a file of PEM certificates",
        "value.deserializer": _SERDES,
        "value.serializer": _SERDES,
    }
)
"""Settings of the Java clients that librdkafka calls otherwise or does not have, with what to do instead."""
