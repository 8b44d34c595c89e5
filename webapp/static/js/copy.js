// [data-copy] copies the code beside it, or its own data-copy text. It also works without the clipboard API (plain http).
import { icon } from "./icons.js";
import { toast } from "./toast.js";

/** Puts `text` on the clipboard. Resolves to whether it worked. */
export async function copy(text) {
  if (navigator.clipboard && window.isSecureContext)
    return navigator.clipboard.writeText(text).then(() => true, () => false);
  const area = Object.assign(document.createElement("textarea"), { value: text, className: "visually-hidden" });
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.focus();
  area.select();
  const done = document.execCommand("copy"); // the only way on plain http; the API needs a secure context
  area.remove();
  return done;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const text = button.dataset.copy || button.closest(".copyable")?.querySelector(".code")?.textContent || "";
  if (!(await copy(text))) {
    toast("The browser did not allow copying; select the text instead.", { tone: "warn" });
    return;
  }
  const shape = button.querySelector(".icon");
  if (!shape) return toast("Copied", { tone: "good" });
  shape.replaceWith(icon("check"));
  button.setAttribute("aria-label", "Copied");
  setTimeout(() => {
    button.querySelector(".icon")?.replaceWith(icon("copy"));
    button.setAttribute("aria-label", "Copy");
  }, 1500);
});
