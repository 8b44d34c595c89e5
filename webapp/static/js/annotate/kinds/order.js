// The order of responses as tiers of letters: the best first, ties within one tier. Every function returns a new order.

/** The order without `letter`. */
export const without = (tiers, letter) => tiers.map((tier) => tier.filter((each) => each !== letter)).filter((tier) => tier.length);

export const tierOf = (tiers, letter) => tiers.findIndex((tier) => tier.includes(letter));

/** The rank, 1 for the best. Ties share a rank, and the next rank counts all of them: 1, 2, 2, 4. */
export const rankOf = (tiers, letter) => tiers.slice(0, tierOf(tiers, letter)).reduce((sum, tier) => sum + tier.length, 1);

/** Moves up (-1) or down (1) by one place. A tied response is first separated: directly above, or directly below, its tie. */
export function shifted(tiers, letter, by) {
  const at = tierOf(tiers, letter);
  const equals = tiers[at].filter((each) => each !== letter);
  const moved = tiers.map((tier) => [...tier]);
  if (equals.length) moved.splice(at, 1, ...(by < 0 ? [[letter], equals] : [equals, [letter]]));
  else if (moved[at + by]) [moved[at], moved[at + by]] = [moved[at + by], moved[at]];
  return moved;
}

/** Ties the response with the one above. If it is tied already, it is separated from those above it. */
export function tieToggled(tiers, letter) {
  const at = tierOf(tiers, letter);
  const place = tiers[at].indexOf(letter);
  const moved = tiers.map((tier) => [...tier]);
  if (place > 0) moved.splice(at, 1, tiers[at].slice(0, place), tiers[at].slice(place));
  else if (at > 0) moved.splice(at - 1, 2, [...tiers[at - 1], ...tiers[at]]);
  return moved;
}

/** `letter` as a separate tier before tier `at` of the present order. */
export function placedBefore(tiers, letter, at) {
  const clean = (part) => without(part, letter);
  return [...clean(tiers.slice(0, at)), [letter], ...clean(tiers.slice(at))];
}

/** `letter` tied with `other`. */
export const joined = (tiers, letter, other) => without(tiers, letter).map((tier) => (tier.includes(other) ? [...tier, letter] : tier));
