// Brings what is shown up to date where it stands. What is the same is not touched, so that who reads keeps the place in a list, the
// text that was marked, and the link that was reached by keyboard, however often the page is drawn.

export function bringUpToDate(place, wanted) {
  const kinds = new Set(wanted.map(kind));
  let shown = place.firstChild;
  for (const node of wanted) {
    while (shown && !kinds.has(kind(shown))) shown = without(shown);
    if (shown && kind(shown) === kind(node)) {
      patch(shown, node);
      shown = shown.nextSibling;
    } else place.insertBefore(node, shown);
  }
  while (shown) shown = without(shown);
}

// Sections are known by their title, anything else by what it is and by its place.
const kind = (node) => node.dataset?.part ?? node.nodeName;

function without(node) {
  const next = node.nextSibling;
  node.remove();
  return next;
}

function patch(shown, node) {
  if (shown.isEqualNode(node)) return;
  if (node.nodeType === Node.TEXT_NODE) {
    shown.data = node.data;
    return;
  }
  for (const { name } of [...shown.attributes]) if (!node.hasAttribute(name)) shown.removeAttribute(name);
  for (const { name, value } of node.attributes) if (shown.getAttribute(name) !== value) shown.setAttribute(name, value);
  bringUpToDate(shown, [...node.childNodes]);
}
