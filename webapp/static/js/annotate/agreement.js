// Says that the job which counts newer answers is done. A page that had nothing to show before is drawn at once.
import { reload } from "../attention.js";
import { connect } from "../socket.js";

const { project } = document.querySelector("script[data-project]").dataset;
connect("/ws/workspace", (message) => {
  if (message.type !== "agreement" || String(message.project) !== project) return;
  const chip = document.querySelector("[data-computing]");
  if (!chip) return reload();
  const link = Object.assign(document.createElement("a"), { href: location.href, textContent: "Newer figures are available: show them" });
  chip.replaceChildren(link);
});
