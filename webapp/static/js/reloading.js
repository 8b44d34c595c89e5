// Loads parts of a page again: one request at a time, and once more if it was requested meanwhile.
import { attention } from "./attention.js";
import { SIGNED_OUT, toldToSignIn } from "./http.js";
import { toast } from "./toast.js";

/** A function that fetches the page at `url` and hands it to `show`. */
export function reloading(url, show, headers = {}) {
  let fetching = false;
  let again = false;
  return async function reload() {
    again = fetching;
    if (fetching) return;
    fetching = true;
    try {
      const answer = await fetch(url, { headers: { ...headers, ...attention() } });
      if (toldToSignIn(answer)) toast(SIGNED_OUT, { tone: "warn" });
      else if (answer.ok && !answer.redirected) show(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch {
      // the next message, or the connection that comes back, tries again
    } finally {
      fetching = false;
    }
    if (again) reload();
  };
}

/** Replaces the element with this id by that of `page`. */
export function replace(id, page) {
  const fresh = page.getElementById(id);
  if (fresh) document.getElementById(id).replaceWith(fresh);
}
