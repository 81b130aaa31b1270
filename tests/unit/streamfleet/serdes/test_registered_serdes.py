"""Avro and Protobuf with confluent-kafka's in-memory registry; a registry that is away is a closed port."""

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st

import streamfleet as sf
from streamfleet.errors import ConfigError, SerdeUnavailableError
from streamfleet.serdes.identity import identity
from streamfleet.testing import TopologyTestDriver

FIELDS = [{"name": "customer", "type": "string"}, {"name": "cents", "type": "long"}]
SCHEMA = {"type": "record", "name": "Order", "fields": FIELDS}
NOWHERE = "http://127.0.0.1:9"


def registry():
    return SchemaRegistryClient.new_client({"url": "mock://"})


def order_messages(**more):
    """What protoc would generate for `message Order { string customer = 1; int64 cents = 2; }`, with more texts, and a
    `message Return { Order order = 1; }` in the same file: each version of it in a pool of its own.
    """
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    field = descriptor_pb2.FieldDescriptorProto
    order = file.message_type.add(name="Order")
    order.field.add(name="customer", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    order.field.add(name="cents", number=2, type=field.TYPE_INT64, label=field.LABEL_OPTIONAL)
    for name, number in more.items():
        order.field.add(name=name, number=number, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    back = file.message_type.add(name="Return")
    back.field.add(name="order", number=1, type=field.TYPE_MESSAGE, type_name=".shop.Order", label=field.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    kinds = (pool.FindMessageTypeByName(f"shop.{name}") for name in ("Order", "Return"))
    return tuple(message_factory.GetMessageClass(kind) for kind in kinds)


ORDER, RETURN = order_messages()
NEWER_ORDER, _ = order_messages(currency=3)


@given(st.text(), st.integers(-(2**63), 2**63 - 1))
def test_avro_gives_back_what_it_was_given(customer, cents):
    serde = sf.serdes.avro(SCHEMA, registry=REGISTRY)
    value = {"customer": customer, "cents": cents}
    assert serde.deserialize("orders", serde.serialize("orders", value)) == value


REGISTRY = registry()


def test_avro_is_framed_as_java_frames_it_and_registered_by_topic():
    client = registry()
    serde = sf.serdes.avro(SCHEMA, registry=client)
    data = serde.serialize("orders", {"customer": "c1", "cents": 3})
    known = client.get_latest_version("orders-value")
    assert data == b"\x00" + known.schema_id.to_bytes(4, "big") + b"\x04c1" + b"\x06"
    sf.serdes.avro('"string"', registry=client, is_key=True).serialize("orders", "o-1")
    assert set(client.get_subjects()) == {"orders-key", "orders-value"}


def test_avro_reads_what_an_older_schema_wrote():
    client = registry()
    written = sf.serdes.avro(SCHEMA, registry=client).serialize("orders", {"customer": "c1", "cents": 3})
    newer = {**SCHEMA, "fields": [*FIELDS, {"name": "currency", "type": "string", "default": "EUR"}]}
    read = sf.serdes.avro(newer, registry=client).deserialize("orders", written)
    assert read == {"customer": "c1", "cents": 3, "currency": "EUR"}


def test_avro_reads_what_a_newer_schema_wrote_without_what_it_does_not_know():
    client = registry()
    newer = {**SCHEMA, "fields": [*FIELDS, {"name": "currency", "type": "string", "default": "EUR"}]}
    written = sf.serdes.avro(newer, registry=client).serialize(
        "orders", {"customer": "c1", "cents": 3, "currency": "GBP"}
    )
    assert sf.serdes.avro(SCHEMA, registry=client).deserialize("orders", written) == {"customer": "c1", "cents": 3}


def test_avro_refuses_what_its_schema_cannot_be_read_as():
    client = registry()
    written = sf.serdes.avro(SCHEMA, registry=client).serialize("orders", {"customer": "c1", "cents": 3})
    needs_more = {
        **SCHEMA,
        "fields": [*FIELDS, {"name": "currency", "type": "string"}],
    }  # and says nothing for old ones
    with pytest.raises(ValueError, match=r"avro\(\) cannot read"):
        sf.serdes.avro(needs_more, registry=client).deserialize("orders", written)


def test_avro_can_carry_classes():
    serde = sf.serdes.avro(
        SCHEMA,
        registry=registry(),
        to_dict=lambda order: {"customer": order[0], "cents": order[1]},
        from_dict=lambda fields: (fields["customer"], fields["cents"]),
    )
    assert serde.deserialize("orders", serde.serialize("orders", ("c1", 3))) == ("c1", 3)


@given(st.text(), st.integers(-(2**63), 2**63 - 1))
def test_protobuf_gives_back_what_it_was_given(customer, cents):
    serde = sf.serdes.protobuf(ORDER, registry=REGISTRY)
    order = ORDER(customer=customer, cents=cents)
    assert serde.deserialize("orders", serde.serialize("orders", order)) == order


def test_protobuf_is_framed_as_java_frames_it_and_registered_by_topic():
    """Magic byte, schema id, and which message of the schema's file it is: 0 for the first, else a list of indexes (zig-zag)."""
    client = registry()
    data = sf.serdes.protobuf(ORDER, registry=client).serialize("orders", ORDER(customer="c1", cents=3))
    known = client.get_latest_version("orders-value")
    assert known.schema.schema_type == "PROTOBUF"
    assert data == b"\x00" + known.schema_id.to_bytes(4, "big") + b"\x00" + b"\x0a\x02c1\x10\x03"
    second = sf.serdes.protobuf(RETURN, registry=client, is_key=True).serialize(
        "orders", RETURN(order=ORDER(customer="c1"))
    )
    assert second[5:] == b"\x02\x02" + b"\x0a\x04\x0a\x02c1"
    assert set(client.get_subjects()) == {"orders-key", "orders-value"}


def test_protobuf_reads_what_an_older_class_wrote():
    client = registry()
    written = sf.serdes.protobuf(ORDER, registry=client).serialize("orders", ORDER(customer="c1", cents=3))
    read = sf.serdes.protobuf(NEWER_ORDER, registry=client).deserialize("orders", written)
    assert read == NEWER_ORDER(customer="c1", cents=3, currency="")


def test_protobuf_reads_what_a_newer_class_wrote_and_keeps_what_it_does_not_know():
    client = registry()
    newer, older = sf.serdes.protobuf(NEWER_ORDER, registry=client), sf.serdes.protobuf(ORDER, registry=client)
    read = older.deserialize("orders", newer.serialize("orders", NEWER_ORDER(customer="c1", cents=3, currency="GBP")))
    assert (read.customer, read.cents) == ("c1", 3)
    passed_on = newer.deserialize("copies", older.serialize("copies", read))
    assert passed_on == NEWER_ORDER(customer="c1", cents=3, currency="GBP")


@pytest.mark.parametrize(
    "serde", [sf.serdes.avro(SCHEMA, registry=REGISTRY), sf.serdes.protobuf(ORDER, registry=REGISTRY)]
)
def test_nothing_stays_nothing(serde):
    assert serde.serialize("orders", None) is None
    assert serde.deserialize("orders", None) is None


SERDES = {
    "avro": (lambda client: sf.serdes.avro(SCHEMA, registry=client), {"customer": "c1", "cents": 3}),
    "protobuf": (lambda client: sf.serdes.protobuf(ORDER, registry=client), ORDER(customer="c1", cents=3)),
}
each_kind = pytest.mark.parametrize("kind", SERDES)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        *[(kind, data) for kind in SERDES for data in (b"", b"abc", b"\x00\x00\x00\x00")],
        *[(kind, b"\x01\x00\x00\x00\x01\x00") for kind in SERDES],
        ("avro", b"\x00\x00\x00\x00\x01\x04c"),
        ("protobuf", b"\x00\x00\x00\x00\x01"),
        ("protobuf", b"\x00\x00\x00\x00\x01\x00\x0a\x09c1"),
        ("protobuf", b"\x00\x00\x00\x00\x01\x00\x0a\x02\xff\xfe"),
    ],
)
def test_bytes_of_others_are_refused_as_bad_records(kind, data):
    make, value = SERDES[kind]
    serde = make(registry())
    serde.serialize("orders", value)
    with pytest.raises(ValueError, match=rf"{kind}\(\) cannot read"):
        serde.deserialize("orders", data)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("avro", {"customer": "c1"}),
        ("avro", 5),
        ("protobuf", RETURN()),
        ("protobuf", {"customer": "c1"}),
        ("protobuf", 5),
    ],
)
def test_a_value_that_does_not_fit_is_refused_as_a_bad_record(kind, value):
    with pytest.raises(ValueError, match=rf"{kind}\(\) cannot write .*\({type(value).__name__}\)"):
        SERDES[kind][0](registry()).serialize("orders", value)


@each_kind
def test_a_registry_that_is_away_is_no_fault_of_the_record(kind):
    make, value = SERDES[kind]
    serde = make({"url": NOWHERE, "max.retries": 0})
    with pytest.raises(SerdeUnavailableError, match="does not answer"):
        serde.serialize("orders", value)
    with pytest.raises(SerdeUnavailableError, match="does not answer"):
        serde.deserialize("orders", b"\x00\x00\x00\x00\x01\x00\x0a\x02c1")


def test_declaring_connects_nowhere_and_names_the_schema_for_the_lock():
    found = identity(sf.serdes.avro(SCHEMA, registry=NOWHERE))
    assert found is not None and found["id"] == "avro" and found["fields"] == {"cents": "long", "customer": "string"}
    other = identity(sf.serdes.avro({**SCHEMA, "fields": FIELDS[:1]}, registry=NOWHERE))
    assert other is not None and other["fingerprint"] != found["fingerprint"]
    message = identity(sf.serdes.protobuf(ORDER, registry=NOWHERE))
    assert message is not None and message["id"] == "protobuf" and set(message["fields"]) == {"cents", "customer"}


@pytest.mark.parametrize("schema", ["{", ""])
def test_a_schema_that_is_no_json_is_refused_where_it_is_declared(schema):
    with pytest.raises(ConfigError, match="Avro schema is no JSON"):
        sf.serdes.avro(schema, registry=NOWHERE)


def test_what_is_no_message_class_is_refused():
    with pytest.raises(ConfigError, match="not a Protobuf message class"):
        sf.serdes.protobuf(int, registry=NOWHERE)


def test_a_topology_uses_them_for_streams_and_stores():
    client = registry()
    orders = sf.serdes.avro(SCHEMA, registry=client)
    builder = sf.StreamsBuilder()
    (
        builder.stream("orders", key_serde=sf.serdes.string(), value_serde=orders)
        .group_by_key()
        .reduce(
            lambda old, new: {**new, "cents": old["cents"] + new["cents"]},
            materialized=sf.Materialized("sums", key_serde=sf.serdes.string(), value_serde=orders),
        )
        .to_stream()
        .to("sums", key_serde=sf.serdes.string(), value_serde=orders)
    )
    with TopologyTestDriver(builder.build(), sf.StreamsConfig(application_id="a")) as driver:
        source = driver.input_topic("orders", sf.serdes.string(), orders)
        for cents in (3, 4):
            source.pipe("c1", {"customer": "c1", "cents": cents}, 0)
        table = driver.output_topic("sums", sf.serdes.string(), orders).read_table()
    assert table == {"c1": {"customer": "c1", "cents": 7}}
    assert set(client.get_subjects()) == {"orders-value", "sums-value", "a-sums-changelog-value"}


def test_a_topology_carries_messages_through_streams_stores_and_a_join():
    client = registry()
    orders, returns = (sf.serdes.protobuf(kind, registry=client) for kind in (ORDER, RETURN))
    text = sf.serdes.string()
    builder = sf.StreamsBuilder()
    table = builder.table("orders", key_serde=text, value_serde=orders, store="orders")
    taken_back = builder.stream("returns", key_serde=text, value_serde=returns)
    sums = taken_back.join(table, lambda back, order: ORDER(customer=order.customer, cents=-order.cents))
    sums.to("out", key_serde=text, value_serde=orders)
    config = sf.StreamsConfig(application_id="a")
    with TopologyTestDriver(builder.build(), config) as driver:
        driver.input_topic("orders", text, orders).pipe("o1", ORDER(customer="c1", cents=3), 0)
        driver.input_topic("returns", text, returns).pipe("o1", RETURN(), 1)
        assert driver.store("orders").get("o1").value == ORDER(customer="c1", cents=3)
        assert driver.output_topic("out", text, orders).read_all() == [("o1", ORDER(customer="c1", cents=-3))]
        with pytest.raises(
            sf.DeserializationError, match=r"protobuf\(\) cannot read .*topic returns, partition 0, offset 1"
        ):
            driver.pipe_raw("returns", b"o1", b"no message", 2)
    assert {"orders-value", "returns-value", "out-value", "a-orders-changelog-value"} == set(client.get_subjects())


@each_kind
@pytest.mark.parametrize("side", ["source", "sink", "store"])
def test_an_outage_of_the_registry_drops_nothing_whatever_the_handlers_answer(kind, side):
    make, value = SERDES[kind]
    away, here = make({"url": NOWHERE, "max.retries": 0}), make(registry())
    text = sf.serdes.string()
    builder = sf.StreamsBuilder()
    stream = builder.stream("orders", key_serde=text, value_serde=away if side == "source" else here)
    if side == "store":
        stored = sf.Materialized("sums", key_serde=text, value_serde=away)
        stream = stream.group_by_key().reduce(lambda old, new: new, materialized=stored).to_stream()
    stream.to("out", key_serde=text, value_serde=away if side == "sink" else here)
    config = sf.StreamsConfig(
        application_id="a",
        deserialization_handler=sf.LogAndContinueDeserialization(),
        processing_handler=sf.LogAndContinueProcessing(),
        production_handler=sf.ContinueProduction(),
    )
    metrics = []
    with (
        pytest.raises(SerdeUnavailableError, match="does not answer"),
        TopologyTestDriver(builder.build(), config) as driver,
    ):
        metrics.append(driver.metrics())
        driver.input_topic("orders", text, here).pipe("c1", value, 0)
    assert metrics[0].dropped_records == {}
