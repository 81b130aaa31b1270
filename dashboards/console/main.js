// Which page is shown, and when it is drawn anew: at every change the server tells of, and every few seconds in any case.

import { ApiError, hasToken, listen, setToken, takeTokenFromLink } from "./api.js";
import { appPage } from "./app_page.js";
import { el } from "./draw.js";
import { overview } from "./overview.js";
import { bringUpToDate } from "./patch.js";

const REFRESH_MS = 5000;
const CALM_MS = 700; // changes come in bursts
const RETRY_MS = 3000;

const page = document.getElementById("page");
const notice = document.getElementById("notice");
const connection = document.getElementById("connection");
let drawing = 0;
let planned = null;

function route() {
  const match = /^#\/apps\/([a-z0-9-]+)$/.exec(location.hash);
  return match ? () => appPage(match[1]) : overview;
}

async function draw() {
  clearTimeout(planned);
  planned = setTimeout(draw, REFRESH_MS);
  const turn = ++drawing;
  try {
    const { fleet, content } = await route()();
    if (turn !== drawing) return; // a newer drawing has begun
    document.getElementById("fleet-name").textContent = fleet.name;
    document.title = [...location.hash.split("/").slice(2), fleet.name].join(" · ");
    document.getElementById("links").replaceChildren(
      ...Object.entries(fleet.links).map(([name, url]) => el("a", { href: url, rel: "noopener" }, name)));
    if (page.dataset.route !== location.hash) page.replaceChildren(); // another page: nothing of this one
    page.dataset.route = location.hash;
    bringUpToDate(page, content.filter(Boolean));
    notice.hidden = true;
    page.dataset.drawn = String(turn);
  } catch (error) {
    if (turn === drawing) refuse(error);
  }
}

function refuse(error) {
  if (error instanceof ApiError && error.status === 401) return askForToken();
  if (error instanceof ApiError && page.dataset.route !== location.hash) page.replaceChildren(); // it is not of the former page
  notice.textContent = error instanceof ApiError ? error.message : "The server does not answer; what you see may be old.";
  notice.hidden = false;
}

function askForToken() {
  clearTimeout(planned);
  const field = el("input", { type: "password", id: "token", autocomplete: "off", required: true });
  const form = el("form", { class: "login", onsubmit: (event) => { event.preventDefault(); setToken(field.value); draw(); follow(); } },
    el("h1", {}, "A token is needed"),
    el("p", {}, "streamfleet up prints a link that carries one; streamfleet token create makes another."),
    el("label", { for: "token" }, "Token"), field, el("button", {}, "Look at the fleet"));
  page.replaceChildren(form);
  field.focus();
}

function soon() {
  clearTimeout(planned);
  planned = setTimeout(draw, CALM_MS);
}

let following = null;

async function follow() {
  if (following || !hasToken()) return;
  following = new AbortController();
  let retries = true;
  try {
    await listen(() => { say("live"); soon(); }, soon, following.signal); // what happened meanwhile was not heard
  } catch (error) { // told by the state of the connection; drawing tells why
    retries = !(error instanceof ApiError && error.status === 401); // a token has to be given first, and begins anew
  }
  following = null;
  say(retries ? "reconnecting" : "not connected");
  if (retries) setTimeout(follow, RETRY_MS);
}

function say(state) {
  connection.textContent = state;
  connection.className = state === "live" ? "live" : "lost";
}

takeTokenFromLink();
window.addEventListener("hashchange", () => { takeTokenFromLink(); window.scrollTo(0, 0); draw(); });
if (hasToken()) { draw(); follow(); } else { askForToken(); }
