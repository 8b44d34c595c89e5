// An answer while it is written: the server's events, one after the other.
import { csrfToken, ServerError, SIGNED_OUT } from "../http.js";

/** Yields {event, ...data} of a model's answer to `body`; throws ServerError, and AbortError when `signal` says so. */
export async function* answer(model, body, signal) {
  const headers = { "Content-Type": "application/json", "X-CSRFToken": csrfToken(), Accept: "text/event-stream" };
  let response;
  try {
    response = await fetch(`/api/v1/models/${model}/generate`, { method: "POST", credentials: "same-origin", headers, body: JSON.stringify(body), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError("The server cannot be reached. Check that it runs, then try again.");
  }
  if (!response.ok) {
    const told = await response.json().catch(() => ({}));
    const where = (told.error?.fields ?? []).map(({ path, message }) => `${path}: ${message}`).join("; ");
    if (response.status === 401) throw new ServerError(SIGNED_OUT, { status: 401 });
    throw new ServerError(where || told.error?.message || `The server answered ${response.status}.`, { status: response.status, ...told.error });
  }
  yield* events(response.body.pipeThrough(new TextDecoderStream()).getReader());
}

async function* events(reader) {
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) yield parsed(block);
  }
}

function parsed(block) {
  const found = { event: "message" };
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) found.event = line.slice(7);
    if (line.startsWith("data: ")) Object.assign(found, JSON.parse(line.slice(6)));
  }
  return found;
}
