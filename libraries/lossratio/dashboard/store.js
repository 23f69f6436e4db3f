// The slices of data: scripts, because browsers load no other files from a folder. Each hands its data to `take`.

const lossratio = (() => {
  const stamp = document.documentElement.dataset.stamp;
  const slices = new Map();
  const MOST = 200;
  const load = name => {
    if (!slices.has(name)) {
      const slice = {};
      slice.promise = new Promise((resolve, reject) => Object.assign(slice, { resolve, reject }));
      slices.set(name, slice);
      const script = el("script", { src: `data/${name}.js?v=${stamp}` });
      script.onerror = () => {
        slices.delete(name);
        slice.reject(new Error(`data/${name}.js cannot be loaded. Was the site moved without its folder data, or built again? Load the page again.`));
      };
      script.onload = () => { script.remove(); slice.reject(new Error(`data/${name}.js is damaged: make the site again with lossratio archive site.`)); };
      document.head.append(script);
      if (slices.size > MOST) for (const old of [...slices.keys()].slice(0, MOST / 2)) if (!["index", "jobs"].includes(old)) slices.delete(old);
    }
    return slices.get(name).promise;
  };
  const take = (name, data) => slices.get(name)?.resolve(data);
  return { load, take };
})();

const CORES = /(^|[-. _])(\d+)c(?=$|[-. _])/i;
const SIZE = /(^|[-. _])(\d+b|imix\w*)(?=$|[-. _])/i;
const ALARMS = ["regression", "no value any more"];

let site = null;

const openSite = data => {
  const { words, builds, verdicts } = data;
  site = { ...data, tests: [], series: [], byId: new Map() };
  for (const [id, testbed, name, frame, tags, rows] of data.tests) {
    const inName = SIZE.exec(name)?.[2];
    const test = { id, testbed: words[testbed], name, tags: tags.map(tag => words[tag]), series: [] };
    test.frame = frame ?? (/^\d+b$/i.test(inName ?? "") ? Number.parseInt(inName, 10) : null);
    test.size = inName ? inName.replace(/b$/i, "B") : frame ? `${Number(frame.toPrecision(6))}B` : "";
    test.cores = CORES.exec(name) ? Number(CORES.exec(name)[2]) : null;
    test.series = rows.map(([quantity, unit, lowerIsBetter, count, first, last, value, low, high, outcome, kinds, build, verdict, change, since, text, isOld, sparkline, factor]) => ({
      test, quantity: words[quantity], unit: words[unit], lowerIsBetter, count, first, last, value, low, high, outcome: words[outcome], kinds: kinds.map(kind => words[kind]),
      build: builds[build], verdict: verdicts[verdict], change, since, text, isOld, spark: sparkline, factor,
    }));
    test.words = `${name} ${test.tags.join(" ")} ${test.testbed} ${[...new Set(test.series.map(series => series.build ?? ""))].join(" ")}`.toLowerCase();
    site.tests.push(test);
    site.byId.set(id, test);
    site.series.push(...test.series);
  }
  site.newest = site.series.reduce((newest, series) => Math.max(newest, series.last), 0);
  site.quantities = [...new Set(site.series.map(series => series.quantity))].sort(byWords);
  site.sizes = [...new Set(site.tests.map(test => test.size).filter(Boolean))].sort(byWords);
  site.cores = [...new Set(site.tests.map(test => test.cores).filter(cores => cores !== null))].sort((a, b) => a - b).map(String);
  site.testbedNames = site.testbeds.map(([name]) => name);
};

/** The rows of a run or of the newest results, as `compareSides` takes them. */
const rowsOf = (slice, testbed) => {
  const { names } = slice;
  return slice.rows.map(([test, quantity, unit, outcome, measuredAs, generator, build, device, value, low, high, reason, doubts, lowerIsBetter, time, seconds, unsent, most, resolution, id, factor]) => ({
    testbed, test: names[test], quantity: names[quantity], unit: names[unit], outcome: names[outcome], measuredAs: names[measuredAs], generator: names[generator],
    build: names[build], device: names[device], value, low, high, reason, doubts, lowerIsBetter, time, seconds, unsent, most, resolution, id: names[id], factor,
  }));
};

/** Whether a text has all words; or matches the regular expression between slashes. */
const matches = (words, text) => {
  const expression = /^\/(.+)\/$/.exec(text.trim());
  if (!expression) return text.toLowerCase().split(/\s+/).filter(Boolean).every(word => words.includes(word));
  try { return new RegExp(expression[1], "i").test(words); } catch { return false; }
};

/** The aggregate to show beside a rate; a rate without a known factor is an aggregate itself. */
const beside = (value, { unit, factor }) => {
  if (unit !== "fps" || value === null || factor === 1) return null;
  return el("span", { class: "small" }, factor === null ? " aggregate" : ` ${inUnit(value * factor, unit)} aggregate`);
};
const valueCell = series => {
  const bounds = series.low !== null && series.high !== null ? range(inUnit(series.low, series.unit), inUnit(series.high, series.unit)) : null;
  const text = series.value === null ? (series.outcome === "measured" ? "no single value" : series.outcome) : inUnit(series.value, series.unit);
  return [el("span", { class: series.outcome === "measured" ? null : outcomeClass(series.outcome), title: bounds }, text), beside(series.value, series)];
};
/** What a trend says after its verdict and its name. */
const detailOf = (text, test, quantity) => text.split(`${test.name}, ${quantity}, on ${test.testbed}: `).slice(1).join("");
const verdictCell = series => [
  el("span", { class: ALARMS.includes(series.verdict) ? "alarm" : null }, series.verdict),
  series.text ? el("span", { class: "small" }, `: ${detailOf(series.text, series.test, series.quantity)}`) : null,
  series.isOld ? el("span", { class: "doubt" }, ", old") : null,
  series.kinds.filter(kind => kind !== series.outcome).map(kind => el("span", { class: "doubt" }, ` · ${kind}`)),
];
