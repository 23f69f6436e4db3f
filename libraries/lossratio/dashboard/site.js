// The page: which view an address names, and what goes wrong.

const VIEWS = { "": trendsView, test: testView, overlay: overlayView, coverage: coverageView, compare: compareView, latency: latencyView, scaling: scalingView, sizes: sizesView, runs: runsView, run: runView };
const NAVIGATION = [["", "Trends"], ["coverage", "Coverage"], ["compare", "Compare"], ["latency", "Latency"], ["scaling", "Scaling"], ["sizes", "Frame sizes"], ["runs", "Runs"]];

const notThere = what => [el("p", { class: "missing" }, `There is no such ${what} here. The address may be of another site, or of results that were removed.`), el("p", {}, link("", "All trends"))];

const readAddress = () => {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [view, ...rest] = path.split("/");
  const parameters = Object.fromEntries(query.split("&").filter(Boolean).map(pair => {
    const [key, ...value] = pair.split("=");
    try { return [key, decodeURIComponent(value.join("="))]; } catch { return [key, value.join("=")]; }
  }));
  return { view, id: rest.join("/"), parameters };
};

const main = document.querySelector("main");
const showView = async () => {
  const { view, id, parameters } = readAddress();
  const token = showView.last = {};
  delete document.documentElement.dataset.ready;
  for (const item of document.querySelectorAll("nav a")) {
    const own = item.getAttribute("href").slice(2);
    if (own === view || (own === "" && ["test", "overlay"].includes(view)) || (own === "runs" && view === "run")) item.setAttribute("aria-current", "page"); else item.removeAttribute("aria-current");
  }
  let content;
  try {
    content = Object.hasOwn(VIEWS, view) ? await VIEWS[view](parameters, id) : notThere("view");
  } catch (error) {
    content = el("p", { class: "missing", role: "alert" }, error.message);
  }
  if (token !== showView.last) return;
  main.replaceChildren(...[content].flat(Infinity).filter(Boolean));
  document.title = `${main.querySelector("h2")?.textContent ?? "Trends"}: ${site.title}`;
  document.documentElement.dataset.ready = "";
};

const begin = async () => {
  try {
    openSite(await lossratio.load("index"));
  } catch (error) {
    main.replaceChildren(el("p", { class: "missing", role: "alert" }, error.message));
    document.documentElement.dataset.ready = "";
    return;
  }
  document.querySelector("#headline").textContent = `${plural(site.results, "result")} in ${site.series.length.toLocaleString("en")} series of ${plural(site.tests.length, "test")} on ${plural(site.testbeds.length, "testbed")}, newest ${minute(site.newest)} UTC · made ${site.made} by lossratio ${site.version}`;
  document.querySelector("nav").append(...NAVIGATION.map(([path, words]) => link(path, words)));
  if (site.problems.length) {
    document.querySelector("#problems").append(el("div", { class: "missing" }, el("strong", {}, `${plural(site.problems.length, "file")} of the history could not be read.`),
      el("ul", {}, site.problems.slice(0, 10).map(problem => el("li", {}, problem)), site.problems.length > 10 ? el("li", {}, `and ${site.problems.length - 10} more`) : null)));
  }
  addEventListener("hashchange", async () => { await showView(); scrollTo(0, 0); main.focus({ preventScroll: true }); });
  await showView();
};
begin();
