// The card of an evaluation is loaded again every five seconds, and at once when the socket reports a change.
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
