// Draws the agreement page again once the job that counts newer answers is done.
import { connect } from "../socket.js";

const { project } = document.querySelector("script[data-project]").dataset;
connect("/ws/workspace", (message) => {
  if (message.type === "agreement" && String(message.project) === project) location.reload();
});
