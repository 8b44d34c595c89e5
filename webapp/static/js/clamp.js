// .clamp: long text fades out after its lines; a click or Enter opens it in place. Text that fits is left alone.

const SLACK = 8; // px; less than half a line: because the boxes of a formula reach a little below its line

function measure(element) {
  if (element.classList.contains("is-open")) return;
  const long = element.scrollHeight > element.clientHeight + SLACK;
  element.classList.toggle("is-long", long);
  if (long && !element.hasAttribute("tabindex")) {
    element.tabIndex = 0;
    element.setAttribute("role", "button");
    element.setAttribute("aria-expanded", "false");
  }
}

function toggle(element) {
  const opened = element.classList.toggle("is-open");
  element.setAttribute("aria-expanded", String(opened));
}

const watch = new ResizeObserver((entries) => entries.forEach((entry) => measure(entry.target)));
const all = (root) => root.querySelectorAll(".clamp").forEach((element) => watch.observe(element));

document.addEventListener("click", (event) => {
  const element = event.target.closest(".clamp.is-long");
  if (element && !event.target.closest("a, button") && !String(getSelection())) toggle(element);
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
