// The words that differ between two texts: the shortest list of words removed and added (Myers, "An O(ND) difference
// algorithm", 1986). White space stands with the word before it. Words of languages without spaces are told apart by the browser.
const MOST = 2_500; // differences; beyond them the search takes too long, and marks everywhere help nobody

/** Pieces of `text`, in order, that make it up again. */
export function words(text) {
  const found = [];
  for (const { segment } of new Intl.Segmenter(undefined, { granularity: "word" }).segment(text)) {
    if (found.length && !segment.trim()) found[found.length - 1] += segment;
    else found.push(segment);
  }
  return found;
}

/** [{kind: "same" | "removed" | "added", text, other}], neighbours of one kind joined; null where too much differs. Words that are the same
 *  may have other white space in `before`: `other` is how it stands there. */
export function difference(before, after) {
  const [a, b] = [words(before), words(after)];
  const bare = (list) => list.map((word) => word.trim());
  const found = script(bare(a), bare(b));
  if (!found) return null;
  const parts = [];
  for (const [kind, old, now] of found) {
    if (parts.at(-1)?.kind !== kind) parts.push({ kind, text: "", other: "" });
    parts.at(-1).text += kind === "removed" ? a[old] : b[now];
    parts.at(-1).other += kind === "added" ? "" : a[old];
  }
  return parts;
}

/** [kind, place in `a`, place in `b`], in order. */
function script(a, b) {
  const shift = MOST + 1;
  const ends = new Int32Array(2 * MOST + 3);
  const trace = [];
  for (let d = 0; d <= MOST && d <= a.length + b.length; d++) {
    trace.push(ends.slice(shift - d - 1, shift + d + 2));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && ends[shift + k - 1] < ends[shift + k + 1]);
      let x = down ? ends[shift + k + 1] : ends[shift + k - 1] + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      ends[shift + k] = x;
      if (x >= a.length && x - k >= b.length) return walked(trace, a.length, b.length);
    }
  }
  return null;
}

/** Back from the end, along the places that were reached with each number of differences. */
function walked(trace, m, n) {
  const found = [];
  let [x, y] = [m, n];
  for (let d = trace.length - 1; d >= 0; d--) {
    const k = x - y;
    const reached = (other) => trace[d][other + d + 1];
    const down = k === -d || (k !== d && reached(k - 1) < reached(k + 1));
    const start = d === 0 ? 0 : down ? reached(k + 1) : reached(k - 1) + 1;
    while (x > start) found.push(["same", --x, --y]);
    if (d > 0) found.push(down ? ["added", x, --y] : ["removed", --x, y]);
  }
  return found.reverse();
}
