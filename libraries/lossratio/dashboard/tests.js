// Views of single tests and runs: the trend of a test with its latency, several series together, a run.

const PERIODS = [["", "all"], ["365", "last year"], ["90", "last 90 days"], ["30", "last 30 days"]];

const outcomeWords = (slice, point) => {
  const { names } = slice;
  const doubts = point[5].map(place => names[place]);
  return [names[point[4]] === "measured" ? null : `${names[point[4]]}: ${names[point[6]] ?? ""}`, ...doubts.map(doubt => `doubt: ${doubt}`)].filter(Boolean);
};

const pointOf = (slice, series, place, alike) => {
  const point = series.points[place];
  const [time, value, low, high] = point;
  const words = outcomeWords(slice, point);
  const job = slice.jobs[point[7]];
  const hint = [`${minute(time)} UTC: ${inUnit(value, series.unit)}`, ...words, slice.names[point[8]], jobName(job[1], job[2]), alike.has(place) ? null : "other traffic, path, goal or generator, or older than the results that the trend looks at"].filter(Boolean).join("\n");
  return { x: time, y: value, low, high, hint, href: address(`run/${job[0]}`), kind: !alike.has(place) ? "faint" : words.length ? "doubtful" : "measured" };
};

// The beginnings of steps that differ from the step before by the minimum change or more, as in trends. With two bands, the lower bands count.
const changesOf = (series, least) => series.steps.slice(1).map(([first, , height], place) => {
  const before = series.steps[place][2];
  const ratio = before ? (height - before) / before : Infinity;
  const x = series.points[first][0];
  return { x, y: series.points[first][1] ?? height, ratio, better: (ratio < 0) === series.lower, hint: `${day(x)}: ${percent(ratio)}, from ${inUnit(before, series.unit)} to ${inUnit(height, series.unit)}` };
}).filter(change => Math.abs(change.ratio) >= least);

// The place of each result on an axis of builds: beside the other results of its build, in the order in which builds appeared.
const buildAxis = (slice, series, places) => {
  const builds = [...new Set(places.map(place => series.points[place][8]))];
  const results = builds.map(build => places.filter(place => series.points[place][8] === build));
  const x = new Map(results.flatMap((of, at) => of.map((place, number) => [place, at + 0.7 * ((number + 0.5) / of.length - 0.5)])));
  // The commit is the end of a version.
  return { x, names: builds.map(build => (slice.names[build] ?? "not known").split(" ").at(-1).slice(-14)) };
};

const trendChart = (slice, series, since, byBuild) => {
  const alike = new Set(series.alike);
  const places = series.points.map((_, place) => place).filter(place => series.points[place][0] >= since);
  const axis = byBuild ? buildAxis(slice, series, places) : null;
  // The place of a time on the axis: the place of the first result from then on.
  const x = time => {
    const place = axis && (places.find(one => series.points[one][0] >= time) ?? places.at(-1));
    return axis ? axis.x.get(place) : time;
  };
  const points = places.map(place => ({ ...pointOf(slice, series, place, alike), x: x(series.points[place][0]) }));
  const steps = series.steps.flatMap(([first, last, ...levels]) => levels.map(height => [Math.max(since, series.points[first][0]), series.points[last][0], height])).filter(([first, last]) => last >= first).map(([first, last, height]) => [x(first), x(last), height]);
  const notes = series.notes.map(([date, note]) => [x(Date.parse(`${date}T00:00:00Z`) / 1000), note]);
  const changes = changesOf(series, site.rules.trendChange).filter(change => change.x >= since).map(change => ({ ...change, x: x(change.x) }));
  return chart({ title: `${series.quantity}: ${series.text}`, unit: series.unit, xDates: !axis, xNames: axis?.names, series: [{ name: series.quantity, points, steps }], notes, changes });
};

const resultTable = (slice, series, test) => table({
  name: `${test.name} ${series.quantity} ${test.testbed}`,
  rows: series.points.map((_, place) => place).reverse(),
  step: 25,
  columns: [
    { head: "time, UTC", cell: place => minute(series.points[place][0]), className: "date", key: place => series.points[place][0], csv: place => minute(series.points[place][0]) },
    { head: "value", cell: place => [inUnit(series.points[place][1], series.unit), beside(series.points[place][1], series)], key: place => series.points[place][1], csv: place => series.points[place][1], className: "number quote" },
    { head: "result", cell: place => el("span", { class: outcomeClass(slice.names[series.points[place][4]]) }, outcomeWords(slice, series.points[place]).join("; ") || "measured"), key: place => outcomeWords(slice, series.points[place]).join(), csv: place => outcomeWords(slice, series.points[place]).join("; ") || "measured", className: "name" },
    { head: "lower bound", cell: place => inUnit(series.points[place][2], series.unit), key: place => series.points[place][2], csv: place => series.points[place][2], className: "number" },
    { head: "upper bound", cell: place => inUnit(series.points[place][3], series.unit), key: place => series.points[place][3], csv: place => series.points[place][3], className: "number" },
    { head: "unit", csv: () => series.unit },
    { head: "layer 1, per interface", cell: place => inUnit(bandwidth(series.points[place][1], series.unit, test.frame), "bit/s"), key: place => series.points[place][1], className: "number" },
    { head: "build", cell: place => slice.names[series.points[place][8]] ?? NOTHING, key: place => slice.names[series.points[place][8]], csv: place => slice.names[series.points[place][8]], className: "name" },
    { head: "generator", cell: place => slice.names[series.points[place][9]] ?? NOTHING, key: place => slice.names[series.points[place][9]], csv: place => slice.names[series.points[place][9]] },
    { head: "run", cell: place => { const [id, name, started] = slice.jobs[series.points[place][7]]; return link(`run/${id}`, jobName(name, started)); }, csv: place => slice.jobs[series.points[place][7]][1], className: "name" },
  ],
});

const latencySeries = (rows, percentile, since) => {
  const curves = new Map();
  for (const [time, load, direction, ...latencies] of rows) {
    const value = latencies[percentile];
    if (time < since || value === null) continue;
    const name = `${load}, ${direction}`;
    if (!curves.has(name)) curves.set(name, { name, line: true, points: [] });
    curves.get(name).points.push({ x: time, y: value, hint: `${minute(time)} UTC, ${name}: ${Number(value.toPrecision(4))} µs` });
  }
  return [...curves.values()].sort((a, b) => byWords(a.name, b.name)).map(curve => ({ ...curve, points: curve.points.sort((a, b) => a.x - b.x) }));
};
const PERCENTILES = [["0", "median"], ["1", "90 %"], ["2", "99 %"], ["3", "largest"]];

const telemetrySeries = (rows, quantity, since) => rows.filter(row => row[0] === quantity).map(([, place, unit, times, values]) => ({
  name: place, line: true,
  points: times.map((time, index) => ({ x: time, y: values[index], hint: `${minute(time)} UTC, ${place}: ${inUnit(values[index], unit)}` })).filter(point => point.x >= since && point.y !== null),
})).filter(curve => curve.points.length);

const testView = async (parameters, id) => {
  const test = site.byId.get(id);
  if (!test) return notThere("test");
  const slice = await lossratio.load(`test-${id}`);
  const sides = site.tests.filter(other => other.name === test.name && other !== test);
  const family = (pattern, path, words) => {
    const name = familyName(test.name, pattern);
    return name !== test.name && site.tests.some(other => other !== test && other.testbed === test.testbed && familyName(other.name, pattern) === name) ? el("li", {}, link(path, words, { text: name, testbed: test.testbed })) : null;
  };
  const fields = [{ name: "period", label: "Period", values: PERIODS.slice(1), all: "all" }];
  const isBuilt = slice.series.some(series => new Set(series.points.map(point => point[8])).size > 1);
  if (isBuilt) fields.push({ name: "axis", label: "Axis", values: [["build", "builds, by commit"]], all: "dates" });
  if (slice.latency.length) fields.push({ name: "percentile", label: "Latency", values: PERCENTILES, all: null });
  const quantities = [...new Set(slice.telemetry.map(row => row[0]))];
  if (quantities.length) fields.push({ name: "telemetry", label: "Telemetry", values: quantities, all: null });
  const head = el("div", {},
    el("h2", {}, test.name),
    el("p", { class: "about" }, `testbed ${test.testbed}`, test.frame ? ` · ${Number(test.frame.toPrecision(6))} B frames` : "", test.cores ? ` · ${plural(test.cores, "core")}` : "", slice.tags.length ? " · " : "",
      slice.tags.map((tag, place) => [place ? ", " : "", link("", tag, { text: tag })])),
    el("ul", { class: "links" },
      sides.map(other => el("li", {}, link(`test/${other.id}`, `the same on ${other.testbed}`))),
      family(CORES, "scaling", "over cores"), family(SIZE, "sizes", "over frame sizes")));
  const body = el("div");
  const update = state => {
    history.replaceState(null, "", address(`test/${id}`, state));
    const newest = Math.max(...slice.series.map(series => series.points.at(-1)[0]));
    const since = state.period ? newest - state.period * DAY : -Infinity;
    const curves = latencySeries(slice.latency, Number(state.percentile || 0), since);
    const sections = slice.series.map(series => el("section", {},
      el("h3", {}, series.quantity), el("p", { class: series.alarm ? "alarm" : null }, `${series.verdict}: ${detailOf(series.text, test, series.quantity)}`),
      series.points.some(point => point[1] !== null) ? trendChart(slice, series, since, isBuilt && state.axis === "build") : el("p", { class: "about" }, "These results have no single value. See the reports of the runs."),
      el("details", {}, el("summary", {}, `All ${series.points.length} results`), resultTable(slice, series, test))));
    const latency = curves.length ? el("section", {}, el("h3", {}, `Latency, ${PERCENTILES[Number(state.percentile || 0)][1]}`),
      el("p", {}, "One way, by load and direction."), chart({ title: "Latency", unit: "µs", xDates: true, fromZero: true, series: curves })) : null;
    const quantity = state.telemetry || quantities[0];
    const measured = telemetrySeries(slice.telemetry, quantity, since);
    const telemetry = measured.length ? el("section", {}, el("h3", {}, `Telemetry, ${quantity}`),
      el("p", {}, "In the trial after the search, by device and place."),
      chart({ title: `Telemetry, ${quantity}`, unit: slice.telemetry.find(row => row[0] === quantity)[2], xDates: true, series: measured })) : null;
    const beside = [latency, telemetry].filter(Boolean);
    body.replaceChildren(...(beside.length ? [el("div", { class: "pair" }, el("div", {}, sections), el("div", {}, beside))] : sections));
  };
  const { form, state } = filters(fields, parameters, update);
  update(state());
  return [head, form, body, el("p", { class: "about" },
    "Circles are results, squares are irregular or doubtful results, and crosses have no value. Vertical lines are bounds. Horizontal lines are the steps that lossratio trend finds; two bands have two lines. Rings are changes for the worse or the better. "
    + "Faint circles are not part of the trend: they are of other traffic, another path, goal or generator, or are older than the results that the trend looks at. Dashed lines are known changes.")];
};

const overlayView = async parameters => {
  const wanted = (parameters.series ?? "").split("~").filter(Boolean).slice(0, 12);
  const loaded = [];
  for (const name of wanted) {
    const [id, ...rest] = name.split(".");
    const test = site.byId.get(id);
    const slice = test ? await lossratio.load(`test-${id}`) : null;
    const series = slice?.series.find(one => one.quantity === rest.join("."));
    if (series) loaded.push({ test, slice, series });
  }
  if (!loaded.length) return notThere("series");
  const fields = [{ name: "period", label: "Period", values: PERIODS.slice(1), all: "all" }, { name: "relative", label: "Relative to the mean of each", type: "checkbox" }];
  const units = new Set(loaded.map(({ series }) => series.unit));
  const body = el("div");
  const update = state => {
    history.replaceState(null, "", address("overlay", { series: wanted.join("~"), ...state }));
    const newest = Math.max(...loaded.map(({ series }) => series.points.at(-1)[0]));
    const since = state.period ? newest - state.period * DAY : -Infinity;
    const relativeTo = state.relative || units.size > 1;
    const curves = loaded.map(({ test, slice, series }) => {
      const alike = new Set(series.alike);
      const points = series.points.map((_, place) => pointOf(slice, series, place, alike)).filter(point => point.x >= since && point.kind !== "faint");
      const values = points.map(point => point.y).filter(value => value !== null);
      const middle = values.length ? mean(values) : 1;
      return { name: `${test.name}, ${series.quantity}, ${test.testbed}`, line: true, points: points.map(point => relativeTo ? { ...point, y: point.y === null || !middle ? null : point.y / middle - 1, low: null, high: null } : { ...point, low: null, high: null }) };
    });
    body.replaceChildren(chart({ title: "Series together", height: 380, unit: relativeTo ? "" : loaded[0].series.unit, percentages: relativeTo, xDates: true, series: curves }),
      el("ul", {}, loaded.map(({ test, series }) => el("li", {}, link(`test/${test.id}`, `${test.name}, ${series.quantity}, ${test.testbed}`), `: ${series.text}`))));
  };
  const { form, state } = filters(fields, parameters, update);
  update(state());
  return [el("h2", {}, "Series together"), form, body];
};

const runView = async (parameters, id) => {
  const jobs = await readJobs();
  const job = jobs.find(one => one.id === id);
  if (!job) return notThere("run");
  const slice = await lossratio.load(`job-${id}`);
  const rows = rowsOf(slice, slice.testbed);
  const place = jobs.filter(one => one.testbed === job.testbed);
  const at = place.indexOf(job);
  const earlier = place[at + 1];
  const later = place[at - 1];
  const same = jobs.filter(one => one !== job && one.name !== null && one.name === job.name && one.testbed === job.testbed);
  return [
    el("h2", {}, jobName(job.name, job.started)),
    el("p", { class: "about" }, `testbed ${job.testbed} · began ${minute(job.started)} UTC${job.name === null ? "" : ` · took ${hours(job.ended - job.started)}`} · ${plural(job.results, "result")}, ${job.failed} failed, ${job.irregular} irregular, ${job.doubtful} doubtful`),
    job.builds.some(Boolean) ? el("p", { class: "about" }, `builds: ${job.builds.filter(Boolean).join("; ")}`) : null,
    same.length ? el("p", { class: "about" }, `${plural(same.length, "other run")} of this testbed ${same.length === 1 ? "has" : "have"} the same name: `, same.slice(0, 5).map((one, number) => [number ? ", " : "", link(`run/${one.id}`, `${minute(one.started)} UTC`)])) : null,
    el("ul", { class: "links" },
      job.page ? el("li", {}, el("a", { href: job.page }, job.page.endsWith(".tar.gz") ? "the run in the archive" : "report of the run")) : null,
      earlier ? el("li", {}, link("compare", "compare with the run before", { a: earlier.testbed, aWhat: `run ${earlier.id}`, b: job.testbed, bWhat: `run ${job.id}` })) : null,
      earlier ? el("li", {}, link(`run/${earlier.id}`, "the run before")) : null, later ? el("li", {}, link(`run/${later.id}`, "the run after")) : null),
    listView(`run/${id}`, [{ name: "text", label: "Test or build" }, { name: "odd", label: "Only irregular, failed or doubtful", type: "checkbox" }], parameters, state => {
      const chosen = rows.filter(row => matches(`${row.test} ${row.quantity} ${row.build ?? ""}`.toLowerCase(), state.text ?? "") && (!state.odd || row.outcome !== "measured" || row.doubts.length));
      return [table({ name: `run ${jobName(job.name, job.started)}`, rows: chosen, columns: [
        { head: "test", cell: row => link(`test/${row.id}`, row.test), key: row => row.test, csv: row => row.test, className: "name" },
        { head: "value", cell: row => [inUnit(row.value, row.unit), beside(row.value, row)], key: row => row.value, csv: row => row.value, className: "number quote" },
        { head: "result", cell: row => [el("span", { class: outcomeClass(row.outcome) }, row.outcome, row.reason ? `: ${row.reason}` : ""), row.doubts.map(doubt => el("span", { class: "doubt" }, ` · doubt: ${doubt}`))], key: row => row.outcome, csv: row => [row.outcome, row.reason, ...row.doubts].filter(Boolean).join("; "), className: "name" },
        { head: "quantity", cell: row => row.quantity, key: row => row.quantity, csv: row => row.quantity },
        { head: "unit", csv: row => row.unit },
        { head: "lower bound", cell: row => inUnit(row.low, row.unit), key: row => row.low, csv: row => row.low, className: "number" },
        { head: "upper bound", cell: row => inUnit(row.high, row.unit), key: row => row.high, csv: row => row.high, className: "number" },
        { head: "began, UTC", cell: row => minute(row.time), className: "date", key: row => row.time, csv: row => minute(row.time) },
        { head: "took", cell: row => hours(row.seconds ?? 0), key: row => row.seconds, csv: row => row.seconds, className: "number" },
        { head: "build", cell: row => row.build ?? NOTHING, key: row => row.build, csv: row => row.build, className: "name" },
        { head: "generator", cell: row => row.generator ?? NOTHING, key: row => row.generator, csv: row => row.generator },
      ] }), `${plural(chosen.length, "result")} of ${rows.length}`];
    }),
  ];
};
