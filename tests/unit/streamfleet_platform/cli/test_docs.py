"""The files that docs/cli.md and docs/definitions.md say to write are right, as they stand there."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[4] / "docs"


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)


def write(directory, *texts):
    """Each into the file that its first line names."""
    for text in texts:
        path = directory / text.splitlines()[0].removeprefix("# ")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def test_three_files_in_an_empty_directory_are_a_fleet(run, tmp_path):
    code, definitions = blocks("cli.md", "python")[0], blocks("cli.md", "yaml")
    write(tmp_path, f"# words.py\n{code}", *definitions)
    assert len(definitions) == 2
    assert run("lock").exit_code == 0
    result = run("validate")
    assert (result.exit_code, result.stdout) == (0, "valid: 1 app\n")


def test_the_smallest_fleet_yaml_is_one(run, tmp_path):
    write(tmp_path, *(text for text in blocks("definitions.md", "yaml") if text.startswith("# fleet.yaml")))
    result = run("validate")
    assert (result.exit_code, result.stdout) == (0, "valid: 0 apps\n")
