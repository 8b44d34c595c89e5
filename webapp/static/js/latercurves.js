// Curves of a run, in the order in which somebody looks at them. The page knows the keys before any curve: it makes a card for each, asks
// for the curves of the charts in view, then for the first of the others. The rest are asked for once somebody looks at their charts.
import { json } from "./http.js";
import { toast } from "./toast.js";

export const POINTS = 1000; // of a curve; one with more of them leaves some out
const TOGETHER = 40; // keys of a request, which are in its address
const UNSEEN = 200; // keys whose curves come before anybody looks at them

export class Later {
  /** `looked(key)`: whether somebody looks at it now. `arrived(keys)` is called when their curves are in the store. */
  constructor(api, store, looked, arrived) {
    Object.assign(this, { api, store, looked, arrived, keys: new Set(), early: new Set(), asking: null, coming: null });
  }

  /** The keys whose curves are to be asked for. */
  expect(keys) {
    this.keys = new Set(keys); // a new one: what an earlier request brings may be older than this call
    this.early = new Set(keys.slice(0, UNSEEN));
    if (keys.length) this.store.expect(keys);
  }

  /** After a time without messages: every curve again, and those of metrics that are new. */
  async again() {
    try {
      const { keys, histograms, curves } = await json(`${this.api}/curves?max_points=2`);
      this.expect(keys.filter((key) => key in curves || !histograms.includes(key)));
    } catch (error) {
      complain(error);
    }
  }

  /** Asks for the curves of what somebody looks at; whether they are there now. */
  seen() {
    return this.until(() => this.wanted());
  }

  /** Asks for the curves of what somebody looks at, then for those that come before anybody looks. */
  ask() {
    this.asking ??= this.until(() => this.next()).finally(() => (this.asking = null));
    return this.asking;
  }

  /** Whether every curve is there now. */
  all() {
    return this.until(() => [...this.keys]);
  }

  wanted() {
    return [...this.keys].filter(this.looked);
  }

  next() {
    const wanted = this.wanted();
    return wanted.length ? wanted : [...this.keys].filter((key) => this.early.has(key));
  }

  async until(missing) {
    for (let keys = missing(); keys.length; keys = missing()) if (!(await this.request(keys.slice(0, TOGETHER)))) return false;
    return true;
  }

  /** One request at a time, for all callers: a caller that asks meanwhile looks afterwards for curves that are still missing. */
  request(some) {
    this.coming ??= this.fetch(some).finally(() => (this.coming = null));
    return this.coming;
  }

  async fetch(some) {
    const { keys } = this;
    try {
      const { curves } = await json(`${this.api}/curves?${new URLSearchParams([["max_points", POINTS], ...some.map((key) => ["key", key])])}`);
      for (const key of some) keys.delete(key);
      this.store.load(curves);
      this.arrived(some);
      return true;
    } catch (error) {
      complain(error);
      return false;
    }
  }
}

const complain = (error) => toast(`Some charts could not be loaded: ${error.message}`, { tone: "bad", id: error.id });
