// [data-follow="trial-7"] is loaded again when the socket reports a change of trial 7, or every few seconds without a socket.
import { connect } from "./socket.js";

let socket = null;
const following = () => [...document.querySelectorAll("[data-follow][hx-get]")];

function move(name = null) {
  for (const each of following()) {
    if (name === null || each.dataset.follow === name) each.dispatchEvent(new Event("moved"));
  }
}

function follow() {
  if (!following().length) {
    socket?.close();
    socket = null;
  } else {
    // changes from before the socket was connected are loaded when it is
    socket ??= connect("/ws/workspace", (message) => move(`${message.type}-${message.id}`), {
      onState: (state) => state === "live" && move(),
    });
  }
}

document.addEventListener("htmx:afterSettle", follow);
follow();
