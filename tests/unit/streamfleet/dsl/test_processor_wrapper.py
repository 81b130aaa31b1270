"""A ProcessorWrapper gets its hands on every processor, changes nothing by itself, and may bring stores."""

import pytest

import streamfleet as sf
from streamfleet.cli import CommandError, load_topology
from streamfleet.testing import TopologyTestDriver

TEXT, NUMBER = sf.serdes.string(), sf.serdes.long()


class Watched(sf.Processor):
    """Another processor, with every record it gets written down."""

    def __init__(self, inner, seen):
        self._inner, self._seen = inner, seen

    def init(self, context):
        self._inner.init(context)

    def process(self, record):
        self._seen.append(record.value)
        self._inner.process(record)

    def close(self):
        self._inner.close()


class WatchedValues(sf.FixedKeyProcessor):
    def __init__(self, inner, seen):
        self._inner, self._seen = inner, seen

    def init(self, context):
        self._inner.init(context)

    def process(self, record):
        self._seen.append(record.value)
        self._inner.process(record)


class Watching(sf.ProcessorWrapper):
    def __init__(self):
        self.seen = {}

    def wrap(self, name, supplier):
        seen = self.seen.setdefault(name, [])

        def watched():
            inner = supplier()
            return (WatchedValues if isinstance(inner, sf.FixedKeyProcessor) else Watched)(inner, seen)

        return watched


class Shouting(sf.FixedKeyProcessor):
    def process(self, record):
        self.context.forward(record.with_value(record.value.upper()))


def words(config):
    builder = sf.StreamsBuilder(config)
    places = builder.global_table("places", store="places")
    short, long = (
        builder.stream("lines")
        .flat_map_values(str.split, name="split")
        .process_values(Shouting, name="shout")
        .split(name="by-")
        .branch(lambda k, v: len(v) < 3, name="short")
        .default_branch()
        .values()
    )
    joined = short.left_join(places, lambda v, place: f"{v}@{place}", key_selector=lambda k, v: k, name="join")
    joined.merge(long, name="merge").group_by(lambda k, v: v, key_serde=TEXT, value_serde=TEXT, name="by").count(
        name="count", store="counts"
    ).to_stream(name="updates").to("counts", value_serde=NUMBER)
    return builder.build()


def config(**settings):
    return sf.StreamsConfig(application_id="app", default_key_serde=TEXT, default_value_serde=TEXT, **settings)


def run(chosen):
    with TopologyTestDriver(words(chosen), chosen) as driver:
        driver.input_topic("places", TEXT, TEXT).pipe("k", "here")
        lines = driver.input_topic("lines", TEXT, TEXT)
        lines.pipe("k", "to be or not")
        lines.pipe("k", "to be")
        return driver.output_topic("counts", TEXT, NUMBER).read_all_records()


@pytest.mark.parametrize("execution", ["compiled", "interpreted"])
def test_every_operator_is_wrapped_and_gives_what_it_gave(execution):
    wrapper = Watching()
    plain, watched = (
        config(topology_execution=execution),
        config(topology_execution=execution, processor_wrapper=wrapper),
    )
    assert run(watched) == run(plain)
    nodes = words(plain).processor_topology("app").nodes
    processors = {node.name for node in nodes if hasattr(node, "supplier")}
    assert processors < set(wrapper.seen)
    assert set(wrapper.seen) - processors == {name for name in wrapper.seen if name.startswith("KTABLE-SOURCE")}
    assert wrapper.seen["split"] == ["to be or not", "to be"]
    assert wrapper.seen["shout"] == ["to", "be", "or", "not", "to", "be"]
    assert wrapper.seen["by-short"] == ["TO", "BE", "OR", "TO", "BE"]
    assert [change.new for change in wrapper.seen["updates"]] == [1, 1, 1, 1, 2, 2]


def test_a_wrapper_brings_stores_and_may_pass_on_those_of_what_it_wraps():
    class Tallying(sf.Processor):
        def __init__(self, inner):
            self._inner = inner

        def init(self, context):
            self._tally = context.get_state_store("tally")
            self._inner.init(context)

        def process(self, record):
            self._tally.put(record.key, (self._tally.get(record.key) or 0) + 1)
            self._inner.process(record)

    class Supplier:
        def __init__(self, supplier):
            self._supplier = supplier

        def __call__(self):
            return Tallying(self._supplier())

        def stores(self):
            own = sf.Stores.key_value("tally", key_serde=TEXT, value_serde=NUMBER)
            return [own, *self._supplier.stores()]

    class Keeping(sf.Processor):
        @staticmethod
        def stores():
            return [sf.Stores.key_value("last", key_serde=TEXT, value_serde=TEXT)]

        def process(self, record):
            self.context.get_state_store("last").put(record.key, record.value)

    class Wrapper(sf.ProcessorWrapper):
        def wrap(self, name, supplier):
            return Supplier(supplier)

    chosen = config(processor_wrapper=Wrapper())
    topology = sf.Topology(chosen)
    topology.add_source("in", "in").add_processor("keep", Keeping, "in")
    with TopologyTestDriver(topology, chosen) as driver:
        records = driver.input_topic("in", TEXT, TEXT)
        records.pipe("a", "x")
        records.pipe("a", "y")
        assert (driver.store("tally").get("a"), driver.store("last").get("a")) == (2, "y")


def test_a_wrapper_that_returns_one_processor_twice_is_refused():
    class Sharing(sf.ProcessorWrapper):
        def wrap(self, name, supplier):
            made = supplier()
            return lambda: made

    with pytest.raises(sf.OptionError, match=r"KTABLE-SOURCE-\d+, wrapped by .*Sharing, returned one instance twice"):
        words(config(processor_wrapper=Sharing()))


def test_a_setting_names_a_wrapper_by_its_module():
    settings = {"application.id": "app", "processor.wrapper.class": f"{__name__}:Watching"}
    assert isinstance(sf.StreamsConfig.from_mapping(settings).processor_wrapper, Watching)
    for wrong in ("nowhere:Watching", f"{__name__}:nothing", "Watching", f"{__name__}:Watched"):
        with pytest.raises(sf.ConfigError, match="ProcessorWrapper"):
            sf.StreamsConfig.from_mapping(settings | {"processor.wrapper.class": wrong})


def built_without():
    return words(config())


def left_to_the_command_line():
    builder = sf.StreamsBuilder()
    builder.stream("lines").filter(lambda k, v: True, name="all").to("out")
    return builder


def test_the_command_line_refuses_a_topology_that_was_built_without():
    chosen = config(processor_wrapper=Watching())
    with pytest.raises(CommandError, match=r"processor\.wrapper\.class is Watching, but .* return the StreamsBuilder"):
        load_topology(f"{__name__}:built_without", chosen)
    assert load_topology(f"{__name__}:left_to_the_command_line", chosen).config is chosen
    assert set(chosen.processor_wrapper.seen) == {"all"}
