import json

import pytest
from tests.audit_lab.bootstrap_specs import WHOLE, spec

from streamfleet_jobs.bootstrap.spec import BootstrapSpec, read_spec
from streamfleet_jobs.errors import SpecError


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"store": WHOLE["store"] | {"kind": "timestamped_window"}}, "stores of kind timestamped_window cannot be"),
        ({"store": WHOLE["store"] | {"engine": "memory"}}, "nothing to put table files into"),
        ({"store": WHOLE["store"] | {"key_serde": "avro"}}, "keys in serde 'avro' cannot be written"),
        (
            {"store": WHOLE["store"] | {"value_serde": "json"}},
            "one function's result cannot be written in serde 'json'",
        ),
        ({"epoch": 3, "published_epoch": 3}, "epoch 3 is not newer than the app's, 3"),
        ({"input": WHOLE["input"] | {"partitions": 4}}, "the same number of partitions"),
        ({"input": WHOLE["input"] | {"stores_fed": ["s", "t"]}}, "the input also feeds t"),
        ({"value": {}}, "a value is `of` one function or has `fields`"),
        ({"unheard_of": 1}, "Extra inputs are not permitted"),
        ({"run_id": "../../etc"}, "String should match pattern"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is(tmp_path, change, why):
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(WHOLE | change))
    with pytest.raises(SpecError) as told:
        read_spec(path)
    assert why in str(told.value)


def test_only_the_token_may_change_between_attempts():
    assert spec(token=2).digest == spec(token=1).digest
    assert spec(epoch=2).digest != spec(epoch=1).digest


def test_the_changelog_is_named_as_the_engine_names_it():
    assert spec(epoch=7).changelog == "shop-s-e7-changelog"
    assert isinstance(spec(), BootstrapSpec)
