// The fleet on one page: what is unwell first, then every app, then what happened.

import { get } from "./api.js";
import { badge, count, el, perSecond, row, section, since, sparkline, table, tile, tone } from "./draw.js";
import { eventList } from "./events.js";

const HISTORY = 60;
const SPARKED_APPS = 40; // beyond that a history per app would be a request per app and refresh
const lags = new Map();

export async function overview() {
  const [fleet, apps, events] = await Promise.all([get("/v1/fleet"), get("/v1/apps"), get("/v1/events?limit=30")]);
  await Promise.all(apps.slice(0, SPARKED_APPS).map(remember));
  const sorted = [...apps].sort((a, b) => weight(a) - weight(b) || a.name.localeCompare(b.name));
  return { fleet, content: [tiles(fleet), problems(fleet), section("Apps", appTable(sorted)), section("Events", eventList(events))] };
}

const weight = (app) => ({ bad: 0, busy: 1, still: 3, good: 2 })[tone(app.phase)];

async function remember(app) {
  if (!lags.has(app.name)) {
    const points = await get(`/v1/apps/${app.name}/observations?limit=${HISTORY}`);
    lags.set(app.name, points.map((point) => point.lag_records));
  }
  const values = lags.get(app.name);
  values.push(app.lag_records);
  if (values.length > HISTORY) values.shift();
}

function tiles(fleet) {
  const phases = Object.entries(fleet.by_phase).filter(([, apps]) => apps > 0);
  return el("div", { class: "tiles" },
    tile("apps", String(fleet.apps)),
    tile("workers", String(fleet.workers)),
    tile("lag", count(fleet.lag_records), "records not yet processed"),
    el("div", { class: "tile wide" }, el("span", { class: "label" }, "phases"),
      el("div", {}, phases.map(([phase, apps]) => el("span", { class: "phase-count" }, badge(phase), ` ${apps}`)))),
    fleet.is_leader ? null : tile("server", "stands by", "another one acts"));
}

function problems(fleet) {
  if (fleet.problems.length === 0) return null;
  return el("section", { class: "warning" }, el("h2", {}, fleet.is_well === false ? "The fleet is not looked after" : "The newest definitions are not in force"),
    el("ul", {}, fleet.problems.map((problem) => el("li", {}, problem))));
}

function appTable(apps) {
  const columns = ["app", "phase", "slots", "tasks", "lag", "", "rate", "owner", "doing"];
  return table(columns, apps.map((app) => row(
    el("a", { href: `#/apps/${app.name}` }, app.name),
    el("span", { title: app.reason }, badge(app.phase), " ", el("span", { class: "quiet" }, `for ${since(app.phase_since)}`)),
    `${app.slots_ready} of ${app.slots}`,
    String(app.tasks),
    count(app.lag_records),
    sparkline(lags.get(app.name) ?? [], `lag of ${app.name}`),
    perSecond(app.records_per_second),
    app.owner,
    doing(app))), { empty: "No app has been applied yet: streamfleet apply" });
}

function doing(app) {
  if (app.operation) return `${app.operation.kind}${app.operation.step ? `: ${app.operation.step}` : ""}`;
  if (app.restoring_tasks) return `restoring ${app.restoring_tasks} tasks`;
  if (app.warming_tasks) return `warming up ${app.warming_tasks} tasks`;
  return tone(app.phase) === "good" ? "" : app.reason;
}
