// Curves of a run with more keys than one answer of /curves holds. They are requested when somebody looks at their charts.
import { json } from "./http.js";
import { toast } from "./toast.js";

export const POINTS = 1000; // of a curve; one with more of them leaves some out
const TOGETHER = 40; // keys of a request, which are in its address

export class Later {
  /** `looked(key)`: whether somebody looks at it now. `arrived(keys)` is called when their curves are in the store. */
  constructor(api, store, looked, arrived) {
    Object.assign(this, { api, store, looked, arrived, keys: new Set(), asking: false });
  }

  expect(keys) {
    this.keys = new Set(keys);
    if (keys.length) this.store.expect(keys);
  }

  /** Requests curves until nothing is missing from the visible charts. */
  async ask() {
    if (this.asking) return;
    this.asking = true;
    await this.fetch(() => [...this.keys].filter(this.looked));
    this.asking = false;
  }

  /** Whether every curve is there now. */
  all() {
    return this.fetch(() => [...this.keys]);
  }

  async fetch(wanted) {
    try {
      for (let keys = wanted(); keys.length; keys = wanted()) {
        const some = keys.slice(0, TOGETHER);
        const { curves } = await json(`${this.api}/curves?${new URLSearchParams([["max_points", POINTS], ...some.map((key) => ["key", key])])}`);
        for (const key of some) this.keys.delete(key);
        this.store.load(curves);
        this.arrived(some);
      }
      return true;
    } catch (error) {
      toast(`Some charts could not be loaded: ${error.message}`, { tone: "bad", id: error.id });
      return false;
    }
  }
}
