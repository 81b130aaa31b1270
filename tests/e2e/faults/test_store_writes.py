"""Row F05: kills in the middle of store writes. Rows may be newer than the changelog offset beside them, never older."""

import json
import subprocess
import sys

from tests.ledger.fleet import REPOSITORY

KILLS = 200


def test_F05_no_row_is_older_than_its_offset_after_200_kills(tmp_path):
    command = [sys.executable, "-m", "tests.e2e.faults.store_writer", str(tmp_path), str(KILLS), "1"]
    ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=200)
    assert ended.returncode == 0, ended.stderr
    seen = json.loads(ended.stdout)
    assert seen["kills"] == KILLS
    assert seen["set_back"] > KILLS / 10, "kills that lose nothing prove nothing"
