// Texts that are too long. A browser cuts a pasted text at the limit of its field without a word. So a field with `data-most` takes any length,
// and is refused with its length when its form is sent.

/** The characters of `text`, as the server counts them. */
export const points = (text) => (/[\ud800-\udfff]/.test(text) ? [...text].length : text.length);

/** The reason for which a text cannot be sent; "" if it has at most `most` characters. */
export function tooLong(text, most) {
  const count = points(text);
  return count > most ? `This text has ${count.toLocaleString("en")} characters. Shorten it to ${most.toLocaleString("en")} or fewer.` : "";
}

/** Lets the browser refuse a field with `data-most` whose text is too long. */
export const judge = (field) => field.setCustomValidity(tooLong(field.value.trim(), Number(field.dataset.most)));

document.addEventListener("input", ({ target }) => target.dataset?.most && judge(target));
