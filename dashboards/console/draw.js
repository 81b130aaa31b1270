// Small pieces of page: elements, badges, numbers, plots. Text is always set as text, so nothing in a name or a reason is markup.

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  apply(node, attributes);
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  apply(node, attributes);
  node.append(...children);
  return node;
}

function apply(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
}

const SOUND = ["running"];
const BUSY = ["starting", "restoring", "warming", "rebalancing", "scaling", "upgrading", "resetting", "stopping", "pending"];
const BAD = ["failed", "crash_loop", "degraded", "quarantined"];

export const tone = (phase) =>
  SOUND.includes(phase) ? "good" : BUSY.includes(phase) ? "busy" : BAD.includes(phase) ? "bad" : "still";

export const badge = (phase) => el("span", { class: `badge ${tone(phase)}` }, phase.replace("_", " "));

export function count(value) {
  if (value === null || value === undefined) return "unknown";
  if (value < 10_000) return value.toLocaleString("en", { maximumFractionDigits: 1 });
  return Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(value);
}

export const perSecond = (value) => (value === null || value === undefined ? "unknown" : `${count(value)}/s`);

export function since(time) {
  const seconds = Math.max(0, (Date.now() - Date.parse(time)) / 1000);
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 129_600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

export const ago = (time) => (time ? `${since(time)} ago` : "never");

export const seconds = (value) =>
  value === null || value === undefined ? "" : value < 90 ? `${Math.ceil(value)} s` : `${Math.round(value / 60)} min`;

// With the date, unless that is today's.
export function clock(time, now = new Date()) {
  const at = new Date(time);
  const hour = at.toLocaleTimeString("en-GB");
  return at.toDateString() === now.toDateString() ? hour : `${at.toLocaleDateString("en-CA")} ${hour}`;
}

export function bytes(value) {
  if (value === null || value === undefined) return "";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let step = 0;
  while (value >= 1024 && step < units.length - 1) { value /= 1024; step += 1; }
  return `${value.toFixed(step ? 1 : 0)} ${units[step]}`;
}

export const tile = (label, value, note = "") =>
  el("div", { class: "tile" }, el("span", { class: "label" }, label), el("strong", {}, value), el("span", { class: "note" }, note));

export const section = (title, ...content) => el("section", { "data-part": title }, el("h2", {}, title), ...content);

export function table(columns, rows, { empty = "None." } = {}) {
  if (rows.length === 0) return el("p", { class: "quiet" }, empty);
  return el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, columns.map((column) => el("th", { scope: "col" }, column)))),
    el("tbody", {}, rows)));
}

export const row = (...cells) => el("tr", {}, cells.map((cell) => (cell instanceof Element && cell.tagName === "TD" ? cell : el("td", {}, cell))));

export function bar(done, label) {
  const share = Math.max(0, Math.min(1, done));
  return el("div", { class: "bar", role: "progressbar", "aria-valuenow": Math.round(share * 100), "aria-valuemin": 0, "aria-valuemax": 100, "aria-label": label },
    el("progress", { max: 1, value: share }), el("span", {}, label));
}

export function sparkline(values, label) {
  const known = values.filter((value) => value !== null && value !== undefined);
  if (known.length < 2) return el("span", { class: "quiet" }, "");
  const [width, height, top] = [120, 26, Math.max(1, ...known)];
  const at = known.map((value, i) => `${(i * width) / (known.length - 1)},${height - 3 - (value / top) * (height - 6)}`);
  return svg("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label },
    svg("polyline", { points: at.join(" ") }));
}

// A line over time with its highest value and its ends written out: enough to see whether it grows.
export function plot(points, label) {
  const known = points.filter(([, value]) => value !== null && value !== undefined);
  if (known.length < 2) return el("p", { class: "quiet" }, "Not enough observations yet.");
  const [width, height, left, base] = [1140, 160, 54, 136];
  const top = Math.max(1, ...known.map(([, value]) => value));
  const [from, to] = [known[0][0], known[known.length - 1][0]];
  const x = (time) => left + ((time - from) / Math.max(1, to - from)) * (width - left - 8);
  const y = (value) => base - (value / top) * (base - 14);
  const line = known.map(([time, value]) => `${x(time).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  const text = (content, attributes) => { const node = svg("text", attributes); node.textContent = content; return node; };
  return svg("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    svg("line", { x1: left, y1: base, x2: width - 8, y2: base, class: "axis" }),
    svg("line", { x1: left, y1: 14, x2: width - 8, y2: 14, class: "grid" }),
    svg("polygon", { class: "area", points: `${left},${base} ${line} ${x(to)},${base}` }),
    svg("polyline", { class: "line", points: line }),
    text(count(top), { x: left - 6, y: 18, "text-anchor": "end" }),
    text("0", { x: left - 6, y: base + 4, "text-anchor": "end" }),
    text(clock(from), { x: left, y: height - 6 }),
    text(clock(to), { x: width - 8, y: height - 6, "text-anchor": "end" }));
}
