"""Small fleets in temporary directories."""

import pytest

from streamfleet_platform.definitions.loader import load_fleet
from streamfleet_platform.definitions.tree import DirectoryTree
from streamfleet_platform.errors import InvalidDefinitionError

FLEET = """\
apiVersion: streamfleet/v1
kind: Fleet
metadata: {name: shop}
spec:
  clusters: {dev: {bootstrap: "localhost:9092"}}
"""


class Files:
    """A definitions directory, written by the test and loaded as often as it likes."""

    def __init__(self, root):
        self.root = root
        self.write("fleet.yaml", FLEET)

    def write(self, path, text):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text if isinstance(text, bytes) else text.encode())

    def app(self, name, *, metadata="", spec="", **fields):
        chosen = {
            "code": '{entrypoint: "shop.app:topology"}',
            "cluster": "dev",
            "applicationId": name,
            "inputs": "{any: {topic: any}}",
        } | fields
        lines = [f"  {field}: {value}" for field, value in chosen.items() if value is not None]
        head = ["apiVersion: streamfleet/v1", "kind: StreamsApp", f"metadata: {{name: {name}, owner: team{metadata}}}"]
        self.write(f"apps/{name}.yaml", "\n".join([*head, "spec:", *lines, spec]))

    def load(self):
        return load_fleet(DirectoryTree(self.root))

    def problems(self):
        with pytest.raises(InvalidDefinitionError) as error:
            self.load()
        return [str(problem) for problem in error.value.problems]


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path)
