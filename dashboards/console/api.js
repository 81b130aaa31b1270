// The API of the server that gave us this page: JSON with a bearer token, and one stream that says when something changed.
// The token comes in the fragment of the link (#token=...), which browsers never send, and stays in this tab.

const KEY = "streamfleet-token";

export class ApiError extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

export function takeTokenFromLink() {
  const match = /[#&]token=([^&]+)/.exec(location.hash);
  if (!match) return;
  sessionStorage.setItem(KEY, decodeURIComponent(match[1]));
  history.replaceState(null, "", location.pathname + "#/");
}

export const setToken = (token) => sessionStorage.setItem(KEY, token.trim());
export const hasToken = () => Boolean(sessionStorage.getItem(KEY));

const headers = () => ({ Authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ""}` });

async function request(path, options = {}) {
  const response = await fetch(path, { headers: headers(), cache: "no-store", ...options });
  if (response.ok) return response;
  let detail = `the server answered ${response.status}`;
  try {
    const problem = await response.json();
    detail = problem.detail + (problem.hint ? `; ${problem.hint}` : "");
  } catch { /* no problem document: the status says enough */ }
  throw new ApiError(response.status, detail);
}

export const get = async (path) => (await request(path)).json();
export const getText = async (path) => (await request(path)).text();

// Calls `opened` when the server has begun to answer and `changed` at every message, until `signal` ends it; returns when the stream
// ends, throws when it cannot be had. EventSource would be shorter, but it cannot send the token.
export async function listen(opened, changed, signal) {
  const response = await request("/v1/events/stream", { signal });
  opened();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const messages = rest.split(/\r?\n\r?\n/);
    rest = messages.pop();
    if (messages.some((message) => /^data:/m.test(message))) changed();
  }
}
