import re

from streamfleet_platform.api.console_files import console_directory


def test_the_page_is_served_without_a_token_under_a_strict_policy(http):
    page = http(None).get("/console/")
    assert page.status_code == 200
    assert "console" in page.text
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy
    assert "unsafe" not in policy and "http" not in policy and "*" not in policy
    assert http(None).get("/console/console.js").status_code == 200


def test_the_root_leads_to_it_and_keeps_the_fragment_to_the_browser(http):
    response = http(None).get("/")
    assert response.status_code == 307
    assert response.headers["location"] == "/console/"


def test_nothing_outside_its_directory_is_served(http, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "console" / "link").symlink_to(tmp_path / "secret")
    for path in (
        "/console/../secret",
        "/console/%2e%2e/secret",
        "/console/..%2fsecret",
        "/console/link",
        "/console//etc/passwd",
    ):
        response = http(None).get(path)
        assert response.status_code in (401, 404), path
        assert "secret" not in response.text


def test_a_page_cannot_be_posted_to(http):
    assert http(None).post("/console/").status_code == 401


def test_the_consoles_own_files_keep_to_the_policy():
    directory = console_directory()
    assert directory is not None
    page = (directory / "index.html").read_text("utf-8")
    assert not re.search(r"<script(?![^>]*\bsrc=)", page), "inline scripts are refused by the policy"
    assert not re.search(r"\son\w+=|\sstyle=|<style", page)
    for file in directory.iterdir():
        assert not re.search(r"https?://(?!www\.w3\.org)", file.read_text("utf-8")), f"{file.name} loads from elsewhere"
