// Scrolls the graph of a lineage so that its start is in the middle.

const region = document.querySelector(".lineage-graph");
const start = region.querySelector("[aria-current]").getBoundingClientRect();
const frame = region.getBoundingClientRect();
region.scrollLeft += start.left - frame.left - (frame.width - start.width) / 2;
region.scrollTop += start.top - frame.top - (frame.height - start.height) / 2;
