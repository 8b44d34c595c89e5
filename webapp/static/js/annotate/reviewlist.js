// The list of tasks to review. Enter starts; remarks are settled in the list.
import { json } from "../http.js";
import { register } from "../keys.js";
import { toast } from "../toast.js";

const start = document.querySelector("[data-start]");
if (start) register("Enter", "Start with the least agreement", (event) => {
  if (event.target === document.body) start.click();
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-settle]");
  if (!button) return;
  button.disabled = true;
  try {
    await json(`/api/v1/comments/${button.dataset.settle}/settle`, { body: { settled: true } });
    button.closest("li").remove();
  } catch (error) {
    button.disabled = false;
    toast(error.message, { tone: "bad", id: error.id });
  }
});
