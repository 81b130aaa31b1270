import json

import pytest
from tests.audit_lab.bootstrap_specs import spec

from streamfleet_jobs.bootstrap.steps import RunDirectory, checksums, still_there
from streamfleet_jobs.errors import RefusedError


def directory(tmp_path, **changes):
    return RunDirectory(spec(directory=tmp_path / "run", **changes))


def test_a_step_is_known_to_later_attempts_of_the_same_spec(tmp_path):
    directory(tmp_path, token=1).finish("computed", {"records": 3})
    assert directory(tmp_path, token=2).record("computed") == {"records": 3}
    assert directory(tmp_path).record("staged") is None
    with pytest.raises(RefusedError, match="begun with another spec"):
        directory(tmp_path, epoch=2).record("computed")


def test_a_record_that_was_cut_off_is_none(tmp_path):
    run = directory(tmp_path)
    (run.path / "computed.json").write_text('{"spec": "abc", "det')
    assert run.record("computed") is None


def test_a_newer_token_fences_older_ones(tmp_path):
    with directory(tmp_path, token=5).held():
        pass
    with pytest.raises(RefusedError, match="token 4 is fenced: 5 has been seen"), directory(tmp_path, token=4).held():
        pass
    with directory(tmp_path, token=5).held():
        pass


def test_a_holder_that_was_overtaken_notices_at_its_next_step(tmp_path):
    former = directory(tmp_path, token=1)
    with former.held():
        (former.path / "fence.json").write_text(json.dumps({"run_id": "r", "token": 2}))
        with pytest.raises(RefusedError, match="fenced"):
            former.check_token()


def test_a_directory_belongs_to_one_run(tmp_path):
    with directory(tmp_path).held():
        pass
    with pytest.raises(RefusedError, match="is the directory of run r"), directory(tmp_path, run_id="x").held():
        pass


def test_files_prove_a_step_until_one_changes_or_is_gone(tmp_path):
    files = [tmp_path / name for name in ("a", "b")]
    for file in files:
        file.write_bytes(b"rows")
    known = checksums(tmp_path, files)
    assert still_there(tmp_path, known)
    files[0].write_bytes(b"rowz")
    assert not still_there(tmp_path, known)
    files[0].unlink()
    assert not still_there(tmp_path, known)
