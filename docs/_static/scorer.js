/*
 * Pages for users come before decisions, and both before entries of the changelog, however often these have the words.
 * Sphinx declares its own Scorer by "var" where there is none, so this one must not be a constant.
 */
const LATER = [["changelog", 1000], ["decisions", 500]];
var Scorer = {
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
