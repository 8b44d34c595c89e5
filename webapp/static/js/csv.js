// Text as CSV. A cell that begins like a formula gets a ' in front, because a spreadsheet would run it. Numbers stay numbers.
const FORMULA = /^[=+@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]|^-(?!\d)/;

const cell = (value) => (typeof value === "number" ? String(value) : `"${(FORMULA.test(value) ? `'${value}` : value).replaceAll('"', '""')}"`);

/** Rows of numbers and texts as RFC 4180 has them. */
export const csv = (rows) => rows.map((row) => row.map(cell).join(",")).join("\r\n");
