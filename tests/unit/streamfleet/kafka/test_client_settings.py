"""From an app's settings to those of its clients; nothing here connects to anything."""

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from hypothesis import given
from hypothesis import strategies as st

from streamfleet.errors import ConfigError
from streamfleet.kafka.client_making import make_client
from streamfleet.kafka.client_settings import ClientSettings, is_client_setting
from streamfleet.kafka.librdkafka_names import CONNECTION, CONSUMER, ENGINE_OWNED, JAVA_NAMES, PRODUCER

SERVERS = {"bootstrap.servers": "localhost:1"}
PREFIXES = ("consumer.", "main.consumer.", "restore.consumer.", "global.consumer.", "producer.", "admin.")


def settings(**more):
    return ClientSettings.from_mapping(SERVERS | {name.replace("__", "."): value for name, value in more.items()})


def consumer(made, role="main", *, exactly_once=True):
    return made.consumer(role, group_id="app", client_id="c", exactly_once=exactly_once)


def test_the_narrower_prefix_wins():
    made = ClientSettings.from_mapping(
        SERVERS
        | {
            "socket.timeout.ms": 1,
            "consumer.socket.timeout.ms": 2,
            "restore.consumer.socket.timeout.ms": 3,
            "producer.socket.timeout.ms": 4,
        }
    )
    assert consumer(made, "restore")["socket.timeout.ms"] == 3
    assert consumer(made, "main")["socket.timeout.ms"] == consumer(made, "global")["socket.timeout.ms"] == 2
    assert made.producer(client_id="p")["socket.timeout.ms"] == 4
    assert made.admin(client_id="a")["socket.timeout.ms"] == 1


@pytest.mark.parametrize("role", ["main", "restore", "global"])
def test_no_consumer_jumps_commits_or_reads_what_may_be_aborted(role):
    made = consumer(settings(), role)
    assert made["auto.offset.reset"] == "error"
    assert made["check.crcs"] is True
    assert made["enable.auto.commit"] is made["enable.auto.offset.store"] is made["allow.auto.create.topics"] is False
    assert made["isolation.level"] == "read_committed"
    assert consumer(settings(), role, exactly_once=False)["isolation.level"] == "read_uncommitted"


def test_a_producer_is_idempotent_and_partitions_like_java():
    made = settings().producer(client_id="p")
    assert (made["enable.idempotence"], made["acks"], made["partitioner"]) == (True, "all", "murmur2_random")
    assert made["delivery.report.only.error"] is True
    assert "transactional.id" not in made


def test_a_transactional_producer_retries_at_once_and_hears_of_success():
    made = settings().transactional_producer(client_id="p", transactional_id="t")
    assert (made["transactional.id"], made["transaction.timeout.ms"], made["retry.backoff.ms"]) == ("t", 10_000, 1)
    assert "delivery.report.only.error" not in made


def test_transaction_settings_of_the_app_reach_only_the_transactional_producer():
    made = settings(producer__transaction__timeout__ms=30_000, retry__backoff__ms=7)
    transactional = made.transactional_producer(client_id="p", transactional_id="t")
    assert (transactional["transaction.timeout.ms"], transactional["retry.backoff.ms"]) == (30_000, 7)
    assert "transaction.timeout.ms" not in made.producer(client_id="p")


def test_the_batch_header_is_left_out_of_the_record_limit():
    made = settings().producer(client_id="p", message_limits={"t": 5000})
    assert made["message.max.bytes"] == made["batch.size"] == 5000 - 61


def test_batches_obey_the_smallest_limit_and_records_the_largest():
    made = settings().producer(client_id="p", message_limits={"small": 5000, "large": 80_000})
    assert (made["message.max.bytes"], made["batch.size"]) == (80_000 - 61, 5000 - 61)


def test_a_smaller_limit_of_the_app_is_kept():
    made = settings(producer__message__max__bytes=2000, producer__batch__size=1500)
    made = made.producer(client_id="p", message_limits={"t": 5000})
    assert (made["message.max.bytes"], made["batch.size"]) == (2000, 1500)


def test_a_limit_below_what_the_client_can_do_is_rounded_up():
    assert settings().producer(client_id="p", message_limits={"t": 10})["message.max.bytes"] == 1000


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("consumer.max.poll.records", "queued.min.messages"),
        ("producer.key.serializer", "key_serde"),
        ("ssl.truststore.location", "ssl.ca.location"),
        ("sasl.jaas.config", "sasl.username and sasl.password"),
        ("producer.buffer.memory", "queue.buffering.max.kbytes"),
        ("main.consumer.fetch.max.wait.ms", "fetch.wait.max.ms"),
    ],
)
def test_a_name_of_the_java_clients_is_refused_with_what_to_use_instead(name, instead):
    with pytest.raises(ConfigError, match=f"setting {name} belongs to the Java clients; .*{instead}"):
        ClientSettings.from_mapping(SERVERS | {name: "x"})


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("consumer.enable.auto.commit", "committed by the engine"),
        ("restore.consumer.isolation.level", "processing.guarantee"),
        ("producer.partitioner", "where Java clients would put them"),
        ("producer.transactional.id", "processing.guarantee"),
        ("main.consumer.auto.offset.reset", "offset_reset"),
        ("admin.client.id", "named after the app"),
    ],
)
def test_a_setting_of_the_engine_is_refused_with_the_reason(name, reason):
    with pytest.raises(ConfigError, match=f"setting {name} cannot be chosen: .*{reason}"):
        ClientSettings.from_mapping(SERVERS | {name: "x"})


def test_a_misspelt_name_is_refused_with_the_nearest_one():
    with pytest.raises(ConfigError, match=r"'producer.linger.mss'; did you mean producer.linger.ms\?"):
        ClientSettings.from_mapping(SERVERS | {"producer.linger.mss": 1})


def test_a_setting_of_another_client_is_refused():
    with pytest.raises(ConfigError, match="unknown client setting 'consumer.linger.ms'"):
        ClientSettings.from_mapping(SERVERS | {"consumer.linger.ms": 1})


@pytest.mark.parametrize("given_settings", [{}, {"bootstrap.servers": ""}, {"admin.bootstrap.servers": "localhost:1"}])
def test_the_brokers_must_be_named(given_settings):
    with pytest.raises(ConfigError, match="bootstrap.servers is missing"):
        ClientSettings.from_mapping(given_settings)


def test_client_settings_are_told_from_those_of_the_engine():
    yes = ["bootstrap.servers", "sasl.password", "ssl.truststore.location", "producer.linger.ms", "consumer.nonsense"]
    no = ["application.id", "topic.retention.ms", "state.dir", "max.task.idle.ms", "processing.guarantee"]
    assert [name for name in yes + no if is_client_setting(name)] == yes


def test_what_may_be_set_is_neither_the_engines_nor_javas():
    assert not (CONNECTION | CONSUMER | PRODUCER) & (ENGINE_OWNED.keys() | JAVA_NAMES.keys())


@given(st.sampled_from(PREFIXES), st.sampled_from(sorted(ENGINE_OWNED)), st.text(max_size=5))
def test_nothing_overrides_what_correctness_needs(prefix, name, value):
    with pytest.raises(ConfigError):
        ClientSettings.from_mapping(SERVERS | {prefix + name: value})


# Only where the value is checked: files that must exist, schemes that must fit, lists of words.
_HARD_TO_GUESS = (
    "ssl.",
    "sasl.",
    "security.",
    "debug",
    "broker.address.family",
    "client.dns.lookup",
    "metadata.recovery",
)


@pytest.mark.parametrize(
    "name", sorted(n for n in CONNECTION | CONSUMER | PRODUCER if not n.startswith(_HARD_TO_GUESS))
)
def test_librdkafka_knows_every_name_that_may_be_set(name):
    """It refuses a value that makes no sense, or takes it: only an unknown name is our mistake."""
    kind = Consumer if name in CONSUMER else Producer
    refused = ""
    try:
        kind({"group.id": "g", **SERVERS, name: "1"} if kind is Consumer else {**SERVERS, name: "1"})
    except KafkaException as error:
        refused = str(error)
    assert "No such configuration property" not in refused


def test_the_clients_accept_what_is_made_for_them():
    made = settings()
    clients = [
        make_client(Consumer, consumer(made)),
        make_client(Producer, made.producer(client_id="p", message_limits={"t": 1_048_588})),
        make_client(Producer, made.transactional_producer(client_id="p", transactional_id="t")),
        make_client(AdminClient, made.admin(client_id="a")),
    ]
    assert len(clients) == 4


def test_a_value_that_librdkafka_refuses_is_a_config_error():
    made = settings(producer__batch__size="large").producer(client_id="p")
    with pytest.raises(ConfigError, match="refused its settings: .*batch.size"):
        make_client(Producer, made)


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ({}, 2000),
        ({"message.timeout.ms": 500}, 500),
        ({"delivery.timeout.ms": 60_000}, 2000),
        ({"message.timeout.ms": 0}, 2000),
    ],
)
def test_records_never_wait_longer_than_a_plain_producer_may_let_them(asked, given):
    chosen = settings(**{f"producer.{name}": value for name, value in asked.items()})
    made = chosen.plain_producer(client_id="p", delivery_timeout_ms=2000)
    assert (made["message.timeout.ms"], made.get("delivery.timeout.ms")) == (given, None)
