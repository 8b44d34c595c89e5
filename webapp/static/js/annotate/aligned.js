// Maps the characters of a text as it was written to their places in its formatted view, so that passages can be selected and
// marked in either. Formatting only leaves characters out (stars, hashes, numbers of lists, addresses of links): the words
// that remain are in the source in the same order, and each is the first such word after the previous one. A formula is one piece.

const WORD = /\S+/g;

/** [{ node, offset, length, at }]: `length` characters of `node` from `offset` on are those of `source` from `at` on; of a
 * formula, `node` is its element and `offset` null. Call before formulas are drawn. */
export function align(root, source) {
  const pieces = [];
  let behind = 0;
  const found = (text) => {
    const at = source.indexOf(text, behind);
    if (at >= 0) behind = at + text.length;
    return at;
  };
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) {
      for (const { 0: word, index } of node.data.matchAll(WORD)) {
        const at = found(word);
        if (at >= 0) pieces.push({ node, offset: index, length: word.length, at });
      }
    } else if (node.classList?.contains("math")) {
      const formula = node.textContent.trim();
      const at = found(formula);
      if (at >= 0) pieces.push({ node, offset: null, length: formula.length, at });
    } else node.childNodes.forEach(walk);
  };
  walk(root);
  return pieces;
}

/** [from, to] in the source of the text in `range`; null if there is none. */
export function toSource(pieces, range) {
  const held = pieces.filter((piece) => touches(range, boundsOf(piece)));
  if (!held.length) return null;
  const [first, last] = [held[0], held.at(-1)];
  const inside = (piece, node, offset) => piece.offset !== null && piece.node === node ? offset - piece.offset : null;
  const from = first.at + Math.max(0, inside(first, range.startContainer, range.startOffset) ?? 0);
  const to = last.at + Math.min(last.length, inside(last, range.endContainer, range.endOffset) ?? last.length);
  return from < to ? [from, to] : null;
}

/** The range that shows `from` to `to` of the source; null if none of it is shown. */
export function toRange(pieces, from, to) {
  const shown = pieces.filter((piece) => piece.at < to && piece.at + piece.length > from);
  if (!shown.length) return null;
  const [first, last] = [shown[0], shown.at(-1)];
  const range = document.createRange();
  if (first.offset === null) range.setStartBefore(first.node);
  else range.setStart(first.node, first.offset + Math.max(0, from - first.at));
  if (last.offset === null) range.setEndAfter(last.node);
  else range.setEnd(last.node, last.offset + Math.min(last.length, to - last.at));
  return range;
}

function boundsOf({ node, offset, length }) {
  const range = document.createRange();
  if (offset === null) range.selectNode(node);
  else {
    range.setStart(node, offset);
    range.setEnd(node, offset + length);
  }
  return range;
}

/** Whether two ranges have more in common than an edge. */
function touches(one, other) {
  const begins = one.compareBoundaryPoints(Range.END_TO_START, other) < 0; // its start lies before the other's end
  return begins && one.compareBoundaryPoints(Range.START_TO_END, other) > 0;
}
