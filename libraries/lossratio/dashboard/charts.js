// Charts as SVG. Colours are those of the page, so that charts follow light and dark; hints are titles.

const COLOURS = ["var(--s1)", "var(--s2)", "var(--s3)", "var(--s4)", "var(--s5)", "var(--s6)"];
const colourOf = place => COLOURS[place % COLOURS.length];

class Axis {
  constructor(low, high, start, end) { Object.assign(this, { low, high: high > low ? high : low + 1, start, end }); }
  place(value) { return this.start + (Math.min(Math.max(value, this.low), this.high) - this.low) / (this.high - this.low) * (this.end - this.start); }
  ticks(count) {
    const least = (this.high - this.low) / count;
    const power = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 5, 10].map(digit => digit * power).find(size => size >= least * (1 - 1e-9));
    const ticks = [];
    for (let index = Math.ceil(this.low / step - 1e-9); index <= Math.floor(this.high / step + 1e-9); index += 1) ticks.push(index * step);
    return ticks;
  }
  // Whole days, months or years, each date once.
  dates(count) {
    const days = (this.high - this.low) / DAY / count;
    if (days < 14) {
      const step = Math.max(1, Math.ceil(days)) * DAY;
      const ticks = [];
      for (let at = Math.ceil(this.low / step) * step; at <= this.high; at += step) ticks.push(at);
      return ticks;
    }
    const months = [1, 2, 3, 6, 12, 24].find(size => size >= days / 31) ?? 12 * Math.ceil(days / 365);
    const first = new Date(1000 * this.low);
    const ticks = [];
    for (let month = Math.ceil((12 * first.getUTCFullYear() + first.getUTCMonth()) / months) * months; ; month += months) {
      const at = Date.UTC(Math.floor(month / 12), month % 12, 1) / 1000;
      if (at > this.high) return ticks;
      if (at >= this.low) ticks.push(at);
    }
  }
}

const WIDTH = 760;
const MOST_MARKS = 2000;

/**
 * A chart. `series`: [{name, colour, points: [{x, y, low, high, hint, href, kind}], line, steps: [[x0, x1, y]]}];
 * `kind`: measured, doubtful, missing, faint. `notes`: [[x, text]]. `changes`: [{x, y, better, hint}].
 */
const chart = ({ title, height = 250, series, xDates = false, xLabel = "", unit = "", fromZero = false, xWhole = null, notes = [], changes = [], percentages = false }) => {
  const all = series.flatMap(one => one.points);
  const ys = [...all.flatMap(point => [point.y, point.low, point.high]), ...series.flatMap(one => (one.steps ?? []).map(step => step[2]))].filter(y => y !== null && y !== undefined && Number.isFinite(y));
  const xs = all.map(point => point.x);
  if (!xs.length) return el("p", { class: "about" }, "There is nothing to draw.");
  const [top, bottom, left, right] = [24, height - 34, 66, WIDTH - 12];
  const [low, high] = ys.length ? [ys.reduce((a, b) => Math.min(a, b)), ys.reduce((a, b) => Math.max(a, b))] : [0, 1];
  const room = 0.08 * (high - low) || 0.05 * Math.abs(high) || 1;
  const y = new Axis(fromZero ? Math.min(0, low) : percentages ? low - room : Math.max(0, low - room), high + room, bottom, top);
  const [first, last] = [xs.reduce((a, b) => Math.min(a, b)), xs.reduce((a, b) => Math.max(a, b))];
  const margin = 0.02 * (last - first) || (xDates ? DAY : 0.5);
  const x = new Axis(first - margin, last + margin, left, right);
  const [prefix, scale] = unit === "fps" || unit === "bit/s" ? SCALES.find(([, scale]) => y.high >= scale) ?? ["", 1] : ["", 1];
  const xTicks = xWhole ?? (xDates ? x.dates(7) : x.ticks(8));
  const yTicks = y.ticks(5);
  const parts = [
    svg("path", { class: "grid", d: yTicks.map(tick => `M${left} ${y.place(tick).toFixed(1)}H${right}`).join("") || "M0 0" }),
    svg("path", { class: "frame", d: `M${left} ${top}V${bottom}H${right}` + xTicks.map(tick => `M${x.place(tick).toFixed(1)} ${bottom}v4`).join("") }),
    svg("text", { x: 2, y: 13 }, `${prefix}${unit}`),
    yTicks.map(tick => svg("text", { x: left - 6, y: y.place(tick) + 4, "text-anchor": "end" }, percentages ? percent(tick, 1) : String(Number((tick / scale).toPrecision(8))))),
    xTicks.map(tick => svg("text", { x: Math.min(x.place(tick), xDates ? right - 20 : right), y: bottom + 16, "text-anchor": "middle" }, xDates ? day(tick) : String(tick))),
    xLabel ? svg("text", { x: (left + right) / 2, y: bottom + 31, "text-anchor": "middle" }, xLabel) : null,
  ];
  notes.forEach(([at, words], place) => {
    if (at < x.low || at > x.high) return;
    const where = x.place(at);
    parts.push(svg("path", { class: "note", d: `M${where.toFixed(1)} ${top}V${bottom}` }));
    parts.push(svg("text", { class: "note", x: where > 0.6 * WIDTH ? where - 4 : where + 4, y: top - 2 + 12 * (place % 2), "text-anchor": where > 0.6 * WIDTH ? "end" : "start" }, words));
  });
  series.forEach((one, place) => {
    const colour = one.colour ?? colourOf(place);
    const lines = [];
    const drawn = one.points.filter(point => point.y !== null);
    if (one.line && drawn.length) lines.push(svg("path", { class: "line", stroke: colour, "stroke-dasharray": one.dash ?? null, d: drawn.map((point, at) => `${at ? "L" : "M"}${x.place(point.x).toFixed(1)} ${y.place(point.y).toFixed(1)}`).join("") }));
    if (one.steps?.length) lines.push(svg("path", { class: "steps", d: one.steps.map(([from, to, height]) => `M${(x.place(from) - 2).toFixed(1)} ${y.place(height).toFixed(1)}H${(x.place(to) + 2).toFixed(1)}`).join("") }));
    const bounds = one.points.filter(point => point.low !== null && point.low !== undefined && point.high !== null && point.high !== undefined && point.high > point.low);
    if (bounds.length) lines.push(svg("path", { class: "bounds", stroke: colour, d: bounds.map(point => `M${x.place(point.x).toFixed(1)} ${y.place(point.low).toFixed(1)}V${y.place(point.high).toFixed(1)}`).join("") }));
    // Thousands of marks with hints would take seconds: they become one path.
    const dots = one.points.length > MOST_MARKS ? one.points.filter(point => point.y !== null && point.kind !== "faint") : [];
    if (dots.length) lines.push(svg("path", { class: "dots", stroke: colour, d: dots.map(point => `M${x.place(point.x).toFixed(1)} ${y.place(point.y).toFixed(1)}h0`).join("") }));
    const marks = (dots.length ? one.points.filter(point => point.y === null) : one.points).map(point => {
      const [at, height] = [x.place(point.x), y.place(point.y ?? y.low)];
      const kind = point.y === null ? "missing" : point.kind ?? "measured";
      const shape = kind === "missing" ? svg("path", { class: kind, d: `M${at - 3.5} ${height - 3.5}l7 7m0 -7l-7 7` })
        : kind === "doubtful" ? svg("rect", { class: kind, stroke: colour, x: at - 3, y: height - 3, width: 6, height: 6 })
          : svg("circle", { class: kind, fill: colour, cx: at, cy: height, r: one.points.length > 400 ? 2 : 3 });
      if (point.hint) shape.append(svg("title", {}, point.hint));
      return point.href ? svg("a", { href: point.href, tabindex: -1 }, shape) : shape;
    });
    if (!one.plain) parts.push(svg("g", {}, lines, marks)); else parts.push(svg("g", {}, lines));
  });
  for (const change of changes) {
    const mark = svg("circle", { class: change.better ? "better" : "worse", cx: x.place(change.x), cy: y.place(change.y), r: 8 });
    mark.append(svg("title", {}, change.hint));
    parts.push(mark);
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
