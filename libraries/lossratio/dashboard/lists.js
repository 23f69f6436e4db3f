// Views of many tests: trends, coverage, runs.

const trendFields = () => [
  { name: "text", label: "Test, tag or build" },
  { name: "testbed", label: "Testbed", values: site.testbedNames },
  { name: "quantity", label: "Quantity", values: site.quantities },
  { name: "size", label: "Frame size", values: site.sizes },
  { name: "cores", label: "Cores", values: site.cores },
  { name: "verdict", label: "Verdict", values: site.verdicts },
  { name: "odd", label: "Only changed, doubtful or old", type: "checkbox" },
].filter(field => !field.values || field.values.length > 1);

const chosenSeries = state => site.series.filter(series => matches(series.test.words, state.text ?? "")
  && (!state.testbed || series.test.testbed === state.testbed)
  && (!state.quantity || series.quantity === state.quantity)
  && (!state.size || series.test.size === state.size)
  && (!state.cores || String(series.test.cores) === state.cores)
  && (!state.verdict || series.verdict === state.verdict)
  && (!state.odd || series.text));

const nameColumn = { head: "test", cell: series => link(`test/${series.test.id}`, series.test.name), key: series => series.test.name, csv: series => series.test.name, className: "name" };
const testbedColumn = { head: "testbed", cell: series => series.test.testbed, key: series => series.test.testbed, csv: series => series.test.testbed, className: "name" };

/** A list that follows its filters, and keeps them in the address. */
const listView = (path, fields, parameters, show) => {
  const place = el("div");
  const shown = el("output", { "aria-live": "polite" });
  const update = state => {
    history.replaceState(null, "", address(path, state));
    const [content, words] = show(state);
    place.replaceChildren(...[content].flat());
    shown.textContent = words;
  };
  const { form, state } = filters(fields, parameters, update);
  form.append(shown);
  update({ ...parameters, ...state() });
  return [form, place];
};

const trendsView = parameters => {
  const picked = new Set();
  const overlay = el("button", { type: "button", disabled: true, onclick: () => { location.hash = address("overlay", { series: [...picked].join("~") }); } }, "Draw the selected ones together");
  const select = series => {
    const name = `${series.test.id}.${series.quantity}`;
    const box = el("input", { type: "checkbox", "aria-label": `Select ${series.test.name}, ${series.quantity}, ${series.test.testbed}`, onchange: event => {
      if (event.target.checked) picked.add(name); else picked.delete(name);
      overlay.disabled = picked.size < 2;
    } });
    box.checked = picked.has(name);
    return box;
  };
  const columns = [
    nameColumn,
    { head: "newest", cell: valueCell, key: series => series.value, csv: series => series.value, className: "number quote" },
    { head: "verdict", cell: verdictCell, key: series => site.verdicts.indexOf(series.verdict), csv: series => series.verdict, className: "name" },
    { head: "unit", csv: series => series.unit },
    { head: "last change", cell: series => percent(series.change), key: series => series.change, csv: series => series.change, className: "number" },
    { head: "since", cell: series => series.since === null ? NOTHING : day(series.since), key: series => series.since, csv: series => series.since === null ? "" : minute(series.since), className: "date" },
    { head: "trend", cell: series => spark(series.spark), className: "spark" },
    { head: "quantity", cell: series => series.quantity, key: series => series.quantity, csv: series => series.quantity },
    testbedColumn,
    { head: "newest result", cell: series => day(series.last), className: "date", key: series => series.last, csv: series => minute(series.last) },
    { head: "results", cell: series => String(series.count), key: series => series.count, csv: series => series.count, className: "number" },
    { head: "build", cell: series => series.build ?? NOTHING, key: series => series.build, csv: series => series.build, className: "name" },
    { head: "pick", cell: select },
  ];
  const counts = site.verdicts.map(verdict => [verdict, site.series.filter(series => series.verdict === verdict).length]).filter(([, count]) => count);
  const cards = el("div", { class: "cards counts" }, counts.map(([verdict, count]) => el("div", { class: "card" },
    el("p", { class: "quote" }, link("", el("span", { class: ALARMS.includes(verdict) ? "alarm" : null }, count.toLocaleString("en")), { verdict })),
    el("p", {}, verdict))));
  const list = listView("", trendFields(), parameters, state => {
    const rows = chosenSeries(state).sort((a, b) => site.verdicts.indexOf(a.verdict) - site.verdicts.indexOf(b.verdict) || byWords(a.test.name, b.test.name));
    return [table({ name: "trends", columns, rows }), `${rows.length.toLocaleString("en")} of ${plural(site.series.length, "series").replace("seriess", "series")}`];
  });
  const { rules } = site;
  return [cards, el("h2", {}, "Trends"), list, el("p", {}, overlay), el("p", { class: "about" },
    `The verdicts are those of lossratio trend. It looks at the newest ${rules.last} results of a series. A change is fresh if it began among the newest ${rules.fresh}, counts from ${100 * rules.trendChange} %, `
    + `and is an alarm when ${rules.confirm} of the newest 3 are worse. Rates are per interface, with the aggregate of all interfaces beside it.`)];
};

const AGES = [[2, "fresh"], [8, "week"], [32, "month"], [Infinity, "stale"]];

const coverageView = parameters => {
  const fields = [
    { name: "text", label: "Test, tag or build" },
    { name: "quantity", label: "Quantity", values: site.quantities },
    { name: "size", label: "Frame size", values: site.sizes },
    { name: "cores", label: "Cores", values: site.cores },
    { name: "missing", label: "Only missing or stale somewhere", type: "checkbox" },
  ].filter(field => !field.values || field.values.length > 1);
  const testbeds = site.testbedNames;
  const newest = new Map(testbeds.map(testbed => [testbed, 0]));
  for (const series of site.series) newest.set(series.test.testbed, Math.max(newest.get(series.test.testbed), series.last));
  const cards = el("div", { class: "cards" }, testbeds.map(testbed => {
    const here = site.series.filter(series => series.test.testbed === testbed);
    return el("div", { class: "card" }, el("p", {}, link("", testbed, { testbed })), el("p", { class: "quote" }, plural(new Set(here.map(series => series.test.id)).size, "test")),
      el("p", { class: "small" }, `newest result ${day(newest.get(testbed))}; ${here.filter(series => series.isOld).length} of ${here.length} series not measured for a week or more before it`));
  }));
  const age = series => Math.max(0, Math.floor((site.newest - series.last) / DAY));
  const columns = [
    { head: "test", cell: row => row.name, key: row => row.name, csv: row => row.name, className: "name" },
    { head: "quantity", cell: row => row.quantity, key: row => row.quantity, csv: row => row.quantity },
    ...testbeds.map(testbed => ({
      head: testbed,
      cell: row => {
        const series = row.cells.get(testbed);
        if (!series) return el("span", { class: "small" }, "not measured");
        const kind = AGES.find(([days]) => age(series) < days)[1];
        return el("span", { class: `age ${kind}` }, link(`test/${series.test.id}`, `${age(series)} d`), el("span", { class: "small" }, ` ${day(series.last)}, ${series.count} ×`),
          series.outcome === "measured" ? null : el("span", { class: outcomeClass(series.outcome) }, ` ${series.outcome}`));
      },
      key: row => row.cells.get(testbed)?.last ?? null,
      csv: row => row.cells.has(testbed) ? minute(row.cells.get(testbed).last) : "",
    })),
  ];
  return [el("h2", {}, "Coverage"), cards, listView("coverage", fields, parameters, state => {
    const rows = new Map();
    for (const series of chosenSeries({ ...state, verdict: "", odd: "" })) {
      const key = JSON.stringify([series.test.name, series.quantity]);
      if (!rows.has(key)) rows.set(key, { name: series.test.name, quantity: series.quantity, cells: new Map() });
      rows.get(key).cells.set(series.test.testbed, series);
    }
    const chosen = [...rows.values()].filter(row => !state.missing || testbeds.some(testbed => !row.cells.has(testbed) || age(row.cells.get(testbed)) >= 8));
    const cells = chosen.reduce((sum, row) => sum + row.cells.size, 0);
    const share = chosen.length ? Math.floor(100 * cells / (chosen.length * testbeds.length)) : 0;
    return [table({ name: "coverage", columns, rows: chosen }), `${plural(chosen.length, "row")}, ${share} % of their cells measured`];
  }), el("p", { class: "about" }, `Ages are days before the newest result of the site, ${day(site.newest)}; × is the number of results.`)];
};

const jobName = (name, started) => name ?? `results of ${day(started)}, run not known`;

const readJobs = async () => {
  const { builds, rows } = await lossratio.load("jobs");
  return rows.map(([id, testbed, name, started, ended, results, failed, irregular, doubtful, made, page]) => ({
    id, testbed, name, started, ended, results, failed, irregular, doubtful, page, builds: made.map(place => builds[place]),
    words: `${name ?? ""} ${testbed} ${day(started)} ${made.map(place => builds[place] ?? "").join(" ")}`.toLowerCase(),
  }));
};

const jobColumns = [
  { head: "run", cell: job => link(`run/${job.id}`, jobName(job.name, job.started)), key: job => job.name, csv: job => job.name, className: "name" },
  { head: "testbed", cell: job => job.testbed, key: job => job.testbed, csv: job => job.testbed, className: "name" },
  { head: "began, UTC", cell: job => minute(job.started), className: "date", key: job => job.started, csv: job => minute(job.started) },
  { head: "took", cell: job => job.name === null ? NOTHING : hours(job.ended - job.started), key: job => job.ended - job.started, csv: job => job.ended - job.started, csvHead: "seconds", className: "number" },
  { head: "results", cell: job => String(job.results), key: job => job.results, csv: job => job.results, className: "number" },
  { head: "failed", cell: job => job.failed ? el("span", { class: "failed" }, String(job.failed)) : "0", key: job => job.failed, csv: job => job.failed, className: "number" },
  { head: "irregular", cell: job => String(job.irregular), key: job => job.irregular, csv: job => job.irregular, className: "number" },
  { head: "doubtful", cell: job => String(job.doubtful), key: job => job.doubtful, csv: job => job.doubtful, className: "number" },
  { head: "builds", cell: job => job.builds.filter(Boolean).join("; ") || NOTHING, key: job => job.builds.join(), csv: job => job.builds.filter(Boolean).join("; "), className: "name" },
  { head: "page", cell: job => job.page ? el("a", { href: job.page }, job.page.endsWith(".tar.gz") ? "archive" : "report") : NOTHING, csv: job => job.page ?? "" },
];

const runsView = async parameters => {
  const jobs = await readJobs();
  const fields = [{ name: "text", label: "Run, date or build" }, { name: "testbed", label: "Testbed", values: site.testbedNames }, { name: "odd", label: "Only with failures", type: "checkbox" }];
  const of = testbed => jobs.filter(job => job.name !== null && (!testbed || job.testbed === testbed));
  return [el("h2", {}, "Runs"), listView("runs", fields.filter(field => !field.values || field.values.length > 1), parameters, state => {
    const rows = jobs.filter(job => matches(job.words, state.text ?? "") && (!state.testbed || job.testbed === state.testbed) && (!state.odd || job.failed));
    const points = (value, jobs) => jobs.map(job => ({ x: job.started, y: value(job), hint: `${jobName(job.name, job.started)}, ${job.testbed}, ${minute(job.started)}: ${value(job)}`, href: address(`run/${job.id}`) }));
    const known = rows.filter(job => job.name !== null);
    const charts = known.length > 1 ? el("div", { class: "pair" },
      chart({ title: "Results of each run", unit: "results", xDates: true, height: 180, fromZero: true, series: [{ name: "results", points: points(job => job.results, known) }, { name: "failed", colour: "var(--worst)", points: points(job => job.failed, known.filter(job => job.failed)) }] }),
      chart({ title: "Hours of each run", unit: "hours", xDates: true, height: 180, fromZero: true, series: [{ name: "hours", points: points(job => Number(((job.ended - job.started) / 3600).toFixed(2)), known) }] })) : null;
    return [[charts, table({ name: "runs", columns: jobColumns, rows })].filter(Boolean), `${rows.length.toLocaleString("en")} of ${plural(jobs.length, "run")}`];
  }), of().length ? null : el("p", { class: "about" }, "The results of this history belong to no run. So they are shown by day.")];
};
