// Shows the progress of a job over the project, and loads the page again when the job is over.
import { reload } from "../attention.js";
import { connect } from "../socket.js";

const { project } = document.querySelector("script[data-project]").dataset;
const OVER = ["finished", "failed"];

connect("/ws/workspace", (message) => {
  if (message.type !== "project_job" || String(message.project) !== project) return;
  const box = document.querySelector(`[data-job="${message.kind}"]`);
  if (!box) return;
  if (OVER.includes(message.state)) return reload();
  if (!message.total) return;
  const bar = box.querySelector("progress");
  if (bar) Object.assign(bar, { value: message.done, max: message.total });
  const words = box.querySelector("[data-job-words]");
  if (words) words.textContent = `${message.done.toLocaleString("en")} of ${message.total.toLocaleString("en")}`;
});
