// An evaluation's card asks for itself every five seconds; the socket makes it ask at once when the evaluation has moved.
import "./autosubmit.js";
import { renderMath } from "./math.js";
import { connect } from "./socket.js";

renderMath(document.body);

const card = () => document.getElementById("evaluation-state");
const move = () => card()?.dispatchEvent(new Event("evaluation-moved"));

if (card()?.hasAttribute("hx-get")) {
  const socket = connect(
    "/ws/workspace",
    (message) => {
      if (message.type === "evaluation" && card()?.dataset.evaluation === String(message.id)) move();
      if (!card()?.hasAttribute("hx-get")) socket.close();
    },
    { resync: move },
  );
}
