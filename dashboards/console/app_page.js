// One app: how it is, where its tasks are, how far restores are, what its topology looks like, what happened to it.

import { get, getText } from "./api.js";
import { ago, badge, bar, bytes, clock, count, el, perSecond, plot, row, seconds, section, since, table, tile } from "./draw.js";
import { eventList } from "./events.js";
import { inRows } from "./picture.js";

const pictures = new Map(); // by topology hash: it changes with the topology only

export async function appPage(name) {
  const base = `/v1/apps/${name}`;
  const [fleet, app, points, phases, operations, events] = await Promise.all([
    get("/v1/fleet"), get(base), get(`${base}/observations?limit=200`), get(`${base}/phases?limit=12`),
    get(`/v1/operations?app=${name}&limit=8`), get(`/v1/events?app=${name}&limit=30`)]);
  const running = app.operation ? await get(`/v1/operations/${app.operation.id}`) : null;
  const picture = await topologyPicture(app);
  return { fleet, content: [
    heading(app, fleet), running ? operationInProgress(running) : null, tiles(app),
    section("Where its tasks are", placement(app)), restores(app),
    section("Lag", plot(points.map((point) => [Date.parse(point.at), point.lag_records]), `lag of ${name} over time`)),
    section("Topology", picture), drift(app), scaling(app),
    section("Stores", storeTable(app)), section("Topics", topicTable(app)),
    el("div", { class: "columns" },
      section("Operations", operationTable(operations)), section("Phases", phaseTable(phases))),
    section("Events", eventList(events)),
  ] };
}

async function topologyPicture(app) {
  const known = `${app.name} ${app.topology_hash}`;
  if (!pictures.has(known)) {
    const drawing = await getText(`/v1/apps/${app.name}/topology.svg`);
    pictures.set(known, URL.createObjectURL(new Blob([inRows(drawing)], { type: "image/svg+xml" })));
  }
  return el("div", { class: "picture" }, el("img", { src: pictures.get(known), alt: `topology of ${app.name}` }));
}

function heading(app, fleet) {
  const others = (names) => names.flatMap((name, i) => [i ? ", " : "", el("a", { href: `#/apps/${name}` }, name)]);
  return el("div", { class: "heading" },
    el("h1", {}, app.name, " ", badge(app.phase)),
    el("p", {}, app.reason ? `${app.reason} ` : "", el("span", { class: "quiet", title: app.phase_since }, `${app.phase.replace("_", " ")} for ${since(app.phase_since)}`)),
    el("p", { class: "quiet" }, `application id ${app.application_id}, generation ${app.generation}, revision ${app.revision.slice(0, 19)}, owner ${app.owner}`,
      app.tier ? `, tier ${app.tier}` : "",
      app.upstream.length ? [", fed by ", ...others(app.upstream)] : null,
      app.downstream.length ? [", feeds ", ...others(app.downstream)] : null),
    fleet.links.dagster ? el("p", {}, el("a", { href: `${fleet.links.dagster}/assets/${app.name}/app`, rel: "noopener" }, "In Dagster")) : null);
}

function operationInProgress(operation) {
  const done = operation.steps.filter((step) => step.state === "done" || step.state === "skipped").length;
  return el("section", { class: "operation" },
    el("h2", {}, `${operation.kind} is ${operation.state}`),
    bar(operation.steps.length ? done / operation.steps.length : 0, `${done} of ${operation.steps.length} steps`),
    el("ol", { class: "steps" }, operation.steps.map((step) =>
      el("li", { class: step.state }, el("span", {}, step.name), " ", el("span", { class: "quiet" }, step.detail || step.state)))));
}

function tiles(app) {
  return el("div", { class: "tiles" },
    tile("lag", count(app.lag_records), "records"),
    tile("rate", perSecond(app.records_per_second), "records processed, by all parts"),
    tile("slots", `${app.slots_ready} of ${app.slots}`, `${app.min_slots} to ${app.max_slots} allowed`),
    tile("tasks", String(app.tasks), "with an owner"),
    tile("restoring", String(app.restoring_tasks)),
    tile("warming up", String(app.warming_tasks)),
    tile("drift", String(app.drift)));
}

function placement(app) {
  if (app.workers.length === 0) return el("p", { class: "quiet" }, "No worker runs.");
  return el("div", {},
    el("p", { class: "legend" }, el("span", { class: "task active" }, "0_0"), " active ", el("span", { class: "task standby" }, "0_0"), " standby ",
      el("span", { class: "task warmup" }, "0_0"), " warm-up ", el("span", { class: "task active restoring" }, "0_0"), " restoring"),
    el("div", { class: "workers" }, app.workers.map((worker) => workerCard(worker, app.placement.filter((task) => task.slot === worker.slot)))));
}

function workerCard(worker, tasks) {
  const order = { active: 0, warmup: 1, standby: 2 };
  const sorted = [...tasks].sort((a, b) => order[a.role] - order[b.role] || a.sub_topology - b.sub_topology || a.partition - b.partition);
  const facts = [worker.client_state, worker.pid ? `pid ${worker.pid}` : null,
    worker.busy_share == null ? null : `${Math.round(worker.busy_share * 100)} % busy`, worker.restarts ? `${worker.restarts} restarts` : null];
  return el("article", { class: `worker ${worker.state}` },
    el("h3", {}, `slot ${worker.slot}`, worker.is_leader ? el("span", { class: "quiet", title: "plans the group's tasks" }, " leader") : null,
      el("span", { class: "worker-state" }, worker.state.replace("_", " "))),
    el("p", { class: "quiet" }, facts.filter(Boolean).join(", ")),
    worker.reason ? el("p", { class: "reason" }, worker.reason) : null,
    el("div", { class: "tasks" }, sorted.map(taskChip)));
}

function taskChip(task) {
  const restoring = task.role === "active" && task.state !== "running";
  const lag = task.lag_records === null ? "lag unknown" : `${task.lag_records} records behind`;
  return el("span", { class: `task ${task.role}${restoring ? " restoring" : ""}`, title: `${task.id} ${task.role}, ${task.state}, ${lag}` }, task.id);
}

function restores(app) {
  const open = app.placement.filter((task) => task.restore_remaining > 0 || (task.role === "warmup" && task.lag_records > 0));
  if (open.length === 0) return null;
  return section("Restoring and warming up", el("ul", { class: "restores" }, open.map((task) => {
    const left = task.restore_remaining ?? task.lag_records;
    const eta = task.eta_seconds == null ? "" : `, about ${seconds(task.eta_seconds)}`;
    return el("li", {}, el("span", { class: `task ${task.role} restoring` }, task.id), ` on slot ${task.slot}: ${count(left)} records left${eta}`);
  })));
}

function drift(app) {
  return app.drift_details.length ? section("Drift", el("ul", {}, app.drift_details.map((detail) => el("li", {}, detail)))) : null;
}

function scaling(app) {
  const decision = app.scaling;
  if (!decision) return null;
  const words = decision.action === "hold" ? `keep ${decision.current} ${decision.current === 1 ? "slot" : "slots"}` : `${decision.current} to ${decision.slots} slots${decision.is_advice ? " (advice only)" : ""}`;
  return section("Scaling", el("p", {}, el("strong", {}, words), ` (${decision.cause}): ${decision.reason}`), el("p", { class: "quiet" }, ago(decision.at)));
}

const storeTable = (app) => table(["store", "kind", "sub-topology", "epoch", "changelog", "size"], app.stores.map((store) =>
  row(store.name, store.kind, String(store.sub_topology), String(store.epoch), store.changelog ?? "not logged", bytes(store.bytes))), { empty: "It keeps no state." });

const topicTable = (app) => table(["topic", "role", "partitions", "records written", "of"], app.topics.map((topic) =>
  row(topic.name, topic.role, topic.partitions === null ? "unknown" : String(topic.partitions), count(topic.end_offsets),
    topic.app ? el("a", { href: `#/apps/${topic.app}` }, topic.app) : topic.store ?? "")));

const operationTable = (operations) => table(["what", "state", "when", "why"], operations.map((operation) =>
  row(operation.kind, operation.state.replace("_", " "), clock(operation.created_at), operation.reason)), { empty: "None yet." });

const phaseTable = (phases) => table(["phase", "since", "reason"], phases.map((change) => row(badge(change.phase), clock(change.since), change.reason)));
