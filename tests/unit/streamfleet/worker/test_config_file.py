import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfleet import serdes
from streamfleet.errors import ConfigError
from streamfleet.processor.timestamps import WallclockTimestampExtractor
from streamfleet.worker.config_file import SERDES, load_config, parse_settings

MINIMAL = "application.id: shop\nbootstrap.servers: a:9092,b:9092\n"


@pytest.fixture
def load(tmp_path):
    def write_and_load(text, **options):
        path = tmp_path / "app.yaml"
        path.write_text(text)
        return load_config(path, environment={"SECRET": "hunter2"}, **options)

    return write_and_load


def test_dotted_names_become_settings(load):
    config = load(
        MINIMAL + "commit.interval.ms: 500\nprocessing.guarantee: exactly_once_v2\ntopic.min.insync.replicas: 2\n"
    )
    assert config.application_id == "shop"
    assert config.bootstrap_servers == "a:9092,b:9092"
    assert config.commit_interval_ms == 500
    assert config.is_exactly_once
    assert config.topic_overrides == {"min.insync.replicas": "2"}


def test_serdes_and_extractors_are_named(load):
    config = load(
        MINIMAL
        + "default.key.serde: string\ndefault.value.serde: long\ndefault.timestamp.extractor: WallclockTimestampExtractor\n"
    )
    assert config.default_key_serde.serialize("t", "é") == serdes.string().serialize("t", "é")
    assert config.default_value_serde.serialize("t", 7) == serdes.long().serialize("t", 7)
    assert isinstance(config.default_timestamp_extractor, WallclockTimestampExtractor)


@pytest.mark.parametrize("name", sorted(SERDES))
def test_every_named_serde_can_be_made(load, name):
    assert load(MINIMAL + f"default.value.serde: {name}\n").default_value_serde is not None


def test_a_variable_stands_for_its_value(load):
    config = load(MINIMAL + "sasl.username: me\nsasl.password: ${SECRET}\n")
    assert config.client_settings == {"sasl.username": "me", "sasl.password": "hunter2"}


def test_the_state_directory_of_the_command_wins(load, tmp_path):
    assert load(MINIMAL + "state.dir: /elsewhere\n", state_dir=tmp_path).state_dir == tmp_path


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "has no settings"),
        ("- a\n- b\n", "has no settings"),
        ("a: [", "cannot be read"),
        (MINIMAL + "application.id: other\n", "'application.id' is there twice, again in line 3"),
        ("bootstrap.servers: a:1\n", "application.id is missing"),
        (MINIMAL + "comit.interval.ms: 5\n", "did you mean commit.interval.ms?"),
        (MINIMAL + "commit.interval.ms: soon\n", "commit.interval.ms cannot be 'soon'"),
        (MINIMAL + "sasl:\n  username: me\n", "write it flat, as sasl.username: value"),
        (MINIMAL + "state.dir: [a, b]\n", "state.dir is not one text or number"),
        (MINIMAL + "state.dir:\n", "state.dir is not one text or number"),
        (MINIMAL + "default.key.serde: text\n", "one of boolean, bytes, double"),
        (MINIMAL + "sasl.password: ${NOT_SET}\n", "wants the environment variable NOT_SET"),
        ("!!python/object/apply:os.system ['true']\n", "cannot be read"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(load, text, reason):
    with pytest.raises(ConfigError) as raised:
        load(text)
    assert reason in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match="nothing.yaml cannot be read"):
        load_config(tmp_path / "nothing.yaml")


@given(st.text())
def test_any_text_is_settings_or_a_config_error(text):
    try:
        settings = parse_settings(text, {})
    except ConfigError:
        return
    assert all(isinstance(name, str) for name in settings)
