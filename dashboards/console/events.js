// What happened, newest first.

import { clock, el } from "./draw.js";

export function eventList(events) {
  if (events.length === 0) return el("p", { class: "quiet" }, "Nothing has happened yet.");
  const newest = [...events].sort((a, b) => b.id - a.id);
  return el("ol", { class: "events" }, newest.map((event) => el("li", {},
    el("time", { datetime: event.at, title: event.at }, clock(event.at)),
    event.app ? el("a", { href: `#/apps/${event.app}` }, event.app) : el("span", { class: "quiet" }, "fleet"),
    el("span", { class: "kind" }, event.kind),
    el("span", {}, event.message),
    event.actor ? el("span", { class: "quiet" }, event.actor) : null)));
}
