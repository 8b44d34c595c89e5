// A window over a list of any length, which the server gives page by page: cards far from the view leave the document, and spacers keep
// their room. Pages that were left are fetched again by their cursors. The text that one reads stays where it is when cards above it come or go.

const NEAR = 1.5; // heights of the view, above and below it, in which cards are drawn
const FAR = 4; // beyond these, cards leave the document
const BESIDE = 12; // pixels between a card and the edge of the view
const MOST = 400; // pages whose place is remembered; a browser draws nothing beyond some 33 million pixels
const BARREN = 3; // pages without a row, in which a search has found nothing, until it waits to be asked for more
const GUESS = 4000; // pixels of a page that nobody has seen yet

/**
 * `place`: the element of the list. The rest:
 *  - `fetch(start)`: a promise of `{items, next, previous}`; `start` is `{}`, `{cursor}` or what `reset` was given.
 *  - `keyOf(row)`: rows side by side with the same key belong to one card, also across two pages; null never joins.
 *  - `draw(rows)`: the cards of these rows, each with `data-group`.
 *  - `told()`: cards have come or gone. `moved()`: the view may show others. `failed(error)`: a page could not be fetched; `again` tries again.
 *  - `sticky`: an element that may cover the upper edge of the view.
 */
export class PageWindow {
  constructor(place, given) {
    Object.assign(this, given, { place, pages: [], loading: null, turn: 0, due: false, stuck: false, asked: false, barren: 0 });
    this.sizes = new ResizeObserver((entries) => this.resized(entries));
    const soon = () => {
      if (this.due) return;
      this.due = true;
      requestAnimationFrame(() => {
        this.due = false;
        this.update();
      });
    };
    addEventListener("scroll", soon, { passive: true });
    addEventListener("resize", soon, { passive: true });
  }

  /** Begins the list again with the page that was found at `start`. */
  reset(start, found) {
    this.turn += 1;
    this.loading = null;
    this.stuck = false;
    this.barren = 0;
    for (const page of this.pages) this.undraw(page);
    this.place.replaceChildren();
    this.pages = found?.items.length || found?.next ? [filled({ start, far: false }, found, this.keyOf)] : [];
    for (const page of this.pages) this.slot(page);
    this.paint();
    this.told();
    const y = this.place.getBoundingClientRect().top - this.inset() - BESIDE;
    if (y < 0 || start.from !== undefined) scrollBy({ top: y, behavior: "instant" });
    this.update();
  }

  /** Shows what comes before the first page. It comes by itself once somebody scrolls up in the list; but while the top of the list is in
   *  view it must be asked for, because otherwise one could not reach what stands above the list. */
  back() {
    this.asked = true;
    this.update();
  }

  /** The rows in memory, in their order. */
  get rows() {
    return this.pages.flatMap((page) => page.rows ?? []);
  }

  /** The number of rows that were seen, and whether the list has more at either end. */
  get seen() {
    const known = (page) => !page || page.count !== undefined; // another is on its way
    const sum = (what) => this.pages.reduce((all, page) => all + (page[what] ?? 0), 0);
    return { rows: sum("count"), cards: sum("cards"), begins: known(this.pages[0]) && !this.pages[0]?.previous, ends: known(this.pages.at(-1)) && !this.pages.at(-1)?.next };
  }

  get cards() {
    return [...this.place.querySelectorAll("[data-group]")];
  }

  /** The first card that reaches into the view below what sticks to its upper edge. */
  get top() {
    return this.cards.find((card) => card.getBoundingClientRect().bottom > this.inset() + 1);
  }

  inset() {
    const { bottom, top } = this.sticky?.getBoundingClientRect() ?? { bottom: 0, top: 1 };
    return top <= 0 ? Math.max(bottom, 0) : 0;
  }

  /** The place at which one reads, for `reset` and `goTo` of another visit. */
  get where() {
    const card = this.top;
    const page = card && this.pages.find(({ slot }) => slot?.contains(card));
    return page ? { start: page.start, key: card.dataset.group, top: card.getBoundingClientRect().top } : null;
  }

  /** Scrolls so that the card with the key stands at `top`; fetches at most `most` pages after what is there to find it. */
  async goTo(key, top, most = 20) {
    const turn = this.turn;
    const find = () => this.cards.find((card) => card.dataset.group === key);
    for (let i = 0; i < most && !find(); i++) {
      if (this.pages.at(-1)?.next) this.after();
      const page = this.pages.at(-1);
      if (!page || page.slot) break;
      await (this.loading ?? this.load(page));
      if (turn !== this.turn || this.stuck) return null;
      if (page.rows) this.slot(page);
      this.paint();
    }
    const card = find();
    if (card) scrollBy({ top: card.getBoundingClientRect().top - (top ?? this.inset() + BESIDE), behavior: "instant" });
    this.update();
    return card ?? null;
  }

  /** Fetches again what is drawn, because the rows of the list have changed. */
  async refresh() {
    const turn = this.turn;
    for (const page of this.pages.filter(({ slot }) => slot)) {
      const found = await this.fetch(page.start);
      if (turn !== this.turn) return;
      if (JSON.stringify(found.items) !== JSON.stringify(page.rows)) page.drawn = null;
      filled(page, found, this.keyOf);
      const i = this.pages.indexOf(page);
      const after = this.pages[i + 1];
      if (after && after.start.cursor !== page.next) for (const gone of this.pages.splice(i + 1)) this.undraw(gone);
    }
    this.paint();
    this.update();
  }

  /** Draws what is near the view, fetches what is missing there, and lets go of what is far. */
  update() {
    if (!this.pages.length || this.stuck) return;
    const view = innerHeight;
    const top = -this.place.getBoundingClientRect().top;
    const reaches = (by, y, height) => y + height > top - by * view && y < top + view + by * view;
    let y = 0;
    const near = [];
    for (const page of this.pages) {
      if (reaches(NEAR, y, page.height)) near.push(page);
      page.far = !reaches(FAR, y, page.height);
      y += page.height;
    }
    const ends = near.at(-1) === this.pages.at(-1) && y < top + view + NEAR * view;
    if (ends && this.pages.at(-1).next && !this.waits) near.push(this.after());
    const within = this.asked || top > -this.inset() - 2 * BESIDE;
    if (near[0] === this.pages[0] && this.pages[0].previous && this.pages[0].rows && within) near.unshift(this.before());
    this.asked = false;
    for (const page of near) page.far = false;
    const missing = near.filter((page) => !page.rows);
    for (const page of near) if (page.rows) this.slot(page);
    this.paint();
    this.moved();
    if (missing.length && !this.loading) this.fetchSoon(missing);
  }

  /** After what is missing near the view has come. */
  async settled() {
    this.update();
    await this.loading;
    this.update();
  }

  /** Draws all cards again. */
  redraw() {
    for (const page of this.pages) page.drawn = null;
    this.paint();
  }

  after() {
    const page = { start: { cursor: this.pages.at(-1).next }, height: 0, far: false };
    this.pages.push(page);
    return page;
  }

  before() {
    const page = { start: { cursor: this.pages[0].previous }, height: 0, far: false };
    this.pages.unshift(page);
    return page;
  }

  async fetchSoon(missing) {
    const turn = this.turn;
    await this.load(missing[0]);
    if (turn === this.turn) this.update();
  }

  load(page) {
    const mine = this.fetched(page).finally(() => {
      if (this.loading === mine) this.loading = null;
    });
    return (this.loading = mine);
  }

  async fetched(page) {
    const turn = this.turn;
    try {
      const found = await this.fetch(page.start);
      if (turn !== this.turn) return;
      filled(page, found, this.keyOf);
      this.barren = found.items.length ? 0 : this.barren + 1;
      if (this.waits) this.told();
    } catch (error) {
      if (turn !== this.turn) return;
      this.stuck = true;
      if (!page.height) this.pages = this.pages.filter((each) => each !== page);
      this.failed(error);
    }
  }

  /** Whether the list has more, but loads nothing more by itself. */
  get waits() {
    return this.stuck || this.barren >= BARREN;
  }

  /** Goes on after a failure, and after pages without rows. */
  again() {
    this.stuck = false;
    this.barren = 0;
    this.update();
  }

  slot(page) {
    page.slot ??= Object.assign(document.createElement("div"), { className: "window-page" });
  }

  undraw(page) {
    if (page.slot) this.sizes.unobserve(page.slot);
    Object.assign(page, { slot: null, rows: null, drawn: null });
  }

  /** Whether somebody is in the page: it stays in the document. */
  held({ slot }) {
    return Boolean(slot && (slot.contains(document.activeElement) || slot.querySelector("form")));
  }

  paint() {
    for (const page of this.pages) if (page.far && !this.held(page) && (page.slot || page.rows)) page.leaves = true;
    const change = this.pages.some((page) => page.leaves || (page.slot && page.rows && page.drawn !== this.sign(page)));
    if (!change) return;
    this.still(() => {
      for (const page of this.pages) {
        if (page.leaves) this.undraw(page);
        page.leaves = false;
      }
      this.short();
      this.lay();
      for (const page of this.pages) if (page.slot && page.rows && page.drawn !== this.sign(page)) this.fill(page);
      for (const page of this.pages) if (page.slot) page.height = page.slot.offsetHeight;
      this.lay();
      this.number();
      this.told();
    });
  }

  /** The rows of a page: without those that belong to the last card of the page before, with those that belong to its own last card. */
  shares(page) {
    const i = this.pages.indexOf(page);
    const [before, after] = [this.pages[i - 1], this.pages[i + 1]];
    const own = page.rows.slice(joined(before, page));
    return own.length && after?.rows ? [...own, ...after.rows.slice(0, joined(page, after))] : own;
  }

  sign(page) {
    const i = this.pages.indexOf(page);
    const after = this.pages[i + 1];
    // the tail of a card that is drawn whole stays, although the page behind it has been let go
    const tail = after?.rows ? joined(page, after) : (page.drawn?.split(" ")[1] ?? 0);
    return `${joined(this.pages[i - 1], page)} ${tail}`;
  }

  fill(page) {
    const focused = page.slot.contains(document.activeElement) ? document.activeElement.closest("[data-group]")?.dataset.group : null;
    page.drawn = null; // its tail too is drawn only from rows that are there
    page.drawn = this.sign(page);
    page.slot.replaceChildren(...this.draw(this.shares(page)));
    page.cards = page.slot.childElementCount;
    if (focused) [...page.slot.children].find((card) => card.dataset.group === focused)?.focus({ preventScroll: true });
    this.sizes.observe(page.slot);
  }

  /** Puts slots and spacers into their order. An element that stays is not moved, because it would lose the focus. */
  lay() {
    const wanted = [];
    let gap = 0;
    const close = () => {
      if (gap) wanted.push(Object.assign(document.createElement("div"), { className: "window-gap", style: `height: ${gap}px` }));
      gap = 0;
    };
    for (const page of this.pages) {
      if (!page.slot) {
        gap += page.height;
        continue;
      }
      close();
      wanted.push(page.slot);
    }
    close();
    for (const child of [...this.place.children]) if (!wanted.includes(child)) child.remove();
    let at = this.place.firstElementChild;
    for (const element of wanted) {
      if (element === at) at = at.nextElementSibling;
      else this.place.insertBefore(element, at);
    }
  }

  /** The places of the cards in the list, as far as they are known, for screen readers. */
  number() {
    const { cards, begins, ends } = this.seen;
    let at = 0;
    for (const page of this.pages) {
      for (const [i, card] of [...(page.slot?.children ?? [])].entries()) {
        if (begins) card.setAttribute("aria-posinset", at + i + 1);
        else card.removeAttribute("aria-posinset");
        card.setAttribute("aria-setsize", begins && ends ? cards : -1);
      }
      at += page.cards ?? 0;
    }
  }

  /** Forgets the places that are furthest from the view, if the server can lead back to them. */
  short() {
    while (this.pages.length > MOST) {
      const drawn = this.pages.findIndex(({ slot }) => slot);
      const end = drawn > this.pages.length / 2 ? 0 : this.pages.length - 1;
      const neighbour = this.pages[end ? end - 1 : 1];
      if (this.pages[end].slot || (end ? !neighbour.next : !neighbour.previous)) return;
      this.pages.splice(end, 1);
    }
  }

  /** Does `change`, and keeps the card that one reads where it is. */
  still(change) {
    const anchor = this.top;
    const y = anchor?.getBoundingClientRect().top;
    change();
    if (!anchor) return;
    const now = anchor.isConnected ? anchor : this.cards.find((card) => card.dataset.group === anchor.dataset.group);
    const by = now ? now.getBoundingClientRect().top - y : 0;
    if (Math.abs(by) >= 1) scrollBy({ top: by, behavior: "instant" });
  }

  /** A page above the view has become higher or lower, for example because a formula was drawn. */
  resized(entries) {
    let by = 0;
    for (const { target } of entries) {
      const page = this.pages.find(({ slot }) => slot === target);
      if (!page) continue;
      const height = target.offsetHeight;
      if (target.getBoundingClientRect().bottom < this.inset()) by += height - page.height;
      page.height = height;
    }
    if (Math.abs(by) >= 1) scrollBy({ top: by, behavior: "instant" });
  }
}

function filled(page, { items, next, previous = null }, keyOf) {
  const keys = items.map(keyOf);
  const [first, last] = [keys[0] ?? null, keys.at(-1) ?? null];
  const lead = keys.findIndex((key) => key !== first);
  page.height ??= GUESS;
  return Object.assign(page, { rows: items, count: items.length, next, previous, first, last, lead: lead < 0 ? keys.length : lead });
}

/** The number of rows at the start of `page` that are of the last card of the page before it. A card takes no whole page but the last one. */
function joined(before, page) {
  if (!before || page.first === null || before.last === null || before.last !== page.first) return 0;
  return page.lead === page.count && page.next ? 0 : page.lead;
}
