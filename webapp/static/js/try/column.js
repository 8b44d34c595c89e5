// One model and its answer.
import { el } from "../annotate/dom.js";
import { TextPanel } from "../annotate/text.js";
import { copy } from "../copy.js";
import { icon } from "../icons.js";
import { scored, shown } from "./score.js";
import { answer } from "./stream.js";

const ENDED = { stop: "ended by itself", length: "cut at the length limit" };
const NEAR = 24; // pixels: the view follows the text if it is this near to the end

export class Column {
  /** `choices`: see choices.js; `scorer`: see score.js; `moved(column)` is called whenever the state or the model changes. */
  constructor({ choices, scorer, value, moved, leave, retry }) {
    Object.assign(this, { choices, scorer, moved, state: "empty", text: "", asked: null, model: null, panel: null });
    this.select = el("select.select", { ariaLabel: "Model", onchange: () => this.changed() });
    choices.fill(this.select, value);
    this.letter = el("span.try-letter", { ariaHidden: "true" });
    this.body = el("div.try-text", { tabIndex: 0, role: "region" });
    this.said = el("p.try-said.small.soft", { ariaLive: "polite" });
    this.score = el("div.try-score.small");
    this.score.hidden = true;
    this.stopper = button(icon("square"), "Stop this answer", () => this.stop());
    this.retrier = button(icon("refresh-cw"), "Ask this model again", () => retry(this));
    this.copier = button(icon("copy"), "Copy the answer", () => copy(this.text));
    this.remover = button(icon("x"), "Remove this model", () => leave(this));
    this.element = el(
      "article.card.try-answer",
      {},
      el("header.card-head", {}, this.letter, this.select, this.remover),
      this.body,
      el("footer.card-foot.try-foot", {}, this.said, el("div.row.gap-1.nowrap", {}, this.stopper, this.retrier, this.copier), this.score),
    );
    this.clear();
  }

  get value() {
    return this.select.value;
  }

  get running() {
    return this.state === "running";
  }

  label(letter) {
    this.letter.textContent = letter;
    this.body.setAttribute("aria-label", `Answer ${letter}`);
    this.select.setAttribute("aria-label", `Model ${letter}`);
  }

  changed() {
    this.stop();
    this.clear();
    this.moved(this);
  }

  clear(words = "Its answer appears here.") {
    this.panel?.destroy();
    Object.assign(this, { state: "empty", text: "", asked: null, panel: null });
    this.body.replaceChildren(el("p.muted.small", {}, words));
    this.scoring?.abort();
    this.score.replaceChildren();
    this.tell("");
  }

  tell(words) {
    this.said.textContent = words;
    this.stopper.hidden = !this.running;
    this.retrier.hidden = this.running || this.state === "empty";
    this.copier.hidden = this.running || !this.text;
  }

  stop() {
    this.aborter?.abort();
  }

  /** Asks the model; `request` is {messages, sampling, example}. It never throws: the column shows the problem. */
  async ask(request) {
    this.stop();
    const mine = (this.aborter = new AbortController());
    this.clear("");
    const verbatim = el("div.prose.verbatim", { dir: "auto" }, document.createTextNode(""));
    this.body.replaceChildren(verbatim);
    Object.assign(this, { state: "running", asked: request });
    this.score.hidden = !this.scorer.body(request, "");
    this.tell("Asking…");
    this.moved(this);
    try {
      this.model = await this.choices.model(this.select, (words) => this.tell(words), mine.signal);
      for await (const event of answer(this.model, { messages: request.messages, ...request.sampling }, mine.signal)) this.take(event, verbatim.firstChild);
      if (this.running) this.fail("The answer was cut off. Try again.");
    } catch (error) {
      if (this.aborter !== mine) return; // it was asked again or emptied meanwhile
      if (error.name === "AbortError") this.end("stopped", this.text ? "Stopped: the text so far stays" : "Stopped before the first word");
      else this.fail(error.message);
    }
  }

  take({ event, ...data }, node) {
    if (event === "loading") this.tell("Loading the model…");
    else if (event === "waiting") this.tell("Waiting: the model answers others first…");
    else if (event === "start") Object.assign(this, { tokens: 0 }, this.tell(`Reading ${data.prompt_tokens} tokens…`));
    else if (event === "token") this.grow(data.text, node);
    else if (event === "done") this.finish(data);
    else if (event === "error") this.fail(data.message);
  }

  grow(text, node) {
    const follows = this.body.scrollHeight - this.body.scrollTop - this.body.clientHeight < NEAR;
    node.appendData(text);
    this.text += text;
    this.tell(`${++this.tokens} tokens`);
    if (follows) this.body.scrollTop = this.body.scrollHeight;
  }

  finish({ text, completion_tokens: tokens, seconds, finish_reason: reason }) {
    this.text = text;
    this.end("done", `${tokens} tokens · ${seconds.toFixed(1)} s · ${ENDED[reason] ?? reason}`);
  }

  end(state, words) {
    this.state = state;
    const kept = this.body.scrollTop;
    if (this.text) {
      this.panel = new TextPanel(this.text);
      this.panel.element.dir = "auto";
      this.body.replaceChildren(this.panel.element);
      this.body.scrollTop = kept;
    } else this.body.replaceChildren(el("p.muted.small", {}, state === "done" ? "The answer is empty." : "No answer."));
    this.tell(words);
    if (state === "done") this.judge();
    this.moved(this);
  }

  /** Shows the score of the chosen judge, rubric or reward model in the line that is kept free for it. */
  async judge() {
    this.scoring?.abort();
    const mine = (this.scoring = new AbortController());
    const body = this.scorer.body(this.asked, this.text);
    this.score.hidden = !body;
    this.score.replaceChildren();
    if (!body) return;
    const say = (...children) => this.scoring === mine && this.score.replaceChildren(...children);
    try {
      say(shown(await scored(body, mine.signal, () => say(el("p.soft", { role: "status" }, "Scoring…")))));
    } catch (error) {
      if (error.name === "AbortError") return;
      const again = el("button.btn.ghost.small", { type: "button", onclick: () => this.judge() }, "Score again");
      say(el("p.row.gap-2", {}, el("span", {}, `No score: ${reasons(error)}`), again));
    }
  }

  /** Scores again, because the scorer or the criteria have changed. */
  scoredAnew() {
    if (this.state === "done") this.judge();
    else this.score.hidden = !this.asked || !this.scorer.body(this.asked, "");
  }

  fail(message) {
    this.state = "failed";
    this.text = "";
    const callout = el("div.callout", { role: "alert", data: { tone: "bad" } }, icon("octagon-alert"), el("p", {}, message));
    this.body.replaceChildren(callout);
    this.tell("No answer");
    this.moved(this);
  }

  leave() {
    this.stop();
    this.scoring?.abort();
    this.panel?.destroy();
    this.element.remove();
  }
}

const reasons = ({ message, fields }) => (fields?.length ? fields.map((field) => field.message).join("; ") : message);

function button(shape, label, onclick) {
  return el("button.btn.ghost.icon-only.small", { type: "button", ariaLabel: label, title: label, onclick }, shape);
}
