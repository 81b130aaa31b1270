"""The page of an app in Chromium, by the real server and API, with what a quiet fleet never shows: standbys, warm-ups under way,
tasks that restore and how far they are; and the overview of a server whose passes fail. The world behind the server is simulated.
"""

import re
import socket
import threading
import time
from dataclasses import replace

import pytest
import uvicorn
from playwright.sync_api import expect
from tests.dagster_lab.browser import window
from tests.unit.streamfleet_platform.simulated_world import Lab

from streamfleet_platform.api.app import create_app
from streamfleet_platform.api.token_file import TokenFile
from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.server.loop import STUCK_AFTER
from streamfleet_platform.views import TaskView

pytestmark = pytest.mark.browser

PLACES = [
    TaskView(id="0_0", sub_topology=0, partition=0, role="active", slot=0, state="running", lag_records=3),
    TaskView(
        id="1_0", sub_topology=1, partition=0, role="active", slot=0, state="restoring", restore_remaining=120_000,
        eta_seconds=95.0,
    ),
    TaskView(id="1_1", sub_topology=1, partition=1, role="standby", slot=0, state="caught_up", lag_records=0),
    TaskView(id="1_1", sub_topology=1, partition=1, role="active", slot=1, state="running", lag_records=0),
    TaskView(
        id="1_2", sub_topology=1, partition=2, role="warmup", slot=1, state="catching_up", lag_records=5000, eta_seconds=4.0
    ),
]  # fmt: skip


class Served:
    """The lab's server, with its API on a port of its own."""

    def __init__(self, lab):
        tokens = TokenFile(lab.settings.token_file)
        self._socket = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(create_app(lab.fleet, tokens), log_config=None, timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)
        token = tokens.create("people", "viewer", teams="all")
        self.console = f"http://127.0.0.1:{self._socket.getsockname()[1]}/#token={token}"

    def __enter__(self):
        self._thread.start()
        deadline = time.monotonic() + 30
        while not self._server.started:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return self

    def __exit__(self, *_):
        self._server.should_exit = True
        self._thread.join(30)


@pytest.fixture
def lab(tmp_path):
    lab = Lab(tmp_path)
    lab.deployed(min=2)
    yield lab
    lab.server.close()


@pytest.fixture
def served(lab):
    with Served(lab) as served:
        yield served


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_copies_and_restores_can_be_told_apart_and_their_progress_is_live(lab, served, scheme):
    observe, left = lab.observer.observe, {"1_0": 120_000}

    def placed(asked):
        rows = [
            task.model_copy(update={"restore_remaining": left[task.id]}) if task.restore_remaining else task
            for task in PLACES
        ]
        return {name: replace(seen, placement=tuple(rows)) for name, seen in observe(asked).items()}

    lab.observer.observe = placed
    lab.step()
    with window(scheme) as view:
        page = view.page
        page.goto(served.console)
        page.get_by_role("link", name="one", exact=True).first.click()
        page.get_by_role("heading", name="slot 1").wait_for()
        kinds = {kind: page.locator(f".workers .task{kind}").first for kind in (".standby", ".warmup", ".restoring")}
        running = page.locator(".workers .task.active:not(.restoring)").first
        looks = {name: chip.evaluate(LOOK) for name, chip in {**kinds, "running": running}.items()}
        assert len(set(looks.values())) == 4, looks
        legend = {kind: page.locator(f".legend .task{kind}").first.evaluate(LOOK) for kind in kinds}
        assert legend == {kind: looks[kind] for kind in kinds}, "the legend shows what the tasks look like"
        assert kinds[".warmup"].text_content() == "1_2" and kinds[".standby"].text_content() == "1_1"
        progress = page.locator("ul.restores li")
        expect(progress).to_have_count(2)
        expect(progress.nth(0)).to_contain_text("1_0 on slot 0: 120K records left, about 2 min")
        expect(progress.nth(1)).to_contain_text("1_2 on slot 1: 5,000 records left, about 4 s")
        page.evaluate("window.sameDocument = true")
        view.keep(f"console-restoring-{scheme}", whole=True)
        left["1_0"] = 40_000
        lab.step()
        expect(progress.nth(0)).to_contain_text("40K records left", timeout=15_000)
        assert page.evaluate("window.sameDocument") and view.errors == []


LOOK = """task => { const s = getComputedStyle(task);
  return [s.backgroundColor, s.backgroundImage, s.color, s.borderStyle, s.borderColor].join(' ') }"""


def test_a_server_whose_passes_fail_says_so_on_its_page(lab, served):
    def failing(_apps):
        raise ZeroDivisionError("a defect")

    lab.observer.observe = failing
    for _ in range(STUCK_AFTER):
        lab.step()
    with window() as view:
        view.page.goto(served.console)
        view.page.get_by_role("heading", name="The fleet is not looked after").wait_for()
        view.page.get_by_text(re.compile("the last 3 passes failed.*a defect")).wait_for()


def drawn_again(page, times=2):
    """Waits until the page has been drawn so many times more."""
    drawn = lambda: int(page.locator("#page").get_attribute("data-drawn"))
    wanted, deadline = drawn() + times, time.monotonic() + 30
    while drawn() < wanted:
        assert time.monotonic() < deadline
        page.wait_for_timeout(100)


def test_who_reads_keeps_the_place_what_was_marked_and_the_focus_while_the_page_is_drawn_anew(lab, served):
    with window() as view:
        page = view.page
        page.goto(served.console)
        page.get_by_role("link", name="one", exact=True).first.click()
        page.get_by_role("heading", name="Where its tasks are").wait_for()  # both pages have events
        page.evaluate("document.styleSheets[0].insertRule('.events { max-height: 30px !important }', 0)")
        page.evaluate("document.querySelector('.events').scrollTop = 25")
        page.evaluate("getSelection().selectAllChildren([...document.querySelectorAll('h2')].at(-1))")
        page.get_by_role("link", name="one", exact=True).last.focus()
        drawn_again(page)
        lab.operate(OperationKind.SCALE, slots=3)  # what is told in between comes before what was marked
        page.get_by_text(re.compile("scale is (running|planned)")).wait_for()
        drawn_again(page)
        # not back at the top; a browser may follow what is in view when rows come above it
        assert page.evaluate("document.querySelector('.events').scrollTop") >= 25
        assert page.evaluate("getSelection().toString()") == "Events"
        assert page.evaluate("document.activeElement.textContent") == "one"
        assert view.errors == []


def test_times_of_other_days_have_their_date(served):
    with window() as view:
        view.page.goto(served.console)
        told = view.page.evaluate(
            """async () => { const { clock } = await import('/console/draw.js'), now = new Date(2026, 1, 3, 9, 0);
            return [clock(new Date(2026, 1, 3, 8, 30), now), clock(new Date(2026, 1, 2, 8, 30), now)] }"""
        )
    assert told == ["08:30:00", "2026-02-02 08:30:00"]


def test_it_is_not_called_live_before_the_server_answers_nor_after_it_has_refused(served):
    with window() as view:
        page = view.page
        page.route("**/v1/events/stream", lambda route: None)  # nobody answers
        page.goto(served.console)
        page.get_by_role("link", name="one", exact=True).first.wait_for()
        expect(page.locator("#connection")).to_have_text("connecting")
        page.unroute("**/v1/events/stream")
        page.evaluate("sessionStorage.setItem('streamfleet-token', 'revoked')")
        page.reload()
        page.get_by_role("heading", name="A token is needed").wait_for()
        expect(page.locator("#connection")).to_have_text("not connected")
