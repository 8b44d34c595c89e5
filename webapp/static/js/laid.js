// Arguments of a tool call for reading: a line each, where they are JSON and long.
const ONE_LINE = 80; // characters that stay in one line

export function laid(text) {
  if (text.length <= ONE_LINE || !/^\s*\{/.test(text)) return text;
  try {
    const lines = Object.entries(JSON.parse(text)).map(([name, value]) => `  ${JSON.stringify(name)}: ${JSON.stringify(value)}`);
    return `{\n${lines.join(",\n")}\n}`;
  } catch {
    return text;
  }
}
