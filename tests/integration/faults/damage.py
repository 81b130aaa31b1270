"""What can happen to the files of a task's database while nobody has it open, and to the row that says whose it is."""

import os

import msgspec

from streamfleet.state import engine_rows
from streamfleet.state.rocksdb_engine import RocksDBEngine


def largest_file(directory, pattern="*.sst"):
    return max(directory.glob(pattern), key=lambda path: path.stat().st_size)


def flip(directory):
    path = largest_file(directory)
    content = bytearray(path.read_bytes())
    content[len(content) // 8] ^= 0xFF
    path.write_bytes(content)


def truncate(directory):
    path = largest_file(directory)
    os.truncate(path, path.stat().st_size // 2)


def delete(directory):
    largest_file(directory).unlink()


def flip_everywhere(directory):
    """At least one byte in every block."""
    for path in directory.glob("*.sst"):
        content = bytearray(path.read_bytes())
        content[: -len(content) // 4 : 512] = bytes(byte ^ 0xFF for byte in content[: -len(content) // 4 : 512])
        path.write_bytes(content)


def without(*patterns):
    def remove(directory):
        for pattern in patterns:
            for path in directory.glob(pattern):
                path.unlink()

    return remove


def swap(one, other):
    one.rename(one.parent / "swap")
    other.rename(one)
    (one.parent / "swap").rename(other)


def identity_of(directory, change=lambda found: found):
    """The identity row of a database, changed on the way."""
    engine = RocksDBEngine(directory)
    found = msgspec.json.decode(engine.get(engine_rows._IDENTITY), type=engine_rows.Identity)
    engine.write([(engine_rows._IDENTITY, msgspec.json.encode(change(found)))], [], [])
    engine.flush()
    engine.close()
    return found
