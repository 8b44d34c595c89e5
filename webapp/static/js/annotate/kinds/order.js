// The order of responses as tiers of letters: best first, equals within one tier. Pure: every function gives a new order.

/** `letters` none of which stays twice: the order without `letter`. */
export const without = (tiers, letter) => tiers.map((tier) => tier.filter((each) => each !== letter)).filter((tier) => tier.length);

export const tierOf = (tiers, letter) => tiers.findIndex((tier) => tier.includes(letter));

/** 1 for the best; equals share the rank, and the next one counts them: 1, 2, 2, 4. */
export const rankOf = (tiers, letter) => tiers.slice(0, tierOf(tiers, letter)).reduce((sum, tier) => sum + tier.length, 1);

/** Up (-1) or down (1) by one place. Out of a tie it parts first: just above, or just below, those it equalled. */
export function shifted(tiers, letter, by) {
  const at = tierOf(tiers, letter);
  const equals = tiers[at].filter((each) => each !== letter);
  const moved = tiers.map((tier) => [...tier]);
  if (equals.length) moved.splice(at, 1, ...(by < 0 ? [[letter], equals] : [equals, [letter]]));
  else if (moved[at + by]) [moved[at], moved[at + by]] = [moved[at + by], moved[at]];
  return moved;
}

/** Ties with the one above; tied already, it parts from those above it. */
export function tieToggled(tiers, letter) {
  const at = tierOf(tiers, letter);
  const place = tiers[at].indexOf(letter);
  const moved = tiers.map((tier) => [...tier]);
  if (place > 0) moved.splice(at, 1, tiers[at].slice(0, place), tiers[at].slice(place));
  else if (at > 0) moved.splice(at - 1, 2, [...tiers[at - 1], ...tiers[at]]);
  return moved;
}

/** `letter` as a tier of its own before tier `at` of the order as it is now. */
export function placedBefore(tiers, letter, at) {
  const clean = (part) => without(part, letter);
  return [...clean(tiers.slice(0, at)), [letter], ...clean(tiers.slice(at))];
}

/** `letter` tied with `other`. */
export const joined = (tiers, letter, other) => without(tiers, letter).map((tier) => (tier.includes(other) ? [...tier, letter] : tier));
