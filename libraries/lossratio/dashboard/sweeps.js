// Views across tests: comparison of two sides, throughput beside latency, scaling over cores, sweep over frame sizes.

const familyName = (name, pattern) => name.replaceAll(new RegExp(pattern.source, "gi"), (whole, before) => `${before}*`);

/** Tests that differ only in what the pattern finds, on the same testbed, with the same quantity. */
const families = (pattern, value) => {
  const groups = new Map();
  for (const series of site.series) {
    const at = value(series.test);
    if (at === null || series.value === null) continue;
    const name = familyName(series.test.name, pattern);
    const key = JSON.stringify([name, series.test.testbed, series.quantity, series.unit]);
    if (!groups.has(key)) groups.set(key, { name, testbed: series.test.testbed, quantity: series.quantity, unit: series.unit, rows: [] });
    groups.get(key).rows.push({ at, series });
  }
  return [...groups.values()].filter(group => new Set(group.rows.map(row => row.at)).size > 1)
    .map(group => ({ ...group, rows: group.rows.sort((a, b) => a.at - b.at), words: `${group.name} ${group.testbed} ${group.rows.map(row => row.series.test.words).join(" ")}`.toLowerCase() }));
};

const doubtsOfFamily = family => {
  const builds = new Set(family.rows.map(row => row.series.build));
  const odd = family.rows.filter(row => row.series.outcome !== "measured" || row.series.kinds.length);
  return [
    builds.size > 1 ? el("p", { class: "doubt" }, `Doubt: these are values of different builds: ${[...builds].map(build => build ?? "not known").join("; ")}`) : null,
    odd.length ? el("p", { class: "doubt" }, `Doubt: irregular or doubtful at ${odd.map(row => row.at).join(", ")}`) : null,
  ];
};

const familiesView = ({ path, head, about, list, draw }) => parameters => {
  const all = list();
  const fields = [
    { name: "text", label: "Test or tag" },
    { name: "testbed", label: "Testbed", values: [...new Set(all.map(family => family.testbed))].sort(byWords) },
    { name: "quantity", label: "Quantity", values: [...new Set(all.map(family => family.quantity))].sort(byWords) },
  ];
  return [el("h2", {}, head), all.length ? listView(path, fields, parameters, state => {
    const chosen = all.filter(family => matches(family.words, state.text ?? "") && (!state.testbed || family.testbed === state.testbed) && (!state.quantity || family.quantity === state.quantity));
    const place = el("div");
    const more = el("button", { type: "button", onclick: () => show() });
    let shown = 0;
    const show = () => {
      place.append(...chosen.slice(shown, shown + 10).map(draw));
      shown = Math.min(shown + 10, chosen.length);
      more.hidden = shown >= chosen.length;
      more.textContent = `Show more: ${shown} of ${chosen.length} are shown`;
    };
    show();
    return [[place, more], `${chosen.length} of ${all.length}`];
  }) : el("p", {}, "No tests here differ only in this."), el("p", { class: "about" }, about)];
};

const familyHead = family => [el("h3", {}, `${family.name}, ${family.quantity}`), el("p", { class: "about" }, `testbed ${family.testbed}`), doubtsOfFamily(family)];
const hintOf = row => `${row.series.test.name}: ${inUnit(row.series.value, row.series.unit)}, ${day(row.series.last)}, ${row.series.build ?? "build not known"}`;
const pointsOf = (family, y = row => row.series.value) => family.rows.map(row => ({ x: row.at, y: y(row), hint: hintOf(row), href: address(`test/${row.series.test.id}`), kind: row.series.outcome === "measured" && !row.series.kinds.length ? "measured" : "doubtful" }));
const measuredColumns = [
  { head: "newest result", cell: row => link(`test/${row.series.test.id}`, day(row.series.last)), csv: row => minute(row.series.last) },
  { head: "build", cell: row => row.series.build ?? NOTHING, csv: row => row.series.build, className: "name" },
];

const scalingView = familiesView({
  path: "scaling",
  head: "Scaling over cores",
  about: "The newest values of tests whose names differ only in the number of cores (1c, 2c). The dashed line continues the throughput per core of the test with the fewest cores. Efficiency is the share of that line that was reached.",
  list: () => families(CORES, test => test.cores).filter(family => family.rows.every(row => !row.series.lowerIsBetter)),
  draw: family => {
    const [first] = family.rows;
    const ideal = row => first.series.value / first.at * row.at;
    const cores = [...new Set(family.rows.map(row => row.at))];
    return el("section", {}, familyHead(family), el("div", { class: "pair" },
      chart({ title: `${family.name} over cores`, unit: family.unit, fromZero: true, xWhole: cores, xLabel: "cores", series: [
        { name: "measured", line: true, points: pointsOf(family) },
        { name: `${first.at === 1 ? "one core" : `${first.at} cores`}, in proportion`, colour: "var(--faint)", dash: "5 4", line: true, plain: true, points: family.rows.map(row => ({ x: row.at, y: ideal(row) })) }] }),
      table({ name: `${family.name} over cores`, rows: family.rows, columns: [
        { head: "cores", cell: row => String(row.at), csv: row => row.at, className: "number" },
        { head: "value", cell: row => valueCell(row.series), csv: row => row.series.value, className: "number quote" },
        { head: "per core", cell: row => inUnit(row.series.value / row.at, family.unit), csv: row => row.series.value / row.at, className: "number" },
        { head: "efficiency", cell: row => ideal(row) ? `${(100 * row.series.value / ideal(row)).toFixed(1)} %` : NOTHING, csv: row => ideal(row) ? row.series.value / ideal(row) : null, className: "number" },
        ...measuredColumns] })));
  },
});

const sizesView = familiesView({
  path: "sizes",
  head: "Frame sizes",
  about: "The newest values of tests whose names differ only in the frame size. Bandwidth is on the wire (layer 1) at the generator. A mix is shown at its average size.",
  list: () => families(SIZE, test => test.frame).filter(family => family.unit === "fps"),
  draw: family => {
    const wire = row => bandwidth(row.series.value, family.unit, row.at);
    return el("section", {}, familyHead(family), el("div", { class: "pair" },
      chart({ title: `${family.name}: rate per interface over frame size`, unit: "fps", fromZero: true, xLabel: "frame size, bytes", series: [{ name: "rate", line: true, points: pointsOf(family) }] }),
      chart({ title: `${family.name}: bandwidth per interface over frame size`, unit: "bit/s", fromZero: true, xLabel: "frame size, bytes", series: [{ name: "bandwidth", colour: colourOf(1), line: true, points: pointsOf(family, wire) }] })),
    table({ name: `${family.name} over frame sizes`, rows: family.rows, columns: [
      { head: "frame size", cell: row => `${Number(row.at.toPrecision(6))} B${/imix/i.test(row.series.test.size) ? " (mix)" : ""}`, csv: row => row.at, className: "number" },
      { head: "rate", cell: row => valueCell(row.series), csv: row => row.series.value, className: "number quote" },
      { head: "bandwidth, per interface", cell: row => inUnit(wire(row), "bit/s"), csv: wire, className: "number" },
      ...measuredColumns] }));
  },
});

const latencyView = async parameters => {
  const { rows } = await lossratio.load("latency");
  const all = rows.map(([place, time, latencies]) => ({ test: site.tests[place], time, latencies }));
  if (!all.length) return [el("h2", {}, "Throughput and latency"), el("p", {}, "No test of this history has latency. Tests measure it with ",
    el("code", {}, "--variable LATENCY:on"), ".")];
  const loads = [...new Set(all.flatMap(row => row.latencies.map(([load]) => load)))].sort(byWords);
  const fields = [
    { name: "text", label: "Test, tag or build" },
    { name: "testbed", label: "Testbed", values: [...new Set(all.map(row => row.test.testbed))].sort(byWords) },
    { name: "load", label: "Latency at", values: loads, all: null },
  ];
  return [el("h2", {}, "Throughput and latency"), listView("latency", fields, parameters, state => {
    const load = state.load || loads[0];
    const chosen = all.filter(row => matches(row.test.words, state.text ?? "") && (!state.testbed || row.test.testbed === state.testbed)).map(row => {
      const here = row.latencies.filter(([at]) => at === load);
      const worst = place => { const known = here.map(one => one[place]).filter(value => value !== null); return known.length ? Math.max(...known) : null; };
      const rate = row.test.series.find(series => series.quantity === "PDR") ?? row.test.series.find(series => series.value !== null);
      return { ...row, rate, latencies: [2, 3, 4, 5].map(worst) };
    });
    const microseconds = value => value === null ? NOTHING : value >= 10000 ? `${Number((value / 1000).toPrecision(3))} ms` : `${Number(value.toPrecision(3))} µs`;
    const drawn = chosen.filter(row => row.rate && row.rate.value !== null && row.rate.unit === "fps" && row.latencies[0] !== null);
    const points = place => drawn.filter(row => row.latencies[place] !== null).map(row => ({ x: row.rate.value / 1e6, y: row.latencies[place], hint: `${row.test.name}, ${row.test.testbed}: ${inUnit(row.rate.value, "fps")}, ${microseconds(row.latencies[place])}`, href: address(`test/${row.test.id}`) }));
    return [[
      chart({ title: `Latency at ${load} over throughput`, unit: "µs", xLabel: "throughput per interface, Mfps", fromZero: true, series: [{ name: "median", points: points(0) }, { name: "99 %", points: points(2) }] }),
      table({ name: `throughput and latency at ${load}`, rows: chosen, columns: [
        { head: "test", cell: row => link(`test/${row.test.id}`, row.test.name), key: row => row.test.name, csv: row => row.test.name, className: "name" },
        { head: "testbed", cell: row => row.test.testbed, key: row => row.test.testbed, csv: row => row.test.testbed },
        { head: "throughput", cell: row => row.rate ? [valueCell(row.rate), el("span", { class: "small" }, ` ${row.rate.quantity}`)] : NOTHING, key: row => row.rate?.value, csv: row => row.rate?.value, className: "number quote" },
        { head: "layer 1, per interface", cell: row => row.rate ? inUnit(bandwidth(row.rate.value, row.rate.unit, row.test.frame), "bit/s") : NOTHING, key: row => row.rate ? bandwidth(row.rate.value, row.rate.unit, row.test.frame) : null, className: "number" },
        ...["median", "90 %", "99 %", "largest"].map((head, place) => ({ head, csvHead: `${head}, µs`, cell: row => microseconds(row.latencies[place]), key: row => row.latencies[place], csv: row => row.latencies[place], className: "number" })),
        { head: "measured", cell: row => day(row.time), key: row => row.time, csv: row => minute(row.time) }] }),
    ], `${plural(chosen.length, "test")} of ${all.length}`];
  }), el("p", { class: "about" }, "The one-way latency of the worse direction, beside the newest PDR, or, without a PDR, the test's first value.")];
};

const MOST_RUNS = 100;

const sideRows = async (testbed, what, jobs) => {
  const [kind, ...rest] = what.split(" ");
  const name = rest.join(" ");
  if (kind === "newest") {
    const [, slice] = site.testbeds.find(([one]) => one === testbed) ?? [];
    return slice ? { rows: rowsOf(await lossratio.load(`newest-${slice}`), testbed), words: `the newest ${site.rules.newest} results of each series` } : { rows: [], words: "" };
  }
  const wanted = jobs.filter(job => job.testbed === testbed && (kind === "run" ? job.id === name : job.builds.some(build => (build ?? "") === name)));
  const slices = await Promise.all(wanted.slice(0, MOST_RUNS).map(job => lossratio.load(`job-${job.id}`)));
  const rows = slices.flatMap(slice => rowsOf(slice, testbed)).filter(row => kind === "run" || (row.build ?? "") === name).sort((a, b) => a.time - b.time);
  const left = wanted.length > MOST_RUNS ? `; of ${wanted.length} runs the newest ${MOST_RUNS}` : "";
  return { rows, words: `${plural(Math.min(wanted.length, MOST_RUNS), "run")}${left}` };
};

const sample = (values, unit) => {
  if (!values.length) return "none";
  const spread = values.length > 1 && mean(values) ? ` ± ${(100 * deviation(values) / mean(values)).toFixed(2)} %` : "";
  return `${inUnit(mean(values), unit)}${spread} (n=${values.length})`;
};

const compareView = async parameters => {
  const jobs = await readJobs();
  const options = testbed => {
    const own = jobs.filter(job => job.testbed === testbed);
    const builds = [...new Set(own.flatMap(job => job.builds.map(build => build ?? "")))];
    return [[`newest`, `newest ${site.rules.newest} results`], ...builds.map(build => [`build ${build}`, `build: ${build || "not known"}`]), ...own.slice(0, 1000).map(job => [`run ${job.id}`, `run: ${jobName(job.name, job.started)}, ${minute(job.started)}`])];
  };
  const testbeds = site.testbedNames;
  const given = { a: testbeds[0], b: parameters.a ?? testbeds.at(-1), ...parameters };
  const place = el("div");
  const controls = el("div");
  const update = async state => {
    // The choices of a side depend on its testbed. The keyboard focus stays where it was.
    const focused = controls.contains(document.activeElement) ? document.activeElement.name : null;
    controls.replaceChildren(build(state).form);
    if (focused) controls.querySelector("form").elements[focused].focus();
    const now = controlsState();
    history.replaceState(null, "", address("compare", now));
    place.replaceChildren(el("p", { class: "about" }, "Loading …"));
    const token = update.last = {};
    try {
      const [one, other] = await Promise.all([sideRows(now.a, now.aWhat, jobs), sideRows(now.b, now.bWhat, jobs)]);
      if (token === update.last) place.replaceChildren(...comparison(now, one, other));
    } catch (error) {
      place.replaceChildren(el("p", { class: "missing" }, error.message));
    }
  };
  let controlsState = () => given;
  const build = state => {
    const made = filters([
      { name: "a", label: "A: testbed", values: testbeds, all: null }, { name: "aWhat", label: "A: what", values: options(state.a), all: null },
      { name: "b", label: "B: testbed", values: testbeds, all: null }, { name: "bWhat", label: "B: what", values: options(state.b), all: null },
      { name: "text", label: "Test" }, { name: "odd", label: "Only changed", type: "checkbox" },
    ], state, now => {
      const sides = ["a", "aWhat", "b", "bWhat"];
      if (sides.some(name => now[name] !== controlsState.last[name])) { update(now); return; }
      history.replaceState(null, "", address("compare", now));
      controlsState.last = now;
      show(now);
    });
    const own = () => made.state();
    own.last = own();
    controlsState = own;
    return made;
  };
  let show = () => {};
  const comparison = (state, one, other) => {
    const isSame = state.a === state.b;
    const compared = compareSides(one.rows, other.rows, site.rules);
    const words = verdict => isSame ? verdict : { regression: "B is worse", progression: "B is better", "seems worse": "B seems worse", "seems better": "B seems better" }[verdict] ?? verdict;
    const changed = ["regression", "seems worse", "progression", "seems better"];
    const order = [...changed, "no change", "too few results", "not comparable"];
    compared.sort((a, b) => order.indexOf(a.verdict) - order.indexOf(b.verdict) || byWords(a.test, b.test));
    const counts = order.map(verdict => [verdict, compared.filter(row => row.verdict === verdict).length]).filter(([, count]) => count);
    const list = el("div");
    show = state => list.replaceChildren(table({ name: "comparison", rows: compared.filter(row => matches(`${row.test} ${row.quantity}`.toLowerCase(), state.text) && (!state.odd || changed.includes(row.verdict))), columns: [
      { head: "test", cell: row => link(`test/${row.id}`, row.test), key: row => row.test, csv: row => row.test, className: "name" },
      { head: "change", cell: row => percent(row.difference?.change), key: row => row.difference?.change, csv: row => row.difference?.change, className: "number quote" },
      { head: "verdict", cell: row => [el("span", { class: row.verdict === "regression" ? "alarm" : null }, words(row.verdict)), row.note ? `: ${row.note}` : ""], key: row => order.indexOf(row.verdict), csv: row => `${words(row.verdict)}${row.note ? `: ${row.note}` : ""}`, className: "name" },
      { head: "quantity", cell: row => row.quantity, key: row => row.quantity, csv: row => row.quantity },
      { head: "A", cell: row => sample(row.a, row.unit), key: row => row.a.length ? mean(row.a) : null, csv: row => row.a.length ? mean(row.a) : null, className: "number" },
      { head: "B", cell: row => sample(row.b, row.unit), key: row => row.b.length ? mean(row.b) : null, csv: row => row.b.length ? mean(row.b) : null, className: "number" },
      { head: "unit", csv: row => row.unit },
      { head: "95 % interval", cell: row => row.difference?.interval ? range(...row.difference.interval.map(end => percent(end))) : row.difference?.test && mean(row.a) ? "none: the values do not vary" : NOTHING, csv: row => row.difference?.interval?.join(" to "), className: "number" },
      { head: "p", cell: row => row.p === null ? NOTHING : row.difference.test === "no spread" ? "not known (no spread)" : `${Number(row.p.toPrecision(2))} (${row.difference.test})`, key: row => row.p, csv: row => row.p, className: "number" },
    ] }));
    show(state);
    return [
      el("p", {}, `A: ${one.words}. B: ${other.words}. `, el("strong", {}, counts.map(([verdict, count]) => `${count} ${words(verdict)}`).join(", ") || "nothing to compare"), ". Rates are per interface; p is adjusted for the number of comparisons."),
      isSame ? null : el("p", { class: "doubt" }, "These are two testbeds. Even identical testbeds differ, so a difference here is not a regression of a build."),
      counts.length && counts.every(([verdict]) => ["too few results", "not comparable"].includes(verdict)) ? el("p", { class: "doubt" }, "No verdict: each side needs at least two results, or one side three if the other has one.") : null,
      counts.some(([verdict]) => verdict.startsWith("seems")) ? el("p", { class: "doubt" }, "Where B only seems worse or better, all values on each side are equal, so nothing shows how much they vary by chance: repeat the runs to be sure.") : null,
      list,
    ].filter(Boolean);
  };
  await update(given);
  return [el("h2", {}, "Compare"), controls, place, el("p", { class: "about" },
    `The verdicts are those of lossratio compare. With five or more results on both sides, it compares ranks (Mann-Whitney); with fewer, it compares means (Welch, Student). A change counts if p is below ${site.rules.significance} and the change is at least ${100 * site.rules.leastChange} %. Results of other traffic, or of another path or goal, are not compared.`)];
};
