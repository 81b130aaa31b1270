import pytest

from streamfleet_jobs.audit.findings import Finding, key_name, size, verdict_of


def finding(severity, *, is_unknown=False):
    return Finding("shop", "t", "rule", severity, "what", is_unknown=is_unknown)


def test_what_was_not_read_outweighs_warnings_and_errors_outweigh_all():
    unknown = finding("info", is_unknown=True)
    assert verdict_of([]) == "clean"
    assert verdict_of([finding("info")]) == "clean"
    assert verdict_of([finding("warning"), finding("info")]) == "warnings"
    assert verdict_of([finding("warning"), unknown]) == "unknown"
    assert verdict_of([unknown, finding("error")]) == "errors"


@pytest.mark.parametrize(("key", "told"), [(b"anna", "anna"), (b"\xff\x00", "hex:ff00"), (b"a\n", "hex:610a")])
def test_a_clear_key_is_text_where_it_is_text(key, told):
    assert key_name(key, clear=True) == told


def test_hidden_keys_are_told_apart_and_always_the_same():
    one, other = (key_name(key, clear=False) for key in (b"anna", b"bert"))
    assert one != other and one == key_name(b"anna", clear=False) and "anna" not in one


def test_sizes_are_for_people():
    assert [size(n) for n in (0, 999, 1000, 1_500_000, 2e12)] == ["0 B", "999 B", "1.0 KB", "1.5 MB", "2.0 TB"]
