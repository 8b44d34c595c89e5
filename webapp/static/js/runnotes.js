// The notes on all responses of the run, the newest first, in a fold above the responses: each leads to its place.
import { preview } from "./annotate/text.js";
import { make } from "./format.js";
import { json } from "./http.js";
import { api, onMessage } from "./run.js";
import { toast } from "./toast.js";

const PAGE = 50;
const address = `${api}/rollouts/notes`;
const summary = make("summary", "small", "Notes on responses of this run");
const list = make("ul", "run-notes small in-text");
const more = make("button", "btn small", "Show more");
const fold = make("details", "", summary, list, more);
let cursor = "";

async function load(from) {
  try {
    const found = await json(`${address}?limit=${PAGE}${from && `&cursor=${encodeURIComponent(from)}`}`);
    cursor = found.next;
    const items = found.items.map(item);
    if (from) list.append(...items);
    else list.replaceChildren(...items);
    fold.hidden = !list.children.length;
    more.hidden = !cursor;
  } catch (error) {
    toast(`The notes could not be loaded: ${error.message}`, { tone: "bad", id: error.id });
  }
}

function item({ url, step, phase, quote, text, author }) {
  const link = make("a", "", `Step ${step}${phase === "eval" ? ", held-out" : ""}: “${quote.trim().slice(0, 60)}”`);
  link.href = url;
  return make("li", "", link, " ", preview(make("span", ""), text), make("span", "muted", ` ${author || "an erased account"}`));
}

/** Puts the fold before `place`; it stays hidden as long as there is no note. */
export function listNotes(place) {
  more.type = "button";
  more.hidden = fold.hidden = true;
  more.addEventListener("click", () => load(cursor));
  place.before(fold);
  onMessage("notes", () => load(""));
  load("");
}
