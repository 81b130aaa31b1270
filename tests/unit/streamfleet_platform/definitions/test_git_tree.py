import os
import subprocess

import pytest

from streamfleet_platform.definitions import git_tree
from streamfleet_platform.definitions.code_export import export_code
from streamfleet_platform.definitions.git_tree import GitTree
from streamfleet_platform.definitions.loader import load_fleet
from streamfleet_platform.definitions.tree import DirectoryTree
from streamfleet_platform.errors import InvalidDefinitionError, InvalidRequestError, NotFoundError


class Repository:
    def __init__(self, root, files):
        self.root, self.files = root, files
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments):
        identity = [
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t",
            "-c",
            "commit.gpgsign=false",
            "-c",
            "protocol.file.allow=always",
        ]
        environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
        command = ["git", *identity, "-C", str(self.root), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()

    def commit(self):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=x")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(files):
    return Repository(files.root, files)


def test_a_commit_is_loaded_whatever_the_working_tree_holds(repository, files):
    files.app("orders", generation=1)
    commit = repository.commit()
    files.app("orders", generation=2)
    files.app("payments")
    fleet = load_fleet(GitTree(files.root, commit))
    assert (fleet.commit, sorted(fleet.apps), fleet.apps["orders"].spec.generation) == (commit, ["orders"], 1)
    assert load_fleet(DirectoryTree(files.root)).apps["orders"].spec.generation == 2


def test_a_branch_is_resolved_once(repository, files):
    files.app("orders", generation=1)
    first = repository.commit()
    tree = GitTree(files.root, "main")
    files.app("orders", generation=2)
    repository.commit()
    assert tree.commit == first
    assert load_fleet(tree).apps["orders"].spec.generation == 1


def test_definitions_may_lie_below_the_root_of_the_repository(repository, files):
    files.app("orders")
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "--message=x")
    (files.root / "fleet").mkdir()
    repository.git("mv", "apps", "fleet.yaml", "fleet/")
    tree = GitTree(files.root, repository.commit(), "fleet")
    assert list(load_fleet(tree).apps) == ["orders"]


@pytest.mark.parametrize("revision", ["nowhere", "--help", "main:fleet.yaml", "0" * 40, "", "HEAD^{tree}"])
def test_what_is_no_commit_is_not_found(repository, files, revision):
    repository.commit()
    with pytest.raises(NotFoundError):
        GitTree(files.root, revision)


def test_a_repository_of_another_user_is_said_to_be_one(repository, files, monkeypatch):
    environment = {**git_tree._environment(), "GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}
    monkeypatch.setattr(git_tree, "_environment", lambda: environment)
    with pytest.raises(InvalidRequestError, match="belongs to another user"):
        GitTree(files.root, "HEAD")


def test_a_directory_without_a_repository_is_not_found(tmp_path):
    with pytest.raises(NotFoundError):
        GitTree(tmp_path / "nothing", "main")
    with pytest.raises(NotFoundError):
        GitTree(tmp_path, "main")


def test_a_symbolic_link_in_a_commit_is_refused(repository, files):
    files.app("orders")
    (files.root / "apps/link.yaml").symlink_to("/etc/passwd")
    with pytest.raises(InvalidDefinitionError, match=r"apps/link.yaml: this is a symbolic link"):
        load_fleet(GitTree(files.root, repository.commit()))


def test_a_submodule_is_refused(repository, files):
    commit = repository.commit()
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{commit},apps/module")
    repository.git("commit", "--quiet", "--message=module")
    with pytest.raises(InvalidDefinitionError, match=r"apps/module: this is a submodule"):
        load_fleet(GitTree(files.root, "main"))


def test_a_pointer_to_large_file_storage_is_refused(repository, files):
    files.write("apps/orders.yaml", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    with pytest.raises(InvalidDefinitionError, match=r"apps/orders.yaml: this is a pointer"):
        load_fleet(GitTree(files.root, repository.commit()))


def test_attributes_of_the_commit_change_nothing_about_what_is_exported(repository, files, tmp_path_factory):
    files.write(".gitattributes", "*.py export-ignore\nshop.py filter=lfs export-subst\n")
    files.write("shop.py", "# $Format:%H$\n")
    revision = export_code(GitTree(files.root, repository.commit()), tmp_path_factory.mktemp("code"))
    assert (revision.directory / "shop.py").read_text() == "# $Format:%H$\n"


def test_hooks_and_settings_of_the_repository_do_not_run(repository, files, tmp_path):
    files.app("orders")
    commit = repository.commit()
    marker = tmp_path / "ran"
    repository.git("config", "core.fsmonitor", f"touch {marker}")
    repository.git("config", "core.pager", f"touch {marker}")
    load_fleet(GitTree(files.root, commit))
    assert not marker.exists()


def test_two_revisions_are_exported_side_by_side(repository, files, tmp_path_factory):
    code = tmp_path_factory.mktemp("code")
    files.write("shop/orders.py", "VERSION = 1\n")
    one = export_code(GitTree(files.root, repository.commit()), code)
    files.write("shop/orders.py", "VERSION = 2\n")
    two = export_code(GitTree(files.root, repository.commit()), code)
    assert (one.directory / "shop/orders.py").read_text() == "VERSION = 1\n"
    assert (two.directory / "shop/orders.py").read_text() == "VERSION = 2\n"
    assert sorted(path.name for path in code.iterdir()) == sorted([one.id, two.id])


def test_a_plain_directory_is_copied_and_named_after_what_it_holds(files, tmp_path_factory):
    code = tmp_path_factory.mktemp("code")
    files.write("shop/orders.py", "VERSION = 1\n")
    files.write(".env", "PASSWORD=1\n")
    files.write("shop/__pycache__/orders.pyc", "x")
    one = export_code(DirectoryTree(files.root), code)
    again = export_code(DirectoryTree(files.root), code)
    (files.root / "shop/orders.py").chmod(0o755)
    executable = export_code(DirectoryTree(files.root), code)
    files.write("shop/orders.py", "VERSION = 2\n")
    two = export_code(DirectoryTree(files.root), code)
    assert again == one and len({one.id, two.id, executable.id}) == 3
    assert (one.directory / "shop/orders.py").read_text() == "VERSION = 1\n"
    assert sorted(p.name for p in one.directory.rglob("*")) == ["fleet.yaml", "orders.py", "shop"]


def test_where_a_content_ends_is_part_of_the_name_of_a_copy(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    for root, contents in ((one, ("x", "yz")), (two, ("xy", "z"))):
        root.mkdir()
        for name, text in zip("ab", contents, strict=True):
            (root / name).write_text(text)
    ids = {export_code(DirectoryTree(root), tmp_path / "code").id for root in (one, two)}
    assert len(ids) == 2


def test_an_export_that_fails_leaves_nothing_behind(files, tmp_path_factory):
    code = tmp_path_factory.mktemp("code")
    (files.root / "zlink").symlink_to("/etc/passwd")
    with pytest.raises(InvalidDefinitionError):
        export_code(DirectoryTree(files.root), code)
    assert list(code.iterdir()) == []
