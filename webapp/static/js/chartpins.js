// Charts that a person wants to see first, by their ids on the page: a button on each, kept on the server for all runs of the recipe.
import { icon } from "./icons.js";
import { json } from "./http.js";
import { make } from "./format.js";
import { toast } from "./toast.js";

export class Pins {
  /** `moved(id)` is called when a chart was pinned or is no longer. */
  constructor(api, charts, moved) {
    Object.assign(this, { api, charts, moved });
  }

  placeOf(id) {
    return this.charts.indexOf(id);
  }

  button(id, title) {
    const button = make("button", "chart-pin", icon("pin"));
    button.type = "button";
    button.setAttribute("aria-label", `Pin ${title}`);
    button.setAttribute("aria-pressed", String(this.charts.includes(id)));
    button.addEventListener("click", async () => {
      await this.toggle(id);
      button.setAttribute("aria-pressed", String(this.charts.includes(id)));
      button.focus(); // it has moved with its chart
    });
    return button;
  }

  async toggle(id) {
    try {
      const body = { chart: id, pinned: !this.charts.includes(id) };
      this.charts = (await json(`${this.api}/pinned-charts`, { method: "PUT", body })).charts;
      this.moved(id);
    } catch (error) {
      toast(error.message, { tone: "bad", id: error.id });
    }
  }
}
