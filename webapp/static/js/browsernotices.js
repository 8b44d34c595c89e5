// The setting of notices that says whether this browser shows boxes.
import { boxes, showBoxes } from "./notices.js";

const WORDS = {
  never: "This browser cannot show notices: it has no notifications, or this address is neither https:// nor this machine's own.",
  blocked: "You have blocked notifications of this address in your browser. Allow them in its settings of this site first.",
  off: "Off. Your browser will ask you once.",
  on: "On.",
};
const place = document.getElementById("browser-notices");
const [show, hide] = [place.querySelector("[data-show]"), place.querySelector("[data-hide]")];

function draw() {
  const state = boxes();
  place.querySelector("[data-told]").textContent = WORDS[state];
  show.hidden = state !== "off";
  hide.hidden = state !== "on";
}

for (const [button, wanted, other] of [[show, true, hide], [hide, false, show]])
  button.addEventListener("click", async () => {
    await showBoxes(wanted);
    draw();
    if (!other.hidden) other.focus();
  });
draw();
