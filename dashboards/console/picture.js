// A topology's picture in rows. The server draws it as one line from left to right; here it is cut where no shape stands, as a text is
// broken between words, so that it can be read without scrolling. The drawing is in the result once and shown once per row.

const COLUMN = 1160;
const LEGIBLE = 0.75; // of its size
const MAX_ROWS = 8;
const BULGE = 8; // a topic's round ends stand out of the places its outline names

export function inRows(svg) {
  const root = /<svg\b[^>]*>/.exec(svg);
  const attribute = (name) => root && new RegExp(`\\b${name}="([^"]*)"`).exec(root[0])?.[1];
  const [width, height] = [Number(attribute("width")), Number(attribute("height"))];
  if (!width || !height) return svg;
  const content = svg.slice(root.index + root[0].length, svg.lastIndexOf("</svg>"));
  return drawn(bordersOf(gaps(content), width), height, content, attribute("class") ?? "");
}

function bordersOf(places, width) {
  let best = [0, width];
  for (let rows = 2; widest(best) * LEGIBLE > COLUMN && rows <= MAX_ROWS; rows += 1) {
    const inner = Array.from({ length: rows - 1 }, (_, i) => nearest(places, (width * (i + 1)) / rows)).filter((place) => place !== undefined);
    best = [0, ...new Set(inner), width];
  }
  return best;
}

const widest = (borders) => Math.max(...borders.slice(1).map((end, i) => end - borders[i]));
const nearest = (places, wanted) => places.toSorted((a, b) => Math.abs(a - wanted) - Math.abs(b - wanted))[0];

function gaps(content) {
  const boxes = [...content.matchAll(/<rect class="(?!frame|canvas)[^"]*" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"/g)];
  const shapes = boxes.map(([, x, wide]) => [Number(x), Number(x) + Number(wide)]);
  for (const [, outline] of content.matchAll(/<path class="(?:topic|store)[^"]*" d="([^"]*)"/g)) {
    const places = [...outline.matchAll(/[MH]([\d.]+)|A[\d.]+ [\d.]+ 0 [01] [01] ([\d.]+)/g)].map(([, one, other]) => Number(one ?? other));
    shapes.push([Math.min(...places) - BULGE, Math.max(...places) + BULGE]);
  }
  const found = [];
  let right = 0;
  for (const [start, end] of shapes.sort((a, b) => a[0] - b[0])) {
    if (right > 0 && start > right) found.push((start + right) / 2);
    right = Math.max(right, end);
  }
  return found;
}

function drawn(borders, height, content, styleClass) {
  const width = widest(borders);
  const rows = borders.slice(1).map((end, i) => {
    const [start, wide] = [borders[i], end - borders[i]];
    return `<svg x="0" y="${i * height}" width="${wide}" height="${height}" viewBox="${start} 0 ${wide} ${height}"><use href="#whole"/></svg>`;
  });
  const size = `width="${width}" height="${rows.length * height}" viewBox="0 0 ${width} ${rows.length * height}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size}><defs><g id="whole" class="${styleClass}">${content}</g></defs>${rows.join("")}</svg>`;
}
