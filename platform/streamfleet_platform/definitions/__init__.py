"""Definitions in files become the model: `load_fleet(DirectoryTree(path))` or `load_fleet(GitTree(repository, commit))`.

Everything is checked before anything is returned, and every problem has a file, a line, a column and a hint.
"""
