"""The report of a real audit as people see it, in Chromium. The pictures are kept below build/screenshots."""

import msgspec
import pytest
from tests.dagster_lab.browser import window

from streamfleet_jobs.audit.job import run_audit
from streamfleet_jobs.audit.local_engine import LocalEngine
from streamfleet_jobs.audit.spec import AuditSpec
from streamfleet_jobs.engines import EngineName

pytestmark = pytest.mark.browser

PARTITIONS = 30


@pytest.fixture
def report(lab, tmp_path):
    topic = lab.create("report", PARTITIONS)
    lab.write(topic, [(b"customer-%d" % (n % 700), None if n % 11 == 0 else b"x" * 90) for n in range(20_000)])
    lab.write(topic, [(b"customer-%d" % n, b"x", 3) for n in range(40)])
    stores = [
        {
            "name": "orders",
            "changelog": topic,
            "partitions": PARTITIONS,
            "configs": {"cleanup.policy": "compact,delete"},
        },
        {"name": "gone", "changelog": f"{topic}-gone", "partitions": 2},
    ]
    whose = {"run_id": "seen", "app": "shop", "application_id": "shop", "bootstrap_servers": lab.servers}
    spec = msgspec.convert({**whose, "output": str(tmp_path / "audit"), "stores": stores}, AuditSpec)
    assert run_audit(spec, LocalEngine(spec, lambda _: None), EngineName.LOCAL, lambda _: None) == "errors"
    return (tmp_path / "audit" / "report.html").as_uri()


@pytest.mark.parametrize(("scheme", "paper"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(18, 24, 31)")])
def test_a_report_is_one_page_that_shows_its_findings_and_pictures(report, scheme, paper):
    with window(scheme) as view:
        page = view.page
        page.goto(report)
        page.get_by_role("heading", name="Audit of shop").wait_for()
        for told in ("config_drift", "placement", "does not exist", "keys belong to another partition by murmur2"):
            page.get_by_text(told).first.wait_for()
        assert page.locator("figure svg.density").count() == PARTITIONS
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        pictures = page.locator("svg")
        assert all(pictures.nth(n).bounding_box()["height"] > 5 for n in range(pictures.count()))
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == paper
        view.keep(f"audit-report-{scheme}", whole=True)
        assert (view.errors, view.hosts) == ([], set())
