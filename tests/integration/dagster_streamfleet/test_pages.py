"""What people look at, in Chromium: Dagster's lineage, app page and plots, and the console's two pages, live. The pictures are kept
below build/screenshots.
"""

import re

import pytest
from playwright.sync_api import expect
from tests.dagster_lab.browser import chromium, window_of
from tests.dagster_lab.fleet import until

from dagster_streamfleet.translator import FleetTranslator

pytestmark = pytest.mark.browser

PAGE = "/assets/busy/app"


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


@pytest.fixture
def view(browser):
    with window_of(browser) as opened:
        yield opened


@pytest.fixture(scope="module")
def observed(fleet, daemon):
    """Enough was reported for a line: an app that was deployed, was loaded, and changed."""
    name = FleetTranslator().app_key("busy").path
    until(lambda: len(daemon.observations(*name)) >= 2, "two observations of an app", 150)


def test_the_page_of_an_app_shows_its_topology_and_leads_to_its_lineage(daemon, observed, view):
    page = view.page
    page.goto(daemon.dagster.url + PAGE)
    picture = page.get_by_alt_text("topology of busy")
    picture.scroll_into_view_if_needed()
    assert picture.evaluate("image => image.complete && image.naturalWidth > 300")
    assert picture.evaluate("image => image.clientWidth / image.naturalWidth") > 0.9  # as it was drawn, not squeezed
    page.get_by_text("Passed").or_(page.get_by_text("3")).first.wait_for()
    view.keep("dagster-app")

    page.get_by_role("link", name="Lineage", exact=True).last.click()
    for part in ("app", "sub-0", "counts", "busy-out"):
        page.get_by_text(part, exact=True).first.wait_for()
    page.get_by_text(re.compile("lab-bu.*changelog")).first.wait_for()
    page.wait_for_timeout(1000)  # the camera moves to where everything is seen
    view.keep("dagster-lineage")
    assert view.errors == []


def test_a_link_opens_the_verb_filled_in_and_a_reset_lacks_the_word_of_a_person(daemon, observed, view):
    page = view.page
    for verb, lines, is_ready in (("Scale", ["app: busy", "slots: "], True), ("Reset", ["app: busy"], False)):
        page.goto(daemon.dagster.url + PAGE)
        page.get_by_role("link", name=verb, exact=True).click()
        launch = page.get_by_role("button", name="Launch Run")
        for line in lines:
            page.locator(".CodeMirror").first.get_by_text(line).first.wait_for()
        if is_ready:
            page.get_by_text("No errors").wait_for()
            expect(launch).to_be_enabled()
        else:
            page.get_by_text('Missing required config entry "confirm"').wait_for()
            expect(launch).to_be_disabled()
        view.keep(f"dagster-{verb.lower()}")


def test_numbers_that_were_observed_are_a_plot(daemon, observed, view):
    page = view.page
    page.goto(daemon.dagster.url + PAGE)
    page.get_by_text("Plots", exact=True).first.click()
    for name in ("lag_records", "records_per_second", "slots"):
        page.get_by_text(name, exact=True).first.wait_for()
    canvas = page.locator("canvas").first
    canvas.wait_for()
    canvas.scroll_into_view_if_needed()
    page.wait_for_timeout(1500)  # lines grow
    # something is drawn: not all of it has one colour
    drawn = """canvas => new Set(new Uint32Array(
      canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size"""
    assert canvas.evaluate(drawn) > 5
    view.keep("dagster-plot", whole=True)


def test_the_overview_tells_every_app_and_asks_nobody_but_its_server(fleet, daemon, view):
    page = view.page
    page.goto(fleet.console)
    for app in fleet.apps:
        page.get_by_role("link", name=app, exact=True).first.wait_for()
    page.get_by_text("live").wait_for()
    assert fleet.token not in page.url  # it stays in the tab, and out of the history
    page.wait_for_timeout(1500)
    view.keep("console-overview", whole=True)
    assert view.hosts == {fleet.url.removeprefix("http://")}
    assert view.errors == []


def test_the_overview_and_the_page_of_an_app_are_live_through_a_scale(fleet, daemon, view):
    """Both were opened before, and neither is loaded again: what is told is what happens."""
    page, overview = view.page, view.beside().page
    overview.goto(fleet.console)
    line = overview.get_by_role("row").filter(has=overview.get_by_role("link", name="again", exact=True)).first
    line.get_by_text("1 of 1", exact=True).wait_for()
    overview.evaluate("window.sameDocument = true")
    page.goto(f"{fleet.url}/#token={fleet.token}")
    page.get_by_role("link", name="again", exact=True).first.click()
    page.get_by_role("heading", name="again").wait_for()
    page.get_by_text("1 of 1", exact=True).wait_for()
    page.evaluate("window.sameDocument = true")
    fleet.run("scale", "again", "2", "--no-wait")
    page.get_by_text(re.compile("scale is (running|planned)")).wait_for()
    line.get_by_text(re.compile("^scale")).wait_for()
    view.keep("console-app-scaling", whole=True)
    page.get_by_text("2 of 2", exact=True).wait_for(timeout=90_000)
    page.get_by_role("heading", name="slot 1").wait_for()
    page.get_by_text("scale succeeded").first.wait_for()
    line.get_by_text("2 of 2", exact=True).wait_for()
    line.get_by_text("running", exact=True).wait_for()
    told = overview.get_by_role("listitem").filter(has=overview.get_by_role("link", name="again", exact=True))
    told.filter(has_text="scale").first.wait_for()
    assert page.evaluate("window.sameDocument") and overview.evaluate("window.sameDocument")
    picture = page.get_by_alt_text("topology of again")
    assert picture.evaluate("image => image.complete && image.clientWidth / image.naturalWidth") > 0.7
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    view.keep("console-app", whole=True)
    assert view.errors == []


def test_it_says_when_it_has_lost_its_server_and_goes_on_when_it_is_back(fleet, daemon, view):
    page = view.page
    page.goto(fleet.console)
    page.get_by_text("live", exact=True).wait_for()
    page.get_by_role("link", name="again", exact=True).first.wait_for()
    page.context.set_offline(True)
    page.get_by_text("what you see may be old").wait_for()
    page.get_by_role("link", name="again", exact=True).first.wait_for()  # what was known is still shown
    page.context.set_offline(False)
    page.get_by_text("live", exact=True).wait_for()
    page.locator("#notice").wait_for(state="hidden")


def test_who_has_no_token_is_asked_for_one_and_nothing_is_shown(fleet, daemon, view):
    page = view.page
    page.goto(fleet.url)
    page.get_by_role("heading", name="A token is needed").wait_for()
    assert not page.get_by_role("link", name="again").is_visible()
    page.get_by_label("Token").fill(fleet.token)
    page.get_by_role("button").click()
    page.get_by_role("link", name="again", exact=True).first.wait_for()


def test_in_the_dark_it_is_dark(fleet, daemon, browser):
    with window_of(browser, "dark") as view:
        view.page.goto(fleet.console)
        view.page.get_by_role("link", name="busy", exact=True).first.click()
        view.page.get_by_role("heading", name="slot 0").wait_for()
        red, green, blue = re.findall(r"\d+", view.page.evaluate("getComputedStyle(document.body).backgroundColor"))[:3]
        assert max(int(red), int(green), int(blue)) < 60
        view.keep("console-app-dark", whole=True)
