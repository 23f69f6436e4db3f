// Values in words, tables and filters.

const NOTHING = "–";

const inUnit = (value, unit) => {
  if (value === null || value === undefined) return NOTHING;
  if (unit === "fps" || unit === "bit/s") return scaled(value, unit);
  return value >= 10000 ? `${Math.round(value).toLocaleString("en")} ${unit}` : `${Number(value.toPrecision(5))} ${unit}`;
};
/** A range, from the words for its ends. If these are the same after rounding, they stand for the range. */
const range = (least, most) => least === most ? least : `${least} to ${most}`;
const percent = (share, digits = 2) => {
  if (share === null || share === undefined) return NOTHING;
  if (!Number.isFinite(share)) return "from zero";
  // As lossratio.units.format_change_size: only the whole value is 100.00 %.
  let shown = Math.abs(share) >= 10 ? 0 : digits;
  while (Math.abs(share) !== 1 && shown < 15 && Number(Math.abs(100 * share).toFixed(shown)) === 100) shown += 1;
  const size = (100 * share).toLocaleString("en", { minimumFractionDigits: shown, maximumFractionDigits: shown });
  return `${share > 0 ? "+" : ""}${size} %`;
};
const minute = seconds => new Date(1000 * seconds).toISOString().slice(0, 16).replace("T", " ");
const day = seconds => minute(seconds).slice(0, 10);
const hours = seconds => seconds >= 5400 ? `${(seconds / 3600).toFixed(1)} h` : seconds >= 90 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds)} s`;
const bandwidth = (value, unit, frameSize) => unit === "fps" && value !== null && frameSize ? value * (frameSize + 20) * 8 : null;
const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

const outcomeClass = outcome => ["measured", "irregular", "failed"].includes(outcome) ? outcome : "";

/** A link to a view. Parameters that are empty are left out. */
const address = (path, parameters = {}) => {
  const given = Object.entries(parameters).filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== false);
  const query = given.map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join("&");
  return `#/${path}${query ? `?${query}` : ""}`;
};
const link = (path, text, parameters = {}) => el("a", { href: address(path, parameters) }, text);

/**
 * A table that sorts, shows its first rows, and can be saved.
 * Columns: {head, cell(row) gives text or an element, key(row) gives what to sort by, className, csv(row)}; one without `cell` is in files only.
 */
const table = ({ name, columns, rows, step = 100 }) => {
  const isEmpty = column => { const value = column.csv ?? column.key; return value && rows.length && rows.every(row => isMissing(value(row))); };
  const visible = columns.filter(column => column.cell && !isEmpty(column));
  let order = rows;
  let shown = step;
  const body = el("tbody");
  const more = el("button", { type: "button", onclick: () => { shown += 10 * step; fill(); } });
  const fill = () => {
    body.replaceChildren(...order.slice(0, shown).map(row => el("tr", {}, visible.map(column => el("td", { class: column.className }, column.cell(row))))));
    more.hidden = shown >= order.length;
    more.textContent = `Show more: ${Math.min(shown, order.length)} of ${order.length} are shown`;
  };
  const heads = visible.map(column => {
    if (!column.key) return el("th", { scope: "col" }, column.head);
    const head = el("th", { scope: "col" }, el("button", { type: "button" }, column.head));
    head.firstChild.addEventListener("click", () => sort(column, head, head.getAttribute("aria-sort") === "ascending"));
    return head;
  });
  const sort = (column, head, descending) => {
    heads.forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    order = sorted(rows, column.key, descending);
    fill();
  };
  const cell = value => { const text = value === null || value === undefined ? "" : String(value); return /[",\n\r]|^[=+@-]/.test(text) && typeof value !== "number" ? `"${/^[=+@-]/.test(text) ? "'" : ""}${text.replaceAll("\"", "\"\"")}"` : text; };
  const save = () => {
    const kept = columns.filter(column => column.csv);
    const lines = [kept.map(column => cell(column.csvHead ?? column.head)), ...order.map(row => kept.map(column => cell(column.csv(row))))];
    const file = URL.createObjectURL(new Blob([lines.map(line => line.join(",")).join("\n") + "\n"], { type: "text/csv" }));
    el("a", { href: file, download: `${name}.csv` }).click();
    setTimeout(() => URL.revokeObjectURL(file), 1000);
  };
  const whole = el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": name },
    el("table", { class: "overview" }, el("thead", {}, el("tr", {}, heads)), body));
  fill();
  return el("div", {}, whole, el("p", { class: "after" }, more, columns.some(column => column.csv) ? el("button", { type: "button", onclick: save }, "Save as CSV") : null));
};

/** A form of filters. Fields: {name, label, values (a select) or type}; `change` gets the values by name. */
const filters = (fields, values, change) => {
  const form = el("form", { class: "filters", onsubmit: event => event.preventDefault() });
  for (const field of fields) {
    const value = values[field.name] ?? "";
    let input;
    if (field.values) {
      input = el("select", { name: field.name }, field.all === undefined ? el("option", { value: "" }, "all") : field.all === null ? null : el("option", { value: "" }, field.all),
        field.values.map(option => { const [key, text] = Array.isArray(option) ? option : [option, option]; return el("option", { value: key }, text); }));
      input.value = [...input.options].some(option => option.value === value) ? value : input.options[0]?.value ?? "";
    } else if (field.type === "checkbox") {
      input = el("input", { type: "checkbox", name: field.name });
      input.checked = value === "yes";
    } else {
      input = el("input", { type: "search", name: field.name });
      input.value = value;
    }
    form.append(field.type === "checkbox" ? el("label", { class: "check" }, input, field.label) : el("label", {}, field.label, input));
  }
  const state = () => Object.fromEntries([...form.elements].filter(input => input.name).map(input => [input.name, input.type === "checkbox" ? (input.checked ? "yes" : "") : input.value]));
  let waiting = 0;
  form.addEventListener("input", event => {
    clearTimeout(waiting);
    waiting = setTimeout(() => change(state()), event.target.type === "search" ? 120 : 0);
  });
  return { form, state };
};
