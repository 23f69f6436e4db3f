// Whether two sides differ, and by how much: lossratio.report's difference and comparison, for any two sides of a site.
// A test compares every number and every verdict with Python's.

const RANK_TEST_LEAST = 5;
const ONE_SIDED_LEAST = 3;
const ROUNDING = 1e-9;
const TINY = 1e-300;

const logGamma = x => {
  let product = 1;
  let at = x;
  while (at < 15) { product *= at; at += 1; }
  const inverse = 1 / (at * at);
  const series = (1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse * (1 / 1680 - inverse / 1188)))) / at;
  return (at - 0.5) * Math.log(at) - at + 0.5 * Math.log(2 * Math.PI) + series - Math.log(product);
};

// A continued fraction by Lentz's method: the terms (a, b) from the second on.
const fraction = (first, terms) => {
  let result = first || TINY;
  let upper = result;
  let lower = 0;
  for (let step = 1; step < 10000; step += 1) {
    const [a, b] = terms(step);
    lower = 1 / ((b + a * lower) || TINY);
    upper = (b + a / upper) || TINY;
    result *= upper * lower;
    if (Math.abs(upper * lower - 1) < 1e-15) break;
  }
  return result;
};

// The regularised incomplete beta function.
const incompleteBeta = (a, b, x) => {
  if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x));
  const side = (a, b, x) => front / a / fraction(1, step => {
    const m = Math.floor(step / 2);
    return [step % 2 ? -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)) : m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), 1];
  });
  return x < (a + 1) / (a + b + 2) ? side(a, b, x) : 1 - side(b, a, 1 - x);
};

// Two-sided tail of Student's t. Both tails together are exact even where one tail is too small to subtract from 1.
const tTails = (t, freedom) => {
  if (!Number.isFinite(t)) return 0;
  return incompleteBeta(freedom / 2, 0.5, freedom / (freedom + t * t));
};

const tQuantile = (tails, freedom) => {
  let [low, high] = [0, 1];
  while (tTails(high, freedom) > tails) high *= 2;
  for (let step = 0; step < 200 && high - low > 1e-15 * high; step += 1) {
    const middle = (low + high) / 2;
    if (tTails(middle, freedom) > tails) low = middle; else high = middle;
  }
  return (low + high) / 2;
};

// Both tails of the normal distribution beyond z >= 0: the upper incomplete gamma function of 1/2 and z * z / 2.
const normalTails = z => {
  const x = z * z / 2;
  const front = Math.exp(-x + 0.5 * Math.log(x) - logGamma(0.5));
  if (x < 1.5) {
    let term = 2;
    let sum = 2;
    for (let n = 1; n < 500 && term > 1e-17 * sum; n += 1) { term *= x / (0.5 + n); sum += term; }
    return x === 0 ? 1 : 1 - sum * front;
  }
  return front / fraction(x + 0.5, step => [-step * (step - 0.5), x + 0.5 + 2 * step]);
};

const mean = values => values.reduce((sum, value) => sum + value, 0) / values.length;
const variance = values => { const middle = mean(values); return values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (values.length - 1); };
const deviation = values => values.length > 1 ? Math.sqrt(variance(values)) : null;

// For each rank sum, how many of the possible orders of m and n values have it.
const knownSums = new Map();
const rankSums = (m, n) => {
  const key = `${m} ${n}`;
  if (!knownSums.has(key)) {
    let ways = Array.from({ length: m + 1 }, () => new Float64Array(m * n + 1));
    ways[0][0] = 1;
    for (let size = 1; size <= m + n; size += 1) {
      const next = ways.map(row => row.slice());
      for (let taken = 1; taken <= Math.min(m, size); taken += 1) {
        const shift = size - taken;
        for (let sum = shift; sum <= m * n; sum += 1) next[taken][sum] += ways[taken - 1][sum - shift];
      }
      ways = next;
    }
    knownSums.set(key, ways[m]);
  }
  return knownSums.get(key);
};

const mannWhitney = (before, after) => {
  const [m, n] = [before.length, after.length];
  const all = [...before.map(value => [value, true]), ...after.map(value => [value, false])].sort((a, b) => a[0] - b[0]);
  let ranks = 0;
  let tied = 0;
  for (let start = 0, end = 0; start < all.length; start = end) {
    while (end < all.length && all[end][0] === all[start][0]) end += 1;
    const size = end - start;
    tied += size ** 3 - size;
    for (let place = start; place < end; place += 1) ranks += all[place][1] ? (start + end + 1) / 2 : 0;
  }
  const first = ranks - m * (m + 1) / 2;
  const most = Math.max(first, m * n - first);
  if (tied === 0 && Math.min(m, n) <= 8) {
    const counts = rankSums(m, n);
    const total = counts.reduce((sum, count) => sum + count, 0);
    return Math.min(1, 2 * counts.slice(most).reduce((sum, count) => sum + count, 0) / total);
  }
  const spread = Math.sqrt(m * n / 12 * (m + n + 1 - tied / ((m + n) * (m + n - 1))));
  const z = (most - m * n / 2 - 0.5) / spread;
  return !(z > 0) ? 1 : normalTails(z);
};

const hasSpread = (...samples) => samples.some(values => (deviation(values) ?? 0) > ROUNDING * Math.abs(mean(values)));

// Standard error of the difference of means, and degrees of freedom.
const standardError = (one, other, equal) => {
  const [m, n] = [one.length, other.length];
  if (equal) {
    const freedom = m + n - 2;
    const pooled = ((m > 1 ? (m - 1) * variance(one) : 0) + (n > 1 ? (n - 1) * variance(other) : 0)) / freedom;
    return [Math.sqrt(pooled * (1 / m + 1 / n)), freedom];
  }
  const [a, b] = [variance(one) / m, variance(other) / n];
  return [Math.sqrt(a + b), (a + b) ** 2 / (a ** 2 / (m - 1) + b ** 2 / (n - 1))];
};

const relative = (change, before) => before === 0 ? (change === 0 ? 0 : Math.sign(change) * Infinity) : change / Math.abs(before);

/** The difference of two samples: change, interval, test, p; as lossratio.report.difference.difference. */
const difference = (before, after) => {
  const [a, b] = [mean(before), mean(after)];
  const change = relative(b - a, a);
  const [least, most] = [Math.min(before.length, after.length), Math.max(before.length, after.length)];
  if (least < 2 && most < ONE_SIDED_LEAST) return { change, interval: null, test: null, p: null };
  const spread = hasSpread(before, after);
  const [error, freedom] = standardError(before, after, least < 2);
  const tTest = () => spread ? tTails((b - a) / error, freedom) : a === b ? 1 : 0;
  const [test, p] = least >= RANK_TEST_LEAST ? ["Mann-Whitney", mannWhitney(before, after)] : [!spread ? "no spread" : least >= 2 ? "Welch" : "Student", tTest()];
  return {
    change,
    test,
    p,
    // Computed only for the rows that are shown: a table shows a hundred quantities, even if there are thousands.
    get interval() {
      if (a === 0 || !spread) return null;
      const half = tQuantile(0.05, freedom) * error;
      // No value falls by more than all of it.
      return [b - a - half, b - a + half].map(end => Math.max(-1, end / Math.abs(a)));
    },
  };
};

/** Benjamini and Hochberg's adjusted probabilities. */
const adjusted = probabilities => {
  const order = probabilities.map((p, place) => [p, place]).sort((a, b) => b[0] - a[0]);
  const result = new Array(probabilities.length);
  let least = 1;
  order.forEach(([p, place], rank) => {
    least = Math.min(least, p * probabilities.length / (probabilities.length - rank));
    result[place] = least;
  });
  return result;
};

/**
 * Compares two sides, quantity by quantity, as lossratio.report.comparison.compare.
 * A row of a side: {test, quantity, unit, lowerIsBetter, outcome, reason, value, measuredAs, generator, device, time, unsent, most, resolution}.
 */
const compareSides = (before, after, { leastChange, significance, stopped }) => {
  const name = row => `${row.test}\n${row.quantity}`;
  const onDevice = row => `${name(row)}\n${row.device}`;
  // If both sides measured a quantity on a device, these results are compared; all other results of the quantity stay together.
  const [hadDevices, hasDevices] = [new Set(before.map(onDevice)), new Set(after.map(onDevice))];
  const key = row => row.device !== null && hadDevices.has(onDevice(row)) && hasDevices.has(onDevice(row)) ? onDevice(row) : name(row);
  const same = row => `${row.time}\n${row.testbed}\n${row.test}\n${row.quantity}`;
  const newer = new Set(after.map(same));
  const isSame = before.map(row => newer.has(same(row)));
  const withOthers = new Set(before.filter((_, place) => !isSame[place]).map(row => row.test));
  const kept = before.filter((row, place) => !isSame[place] || !withOthers.has(row.test));
  const groups = new Map();
  for (const [side, rows] of [[0, kept], [1, after]]) {
    for (const row of rows) {
      if (!groups.has(key(row))) groups.set(key(row), [[], []]);
      groups.get(key(row))[side].push(row);
    }
  }
  const compared = [...groups.values()].map(([one, other]) => comparedQuantity(one, other, stopped));
  const plain = withAdjusted(compared.map(row => row.difference));
  const most = withAdjusted(compared.map(row => row.difference && atMost(row.ends, row.difference)));
  compared.forEach((row, place) => {
    if (plain[place]) judge(row, plain[place], most[place], leastNews(leastChange, row.resolution), significance);
  });
  return compared;
};

const comparedQuantity = (before, after, errors) => {
  const last = (after.length ? after : before).at(-1);
  const values = rows => rows.map(row => row.value).filter(value => value !== null);
  const [a, b] = [values(before), values(after)];
  const ends = { sides: [endsOf(before), endsOf(after)], lowerIsBetter: last.lowerIsBetter };
  const resolution = [...after, ...before][0].resolution;
  const base = { ends, resolution, test: last.test, quantity: last.quantity, unit: last.unit, lowerIsBetter: last.lowerIsBetter, id: last.id, a, b, difference: null, p: null, verdict: "not comparable", note: "" };
  const stopped = rows => rows.every(row => errors.includes(row.reason));
  if (!before.length || !after.length) return { ...base, note: before.length ? "not in B" : "not in A" };
  if (stopped(before) || stopped(after)) return { ...base, note: `${stopped(before) ? "A" : "B"} was interrupted` };
  const meanings = new Set([...before, ...after].map(row => row.measuredAs).filter(meaning => meaning !== null));
  if (meanings.size > 1) return { ...base, note: "the sides differ in traffic, path, load or goal" };
  const devices = new Set([...before, ...after].map(row => row.device).filter(device => device !== null));
  if (devices.size > 1) return { ...base, note: `the sides differ in device (${[...devices].join("; ")})` };
  const unknown = after.every(row => row.unsent) ? "not comparable" : "regression";
  if (after.every(row => row.outcome === "failed") && before.some(row => row.outcome !== "failed")) {
    return { ...base, verdict: unknown, note: `B has no value: ${after.at(-1).reason}` };
  }
  if (!a.length && !b.length && after[0].reason === null) return { ...base, note: "no single value: see the reports of the runs" };
  if (!a.length) return { ...base, note: `A has no value: ${before.at(-1).reason}` };
  if (!b.length) return { ...base, verdict: unknown, note: `B has no value: ${after.at(-1).reason}` };
  const note = [...generators(before, after), ...missing(ends), ...caveats("A", before), ...caveats("B", after)].join("; ");
  return { ...base, difference: difference(a, b), verdict: "too few results", note };
};

const withAdjusted = differences => {
  const tested = differences.filter(one => one && one.p !== null);
  const probabilities = adjusted(tested.map(one => one.p));
  return differences.map(one => tested.includes(one) ? { found: one, p: probabilities[tested.indexOf(one)] } : null);
};

// As lossratio.results.least_news: two searches of one SUT may end one width of the goal apart.
const leastNews = (wanted, resolution) => resolution === null ? wanted : Math.max(wanted, resolution / (1 - resolution) * (1 + 1e-6));

/** The ranges of the values of a side, as lossratio.results.stored_ends: frames may be missing that the SUT did not lose. */
const endsOf = rows => rows.filter(row => row.value !== null).map(row => ({
  least: row.value,
  most: row.unsent === 1 ? Infinity : row.most ?? row.value / (1 - row.unsent),
  share: row.unsent,
}));

/** The difference of the upper ends of values, as lossratio.report.difference_at_most; null: not known. */
const atMost = ({ sides, lowerIsBetter }, plain) => {
  if (sides.flat().every(one => one.least === one.most)) return plain;
  const [old, now] = sides.map(side => lowerIsBetter ? side.filter(one => !one.share).map(one => one.least) : side.map(one => one.most));
  const noEnd = [old, now].map(side => side.includes(Infinity));
  if (!old.length || !now.length || (noEnd[0] && noEnd[1])) return null;
  if (noEnd[0] || noEnd[1]) return { change: noEnd[0] ? -Infinity : Infinity, test: plain.test, p: plain.p, interval: null };
  return difference(old, now);
};

/** The verdict on the values as they are and on their upper ends, as lossratio.report.comparison. */
const judge = (row, plain, most, leastChange, significance) => {
  const changes = [plain, most].map(one => one && one.p < significance && Math.abs(one.found.change) >= leastChange ? one.found.change : null);
  const agreed = changes[0] !== null && changes[1] !== null && changes[0] * changes[1] > 0;
  const isWeaker = agreed && Math.abs(changes[1]) < Math.abs(changes[0]);
  row.p = Math.max(plain.p, most ? most.p : 0);
  if (agreed) {
    row.difference = isWeaker ? most.found : plain.found;
    const isBetter = (row.difference.change < 0) === row.lowerIsBetter;
    // Missing frames that differ between runs are no spread of the values themselves.
    const onlySeems = [plain.found.test, row.difference.test].includes("no spread");
    row.verdict = onlySeems ? (isBetter ? "seems better" : "seems worse") : isBetter ? "progression" : "regression";
    if (isWeaker && row.ends.sides.flat().some(one => one.share)) {
      row.note = [row.note, `${signed(changes[0])} as measured, ${signed(changes[1])} if these frames had passed`].filter(Boolean).join("; ");
    }
  } else if (changes[0] === null && (changes[1] === null || !Number.isFinite(changes[1]))) {
    row.verdict = "no change";
  } else Object.assign(row, { verdict: "not comparable", note: [UNSENT, row.note].filter(Boolean).join("; ") });
};

const UNSENT = "frames that the generator did not send or did not count may explain the difference";
const signed = ratio => `${ratio < 0 ? "" : "+"}${(100 * ratio).toFixed(2)} %`;

/** The share of missing frames that the SUT did not lose, of each side that has such frames. */
const missing = ({ sides }) => sides.flatMap((side, place) => {
  const share = Math.max(0, ...side.map(one => one.share).filter(one => one < 1));
  return share ? [`${"AB"[place]}: up to ${Number((100 * share).toPrecision(4))} % of the frames at one load were unsent, late or dropped by the generator`] : [];
});

const generators = (before, after) => {
  const kinds = [before, after].map(rows => [...new Set(rows.map(row => row.generator).filter(Boolean))].sort());
  if (new Set(kinds.flat()).size < 2) return [];
  const [one, other] = kinds.map(side => side.join(" and ") || "not known");
  return [`the traffic generators differ (A: ${one}; B: ${other}), which may explain the difference`];
};

const caveats = (side, rows) => {
  const counts = new Map();
  for (const row of rows) {
    if (row.outcome !== "measured") { const words = `${row.outcome}: ${row.reason}`; counts.set(words, (counts.get(words) ?? 0) + 1); }
  }
  return [...counts].map(([words, count]) => `${side}, ${count} of ${rows.length} ${words}`);
};
