// fetch with the CSRF header, and the server's error body turned into an Error with `id`, `code`, `fields` and the whole `body`.

import { attention } from "./attention.js";

/** The token of the cookie, if there is one. Signing in again in another tab changes it, and the page's own token would be refused. */
export const csrfToken = () =>
  document.cookie.match(/(?:^|; )(?:__Host-)?csrftoken=(\w+)/)?.[1] ?? document.querySelector('meta[name="csrf-token"]')?.content ?? "";

/** Words for a request that was refused, or led to the sign-in page, because the session has ended. A toast with them has a link to sign in. */
export const SIGNED_OUT = "You are signed out.";

/** Whether a request was answered by the page for signing in, or refused because nobody is signed in. */
export const toldToSignIn = (answer) => answer.status === 401 || (answer.redirected && new URL(answer.url).pathname === "/sign-in");

export class ServerError extends Error {
  constructor(message, { status = 0, code = "", id = "", fields = [], body = null } = {}) {
    super(message);
    Object.assign(this, { status, code, id, fields, body });
  }
}

/** Words for a request that has no answer. A browser that knows that it is offline has sent nothing. Otherwise a change may have arrived, and
 *  only its answer was lost. */
export function unanswered(changes) {
  if (!navigator.onLine) return `You are offline. ${changes ? "Nothing was sent; try" : "Try"} again when the connection is back.`;
  if (!changes) return "The server did not answer. Try again in a moment.";
  return "The server did not answer, so the change may have arrived or not. Look before you try again.";
}

/** JSON of `url`. Options as for fetch; `body` may be a plain object. Throws ServerError with words for people. */
export async function json(url, { body, headers = {}, ...rest } = {}) {
  const options = { headers: { Accept: "application/json", ...attention(), ...headers }, credentials: "same-origin", ...rest };
  if (body !== undefined) {
    options.method ??= "POST";
    options.body = JSON.stringify(body);
    options.headers["Content-Type"] = "application/json";
  }
  if (options.method && options.method !== "GET") options.headers["X-CSRFToken"] = csrfToken();
  let response;
  try {
    response = await fetch(url, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError(unanswered((options.method ?? "GET") !== "GET"));
  }
  if (response.ok) return response.status === 204 ? null : response.json();
  const told = await response.json().catch(() => ({}));
  const words = response.status === 401 ? SIGNED_OUT : told.error?.message; // the API's own words are about tokens
  throw new ServerError(words || `The server answered ${response.status}.`, {
    status: response.status,
    ...told.error,
    body: told,
  });
}
