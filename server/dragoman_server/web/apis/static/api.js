// Calls of the server that the page came from.

import { $ } from "./elements.js";

export class ApiError extends Error {
  /** `retrySeconds`: when to come again; null where that would not help. */
  constructor(message, { status = 0, retrySeconds = null } = {}) {
    super(message);
    this.status = status;
    this.retrySeconds = retrySeconds;
  }
}

const GONE_SECONDS = 5;

async function send(path, options) {
  const token = $("token").value;
  const headers = { ...options.headers, ...(token && { Authorization: `Bearer ${token}` }) };
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The server does not answer.", { retrySeconds: GONE_SECONDS });
  }
  if (response.ok) return response;
  if (response.status === 401) $("token-box").open = true;
  const answer = await response.json().catch(() => ({}));
  const told = answer.error?.message ?? answer.error ?? `The server answered ${response.status}.`;
  const retry = Number(response.headers.get("Retry-After"));
  throw new ApiError(told, { status: response.status, retrySeconds: retry > 0 ? retry : null });
}

export async function get(path) {
  return (await send(path, {})).json();
}

export async function post(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  return (await send(path, { method: "POST", headers, body: JSON.stringify(body), signal })).json();
}

/** Sends a form, and yields the server's events, each with its kind and data. */
export async function* postForm(path, form, signal) {
  const response = await send(path, { method: "POST", body: form, signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let left = "";
  for (;;) {
    const { value, done } = await reader.read().catch((error) => {
      if (error.name === "AbortError") throw error;
      throw new ApiError("The connection to the server was lost.");
    });
    if (done) throw new ApiError("The connection to the server was lost.");
    const events = (left + value).split("\n\n");
    left = events.pop();
    for (const event of events) {
      const [, kind, data] = /^event: (.*)\ndata: (.*)$/s.exec(event);
      if (kind === "end") return;
      if (kind === "error") throw new ApiError(JSON.parse(data).error.message);
      yield { kind, data: JSON.parse(data) };
    }
  }
}
