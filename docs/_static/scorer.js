/* Pages for users come before decisions, and both before entries of the changelog, however often these have the words. */
const LATER = [["changelog", 1000], ["decisions/", 500]];
const Scorer = {
  score: ([page, , , , score]) => {
    const [, later] = LATER.find(([begin]) => page.startsWith(begin)) ?? ["", 0];
    return score - later;
  },
  // The rest is Sphinx's own.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
