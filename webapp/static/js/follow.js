// [data-follow="trial-7"] asks for itself when the socket says that trial 7 has moved; every few seconds without it.
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
    // whatever moved before the socket was there is asked for once it is
    socket ??= connect("/ws/workspace", (message) => move(`${message.type}-${message.id}`), {
      onState: (state) => state === "live" && move(),
    });
  }
}

document.addEventListener("htmx:afterSettle", follow);
follow();
