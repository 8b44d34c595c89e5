// The card of an import is loaded again every two seconds, and at once when the socket reports a change.
import { connect } from "./socket.js";

const cards = () => document.querySelectorAll("[data-import]");
const move = (card) => card.dispatchEvent(new Event("import-moved"));

if (cards().length) {
  const socket = connect(
    "/ws/workspace",
    (message) => {
      if (message.type !== "import") return;
      for (const card of cards()) if (card.dataset.import === String(message.id)) move(card);
      if (!cards().length) socket.close();
    },
    { resync: () => cards().forEach(move) },
  );
}
