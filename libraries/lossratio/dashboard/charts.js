// Charts as SVG. Charts use the colours of the page, so they follow light and dark; hints are titles.

const COLOURS = ["var(--s1)", "var(--s2)", "var(--s3)", "var(--s4)", "var(--s5)", "var(--s6)"];
const colourOf = place => COLOURS[place % COLOURS.length];

const WIDTH = 760;
const MOST_MARKS = 2000;

/**
 * A chart. `series`: [{name, colour, points: [{x, y, low, high, hint, href, kind}], line, steps: [[x0, x1, y]]}];
 * `kind`: measured, doubtful, missing, faint. `notes`: [[x, text]]. `changes`: [{x, y, better, hint}].
 * `xNames`: names of the whole numbers from 0 on the axis, in place of dates or numbers.
 */
const chart = ({ title, height = 250, series, xDates = false, xNames = null, xLabel = "", unit = "", fromZero = false, xWhole = null, notes = [], changes = [], percentages = false }) => {
  const all = series.flatMap(one => one.points);
  const ys = [...all.flatMap(point => [point.y, point.low, point.high]), ...series.flatMap(one => (one.steps ?? []).map(step => step[2]))].filter(y => y !== null && y !== undefined && Number.isFinite(y));
  const xs = all.map(point => point.x);
  if (!xs.length) return el("p", { class: "about" }, "There is nothing to draw.");
  const [top, bottom, left, right] = [24, height - 34, 66, WIDTH - (xDates ? 30 : 12)];
  const [low, high] = ys.length ? [ys.reduce((a, b) => Math.min(a, b)), ys.reduce((a, b) => Math.max(a, b))] : [0, 1];
  const room = 0.08 * (high - low) || 0.05 * Math.abs(high) || 1;
  const y = new Axis(fromZero ? Math.min(0, low) : percentages ? low - room : Math.max(0, low - room), high + room, bottom, top);
  const [first, last] = [xs.reduce((a, b) => Math.min(a, b)), xs.reduce((a, b) => Math.max(a, b))];
  const margin = 0.02 * (last - first) || (xDates ? DAY : xNames || xWhole ? 0.5 : 0.05 * Math.abs(last) || 0.5);
  const x = new Axis(first - margin, last + margin, left, right);
  const [prefix, scale] = unit === "fps" || unit === "bit/s" ? prefixOf(y.high) : ["", 1];
  const yWords = percentages ? tick => percent(tick, 1) : inPrefix(scale);
  const parts = [
    text(2, 13, `${prefix}${unit}`),
    frame(x, y, xNames ? xNames.map((_, at) => at).filter(at => at % Math.ceil(xNames.length / 7) === 0) : xWhole ?? (xDates ? x.dates(7) : x.ticks(8)), y.ticks(5), xNames ? at => xNames[at] : xDates ? day : tick => String(Number(tick.toPrecision(12))), yWords),
    xLabel ? text((left + right) / 2, bottom + 31, xLabel, { text_anchor: "middle" }) : null,
  ];
  notes.forEach(([at, words], place) => {
    if (at < x.low || at > x.high) return;
    const where = x.place(at);
    const [side, anchor] = where > 0.6 * WIDTH ? [-4, "end"] : [4, "start"];
    parts.push(svg("path", { class: "note", d: `M${where.toFixed(1)} ${top}V${bottom}` }), text(where + side, top - 2 + 12 * (place % 2), words, { class: "note", text_anchor: anchor }));
  });
  series.forEach((one, place) => {
    const colour = one.colour ?? colourOf(place);
    const lines = [];
    const drawn = one.points.filter(point => point.y !== null);
    if (one.line && drawn.length) lines.push(svg("path", { class: "line", stroke: colour, "stroke-dasharray": one.dash ?? null, d: drawn.map((point, at) => `${at ? "L" : "M"}${x.place(point.x).toFixed(1)} ${y.place(point.y).toFixed(1)}`).join("") }));
    if (one.steps?.length) lines.push(svg("path", { class: "steps", d: one.steps.map(([from, to, height]) => `M${(x.place(from) - 2).toFixed(1)} ${y.place(height).toFixed(1)}H${(x.place(to) + 2).toFixed(1)}`).join("") }));
    const bounds = one.points.filter(point => point.low !== null && point.low !== undefined && point.high !== null && point.high !== undefined && point.high > point.low);
    if (bounds.length) lines.push(svg("path", { class: "bounds", stroke: colour, d: bounds.map(point => `M${x.place(point.x).toFixed(1)} ${y.place(point.low).toFixed(1)}V${y.place(point.high).toFixed(1)}`).join("") }));
    // Drawing thousands of marks with hints would take seconds, so they become one path.
    const dots = one.points.length > MOST_MARKS ? one.points.filter(point => point.y !== null && point.kind !== "faint") : [];
    if (dots.length) lines.push(svg("path", { class: "dots", stroke: colour, d: dots.map(point => `M${x.place(point.x).toFixed(1)} ${y.place(point.y).toFixed(1)}h0`).join("") }));
    const marks = (dots.length ? one.points.filter(point => point.y === null) : one.points).map(point => {
      const [at, height] = [x.place(point.x), y.place(point.y ?? y.low)];
      const kind = point.y === null ? "missing" : point.kind ?? "measured";
      const [form, ink] = { missing: ["cross", "var(--bad)"], doubtful: ["square", colour] }[kind] ?? ["circle", colour];
      const shape = mark(form, ink, form === "circle", at, height, point.hint, one.points.length > 400 ? 2 : 3);
      shape.setAttribute("class", kind);
      return point.href ? svg("a", { href: point.href, tabindex: -1 }, shape) : shape;
    });
    parts.push(svg("g", {}, lines, one.plain ? [] : marks));
  });
  for (const change of changes) {
    parts.push(svg("circle", { class: change.better ? "better" : "worse", cx: x.place(change.x), cy: y.place(change.y), r: 8 }, svg("title", {}, change.hint)));
  }
  const legend = series.length > 1 ? el("ul", { class: "legend" }, series.map((one, place) => el("li", {}, el("i", { style: `background:${one.colour ?? colourOf(place)}` }), one.name))) : null;
  return el("figure", {}, svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: all.some(point => point.href) ? "group" : "img", class: "chart", "aria-label": title }, parts), legend);
};

/** A small line without axes. */
const spark = values => {
  const known = values.filter(value => value !== null);
  if (known.length < 2) return null;
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const place = (value, at) => `${(2 + 96 * at / (values.length - 1)).toFixed(1)} ${(high > low ? 20 - 16 * (value - low) / (high - low) : 12).toFixed(1)}`;
  const points = values.map((value, at) => value === null ? null : place(value, at)).filter(Boolean);
  return svg("svg", { viewBox: "0 0 100 24", class: "spark", "aria-hidden": "true" }, svg("path", { d: `M${points.join("L")}` }));
};
