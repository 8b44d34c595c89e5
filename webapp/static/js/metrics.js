// Lays out charts by a recipe's declarations of its metrics (trainer/config/recipe.py, served by
// webapp/experiments/recipe_metrics.py). No metric is named here: a key without a declaration is drawn under "Other".

const slug = (text) => text.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
/** A different id for every key. Keys of programs may differ in only one sign, such as `a/b` and `a-b`. */
const idOf = (key) => key.replaceAll(/[^a-z0-9]/gu, (sign) => (sign === "/" ? "-" : `_${sign.codePointAt(0).toString(16)}_`));
const isPattern = (metric) => metric.key.includes("*");

/** The part of `key` that the `*` of a pattern matches; null if the key does not match. */
function starOf(metric, key) {
  const [before, after] = metric.key.split("*");
  const fits = key.length > before.length + after.length && key.startsWith(before) && key.endsWith(after);
  return fits ? key.slice(before.length, key.length - after.length) : null;
}

/** The declaration of an emitted key; an exact one comes before a pattern. */
export function metricOf(declared, key) {
  const exact = declared.metrics.find((metric) => metric.key === key);
  return exact ?? declared.metrics.find((metric) => isPattern(metric) && starOf(metric, key) !== null);
}

/** The name of a key inside its chart; for a pattern, the part that the config named. */
export function nameOf(declared, key) {
  const metric = metricOf(declared, key);
  if (!metric) return key;
  return isPattern(metric) ? starOf(metric, key).replaceAll("_", " ") : metric.title;
}

/** The keys of `metric` to draw. Its own key is drawn even before the first value, unless some runs do not send it. */
function keysOf(declared, metric, keys) {
  if (isPattern(metric)) return keys.filter((key) => metricOf(declared, key) === metric);
  return !metric.optional || keys.includes(metric.key) ? [metric.key] : [];
}

/** The band around each key. For a pattern, the patterns of its band or its ends are filled in. */
function bandsOf(metric, keys) {
  const names = metric.ends.length ? metric.ends : [metric.band].filter(Boolean);
  const times = metric.ends.length ? undefined : metric.band_times;
  const named = (name, key) => (isPattern(metric) ? name.replace("*", starOf(metric, key)) : name);
  return Object.fromEntries(names.length ? keys.map((key) => [key, { keys: names.map((name) => named(name, key)), times }]) : []);
}

/** For each key, the key with its number of cases. */
function countsOf(metric, keys) {
  const named = (key) => (isPattern(metric) ? metric.count.replace("*", starOf(metric, key)) : metric.count);
  return Object.fromEntries(metric.count ? keys.map((key) => [key, named(key)]) : []);
}

function chart(title, metric, keys) {
  const { unit, share, held_out, help } = metric;
  return { id: isPattern(metric) && !metric.chart ? `key-${idOf(keys[0])}` : slug(metric.chart || keys[0]), title, unit, help, percent: share, dots: held_out, keys, bands: bandsOf(metric, keys), counts: countsOf(metric, keys) };
}

function chartsOf(declared, group, keys, bands) {
  const charts = new Map();
  for (const metric of declared.metrics.filter((each) => each.group === group && !bands.has(each.key))) {
    const mine = keysOf(declared, metric, keys);
    if (!mine.length) continue;
    if (!metric.chart) {
      for (const key of mine) charts.set(key, chart(nameOf(declared, key), metric, [key]));
    } else if (!charts.has(metric.chart)) charts.set(metric.chart, chart(metric.chart, metric, mine));
    else {
      const shared = charts.get(metric.chart);
      shared.keys.push(...mine);
      Object.assign(shared.bands, bandsOf(metric, mine));
      Object.assign(shared.counts, countsOf(metric, mine));
      if (metric.help && metric.help !== shared.help) shared.help = `${shared.help} ${metric.help}`.trim();
    }
  }
  return [...charts.values()];
}

/** Charts of two metrics against each other, if both have values; `ends` are the keys of their intervals. */
function tracesOf(declared, group, keys) {
  const side = (key) => {
    const { title, share, ends } = metricOf(declared, key);
    return { key, title, percent: share, ends };
  };
  const there = declared.traces.filter((trace) => trace.group === group && [trace.x, trace.y].every((key) => keys.includes(key)));
  return there.map(({ title, help, x, y }) => ({ id: slug(title), title, help, x: side(x), y: side(y) }));
}

/** Groups of the charts without a declaration, by the part of a key before its first slash; keys without a slash come last. */
function byPrefix(charts) {
  const stem = ({ keys: [key] }) => key.slice(0, Math.max(key.indexOf("/"), 0));
  const stems = [...new Set(charts.map(stem).sort())].filter(Boolean);
  return [...stems, ""].map((name) => ({
    id: name ? `other-${idOf(name)}` : "other", title: name || "Other", lede: "", small: true, traces: [], histograms: [], charts: charts.filter((chart) => stem(chart) === name),
  }));
}

/** The names of metrics that programs send as quantiles: the median is drawn, and a band from 5% to 95% of the values around it. */
function distributions(keys) {
  const there = new Set(keys);
  const stems = keys.filter((key) => key.endsWith("/p50")).map((key) => key.slice(0, -"/p50".length));
  return new Map(stems.filter((stem) => there.has(`${stem}/p5`) && there.has(`${stem}/p95`)).map((stem) => [`${stem}/p50`, stem]));
}

/** The charts of keys without a declaration. */
function undeclaredCharts(keys) {
  const medians = distributions(keys);
  const ends = new Map([...medians].map(([key, stem]) => [key, [`${stem}/p5`, `${stem}/p95`]]));
  const inside = new Set([...ends.values()].flat());
  return keys.filter((key) => !inside.has(key)).map((key) => {
    const stem = medians.get(key);
    const help = stem ? `The median of ${stem}, with a band from 5% to 95% of its values.` : `The metric ${key}, as the trainer sends it.`;
    return { id: `key-${idOf(key)}`, title: stem ?? key, unit: "", help, keys: [key], bands: stem ? { [key]: { keys: ends.get(key), told: "Middle 90% of its values:" } } : {}, counts: {} };
  });
}

/** Groups in the order of the page, each with the charts to draw for the metric keys that exist. */
export function layout(declared, keys) {
  const bands = new Set(declared.metrics.flatMap((metric) => [metric.band, ...metric.ends, metric.marks && metric.key]).filter(Boolean));
  const known = new Map(declared.groups.map((group) => [group.id, group]));
  const named = [...new Set(declared.metrics.map((metric) => metric.group))].filter((id) => !known.has(id));
  const groups = [...declared.groups, ...named.map((id) => ({ id, title: id, lede: "", small: false }))];
  const found = groups.map((group) => ({ ...group, charts: chartsOf(declared, group.id, keys, bands), traces: tracesOf(declared, group.id, keys), histograms: declared.histograms.filter((each) => each.group === group.id) }));
  const rest = keys.filter((key) => !metricOf(declared, key) && !bands.has(key));
  return [...found, ...byPrefix(undeclaredCharts(rest))].filter((group) => group.charts.length || group.histograms.length);
}
