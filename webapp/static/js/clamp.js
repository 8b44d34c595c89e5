// .clamp: long text fades out after its lines and opens in place: prose by a button below it, because it may contain links; other text by a
// click or Enter. Text that fits is left alone.

const SLACK = 8; // px; less than half a line: because the boxes of a formula reach a little below its line
const openers = new WeakMap(); // prose -> its button

function measure(element) {
  if (element.classList.contains("is-open")) return;
  const long = element.scrollHeight > element.clientHeight + SLACK;
  element.classList.toggle("is-long", long);
  if (element.matches(".prose")) offer(element, long);
  else if (long && !element.hasAttribute("tabindex")) {
    element.tabIndex = 0;
    element.setAttribute("role", "button");
    element.setAttribute("aria-expanded", "false");
  }
}

/** Shows the button below prose while it is too long. */
function offer(element, long) {
  if (!openers.has(element)) {
    if (!long) return;
    const button = Object.assign(document.createElement("button"), { type: "button", className: "btn small ghost", textContent: "Show all" });
    button.setAttribute("aria-expanded", "false");
    button.addEventListener("click", () => toggle(element));
    openers.set(element, button);
    element.after(button);
  }
  openers.get(element).hidden = !long;
}

function toggle(element) {
  const opened = element.classList.toggle("is-open");
  const button = openers.get(element);
  (button ?? element).setAttribute("aria-expanded", String(opened));
  if (button) button.textContent = opened ? "Show less" : "Show all";
  if (button && !opened) button.scrollIntoView({ block: "nearest" });
}

const watch = new ResizeObserver((entries) => entries.forEach((entry) => measure(entry.target)));
const all = (root) => root.querySelectorAll(".clamp").forEach((element) => watch.observe(element));

document.addEventListener("click", (event) => {
  const element = event.target.closest(".clamp.is-long");
  if (element && !openers.has(element) && !event.target.closest("a, button") && !String(getSelection())) toggle(element);
});
document.addEventListener("keydown", (event) => {
  if ((event.key === "Enter" || event.key === " ") && event.target.matches?.(".clamp.is-long")) {
    event.preventDefault();
    toggle(event.target);
  }
});
new MutationObserver((changes) => {
  for (const change of changes)
    for (const node of change.addedNodes)
      if (node.nodeType === 1) {
        if (node.matches(".clamp")) watch.observe(node);
        all(node);
      }
}).observe(document.body, { childList: true, subtree: true });
all(document);
