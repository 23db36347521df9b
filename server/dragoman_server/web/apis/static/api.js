// Calls of the server that the page came from.

import { $ } from "./elements.js";
import { language, say } from "./strings.js";

export class ApiError extends Error {
  /** `retrySeconds`: when to come again; null where that would not help. `language`: the message's. */
  constructor(message, options = {}) {
    super(message);
    this.retrySeconds = options.retrySeconds ?? null;
    this.language = options.language ?? language;
  }
}

/** An error in the server's words, which are English; the field of a request that it is about is not the reader's. */
function serverError(message, retrySeconds = null) {
  return new ApiError(message.replace(/^file: /, ""), { retrySeconds, language: "en" });
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
    throw new ApiError(say("The server does not answer."), { retrySeconds: GONE_SECONDS });
  }
  if (response.ok) return response;
  if (response.status === 401) throw refusedToken(token);
  const answer = await response.json().catch(() => ({}));
  const told = answer.error?.message ?? answer.error;
  const retry = Number(response.headers.get("Retry-After"));
  const retrySeconds = retry > 0 ? retry : null;
  if (told) throw serverError(told, retrySeconds);
  throw new ApiError(say("The server answered {status}.", { status: response.status }), { retrySeconds });
}

/** An error that says what is wrong with the token; brings its user to where it is entered. */
function refusedToken(token) {
  $("token-box").open = true;
  $("token").focus();
  $("token").select();
  return new ApiError(
    token
      ? say("This server does not know the token. Enter another one at the end of the page.")
      : say("This server asks for a token. Enter it at the end of the page."),
  );
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
      throw new ApiError(say("The connection to the server was lost."));
    });
    if (done) throw new ApiError(say("The connection to the server was lost."));
    const events = (left + value).split("\n\n");
    left = events.pop();
    for (const event of events) {
      const [, kind, data] = /^event: (.*)\ndata: (.*)$/s.exec(event);
      if (kind === "end") return;
      if (kind === "error") throw serverError(JSON.parse(data).error.message);
      yield { kind, data: JSON.parse(data) };
    }
  }
}
