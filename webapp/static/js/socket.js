// connect("/ws/runs/7", message => …): a websocket that connects again by itself and shows on the page whether it is connected.
//
// handler(message)      every JSON message after the welcome
// options.resync()      after a lost connection is back: loads what was missed, for example from the API
// options.onState(s)    "connecting", "live", "lost", "refused"
// options.quiet         the page does not depend on it, so it does not show its state
// Returns { close(), get state() }. Waits 0.5 s, 1 s, 2 s … at most 20 s, with jitter, and tries at once when the
// browser says it is online again or the tab is looked at.

const FIRST_WAIT = 500;
const LONGEST_WAIT = 20_000;
const REFUSED = 4403; // signed out, or not allowed to read this: trying again would help only after somebody has signed in
const WELCOME = "welcome"; // the first message, if this page may listen: a page that may not is told so over an open connection
const TITLES = {
  live: "This page updates itself",
  lost: "The page may be behind; it catches up when the connection is back",
  refused: "You are signed out, or may no longer read this. The page shows what it knew until then",
};
const sockets = new Set();

function show() {
  const element = document.getElementById("connection");
  if (!element) return;
  const states = [...sockets].map((socket) => socket.state);
  const state = ["refused", "lost", "connecting"].find((bad) => states.includes(bad)) ?? "live";
  element.hidden = sockets.size === 0;
  element.dataset.state = state === "refused" ? "lost" : state;
  const words = { live: "Live", connecting: "Connecting…", lost: "Reconnecting…", refused: "No live updates" };
  const text = element.querySelector("[data-text]");
  if (text) text.textContent = words[state];
  element.title = TITLES[state] ?? TITLES.lost;
}

export function connect(path, handler, { resync = null, onState = null, quiet = false } = {}) {
  const url = new URL(path, location.href);
  url.protocol = url.protocol.replace("http", "ws");
  const self = { state: "connecting" };
  let socket = null;
  let wait = FIRST_WAIT;
  let timer = 0;
  let closed = false;
  let wasLive = false;

  function become(state) {
    self.state = state;
    onState?.(state);
    show();
  }

  function open() {
    clearTimeout(timer);
    if (closed || socket?.readyState === WebSocket.OPEN || socket?.readyState === WebSocket.CONNECTING) return;
    const mine = new WebSocket(url);
    socket = mine;
    mine.addEventListener("open", () => socket === mine || mine.close());
    mine.addEventListener("message", (event) => {
      if (socket !== mine) return;
      const message = JSON.parse(event.data);
      if (message.type === WELCOME) welcome();
      else handler(message);
    });
    mine.addEventListener("close", (event) => {
      if (closed || socket !== mine) return;
      if (event.code === REFUSED) return become("refused");
      lose();
    });
  }

  function welcome() {
    wait = FIRST_WAIT;
    become("live");
    if (wasLive) resync?.();
    wasLive = true;
  }

  function lose() {
    become("lost");
    timer = setTimeout(open, wait * (0.75 + Math.random() / 2));
    wait = Math.min(wait * 2, LONGEST_WAIT);
  }

  /** The network is gone. The socket itself would notice it minutes later, and the page would say "Live" until then. */
  function offline() {
    if (self.state !== "live") return;
    const old = socket;
    socket = null;
    old.close();
    lose();
  }

  const now = () => ["lost", "refused"].includes(self.state) && !document.hidden && open();
  addEventListener("online", now);
  addEventListener("offline", offline);
  document.addEventListener("visibilitychange", now);
  addEventListener("pagehide", () => self.close(), { once: true });

  self.close = () => {
    closed = true;
    clearTimeout(timer);
    removeEventListener("online", now);
    removeEventListener("offline", offline);
    document.removeEventListener("visibilitychange", now);
    socket?.close();
    sockets.delete(self);
    show();
  };
  if (!quiet) sockets.add(self);
  show();
  open();
  return self;
}
