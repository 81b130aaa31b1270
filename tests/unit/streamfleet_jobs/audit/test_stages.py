from typing import Any

import msgspec
import pytest

from streamfleet_jobs.audit.spec import load_spec
from streamfleet_jobs.audit.stages import Stages
from streamfleet_jobs.errors import RefusedError, SpecError

WHOLE: dict[str, Any] = {
    "run_id": "r",
    "app": "shop",
    "application_id": "shop",
    "bootstrap_servers": "127.0.0.1:9092",
    "output": "out",
    "stores": [{"name": "s", "changelog": "t", "partitions": 2}],
}


class Count(msgspec.Struct):
    n: int


def test_a_stage_that_is_done_is_not_done_again(tmp_path):
    made = iter([Count(1), Count(2)])
    for _ in range(2):
        assert Stages(tmp_path / "run").value("pin", Count, lambda: next(made)) == Count(1)


def test_a_stage_that_failed_is_done_by_the_next_try(tmp_path):
    def fails():
        raise OSError("away")

    with pytest.raises(OSError, match="away"):
        Stages(tmp_path).value("pin", Count, fails)
    assert Stages(tmp_path).value("pin", Count, lambda: Count(3)) == Count(3)


def test_a_directory_belongs_to_one_run(tmp_path):
    Stages(tmp_path).remember_spec({"run_id": "a"})
    Stages(tmp_path).remember_spec({"run_id": "a"})
    with pytest.raises(RefusedError, match="holds another audit"):
        Stages(tmp_path).remember_spec({"run_id": "b"})


def test_a_directory_that_cannot_be_made_is_the_specs_fault(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SpecError, match="cannot be written"):
        Stages(tmp_path / "file" / "run")


def written(tmp_path, **changes):
    path = tmp_path / "spec.json"
    path.write_bytes(msgspec.json.encode(WHOLE | changes))
    return path


def test_settings_of_clients_are_used_and_never_stored(tmp_path):
    secret = {"client_config": {"sasl.password": "hunter2"}, "java_client_config": {"sasl.jaas.config": "hunter2"}}
    spec = load_spec(written(tmp_path, **secret))
    assert spec.client_config["sasl.password"] == "hunter2"
    assert "hunter2" not in str(spec.storable())


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"mode": "deeper"}, "Invalid enum value"),
        ({"unheard_of": 1}, "unknown field"),
        ({"stores": WHOLE["stores"] * 2}, "names a store twice"),
        ({"stores": [{"name": "s", "changelog": "t", "partitions": 0}]}, "no partitions"),
    ],
    ids=["mode", "unknown field", "twice", "no partitions"],
)
def test_a_wrong_spec_is_refused_with_its_reason(tmp_path, change, why):
    with pytest.raises(SpecError, match=why):
        load_spec(written(tmp_path, **change))
