// A table of rows with sorting and, where it is long, only the rows that are seen.
const ROW_HEIGHT = 27, ROWS_AT_ONCE = 100;
const NATURAL_ORDER = new Intl.Collator("en", { numeric: true });  // a third of the time of localeCompare

// What scrolls: where it is and how high, without asking the browser, which would lay everything out to answer.
class Viewport {
  constructor(element, redraw = () => {}) {
    this.element = element;
    this.top = element.scrollTop;
    this.height = element.clientHeight;
    element.addEventListener("scroll", () => { this.top = element.scrollTop; redraw(); });
    new ResizeObserver(() => { this.height = element.clientHeight; redraw(); }).observe(element);
  }
  // `content`: how high what it shows is.
  scrollTo(top, content = Infinity) {
    top = Math.max(0, Math.min(top, content - this.height));
    if (top === this.top) return;
    this.top = top;
    beforeFrame(() => { this.element.scrollTop = this.top; });
  }
}

// Runs what needs places of elements once all else of an interaction is done: they are laid out once.
const beforeNextFrame = [];
function beforeFrame(run) {
  if (!beforeNextFrame.length) requestAnimationFrame(() => { for (const each of beforeNextFrame.splice(0)) each(); });
  beforeNextFrame.push(run);
}

class Table {
  // columns: {title, tip, number, value(row) to sort by, html(row)}; key(row) names it; pick(row) when clicked.
  constructor(host, columns, rows, options) {
    this.host = host;
    this.columns = columns;
    this.rows = rows;
    Object.assign(this, options);
    host.innerHTML = `<div class="scroll"><table class="${options.name}"><thead><tr></tr></thead><tbody></tbody></table></div>`;
    this.scroll = host.firstChild;
    this.body = host.querySelector("tbody");
    this.viewport = new Viewport(this.scroll, () => this.sorted && this.windowed() && this.render());
    this.body.addEventListener("click", (event) => {
      const tr = event.target.closest("tr[data-i]");
      if (tr) this.pick(this.sorted[+tr.dataset.i]);
    });
    const head = host.querySelector("thead tr");
    columns.forEach((column, i) => {
      const th = document.createElement("th");
      th.innerHTML = `<button>${escapeHtml(column.title)}<i></i></button>`;
      th.className = column.number ? "number" : "";
      if (column.tip) th.title = column.tip;
      th.firstChild.addEventListener("click", () => this.sortBy(i, this.by === i ? !this.down : !!column.number));
      head.append(th);
    });
    const first = options.memory;
    this.sortBy(first.by ?? options.first ?? 0, first.down ?? (options.down ?? !!columns[options.first ?? 0].number));
  }

  windowed() { return this.rows.length > ROWS_AT_ONCE; }

  sortBy(i, down) {
    this.by = i;
    this.down = down;
    Object.assign(this.memory, { by: i, down });
    const value = this.columns[i].value, sign = down ? -1 : 1;
    this.sorted = this.rows.map((row, at) => [value(row), at, row]).sort((a, b) => {
      const less = typeof a[0] === "string" ? NATURAL_ORDER.compare(a[0], b[0]) : a[0] - b[0];
      return less ? sign * less : a[1] - b[1];
    }).map((entry) => entry[2]);
    this.host.querySelectorAll("th").forEach((th, at) => {
      th.querySelector("i").textContent = at === i ? (down ? "▾" : "▴") : "";
      th.setAttribute("aria-sort", at === i ? (down ? "descending" : "ascending") : "none");
    });
    this.drawn = null;
    this.render();
  }

  render(all = false) {
    const count = this.sorted.length;
    let from = 0, to = count;
    if (this.windowed() && !all) {
      from = Math.max(0, Math.floor(this.viewport.top / ROW_HEIGHT) - 6);
      to = Math.min(count, from + Math.ceil(this.viewport.height / ROW_HEIGHT) + 14);
    }
    const range = from + "-" + to;
    if (this.drawn !== range) {
      this.drawn = range;
      const cells = (row) => this.columns.map((c) => `<td${c.number ? " class=number" : ""}>${c.html(row)}</td>`).join("");
      const space = (rows) => (rows > 0 ? `<tr class="space" style="height:${rows * ROW_HEIGHT}px"></tr>` : "");
      this.body.innerHTML = space(from) +
        this.sorted.slice(from, to).map((row, i) => `<tr data-i="${from + i}" data-key="${escapeHtml(this.key(row))}">${cells(row)}</tr>`).join("") +
        space(count - to);
    }
    for (const tr of this.body.querySelectorAll("tr[data-i]"))
      tr.classList.toggle("selected", this.chosen(this.sorted[+tr.dataset.i]));
  }

  // Marks what is selected, and scrolls there.
  follow(scroll = true) {
    const i = this.sorted.findIndex((row) => this.chosen(row));
    if (i >= 0 && scroll) {
      const top = i * ROW_HEIGHT, view = this.viewport;
      if (this.windowed() && (top < view.top || top + 2 * ROW_HEIGHT > view.top + view.height))
        view.scrollTo(top - view.height / 2, (this.sorted.length + 1) * ROW_HEIGHT);
    }
    this.render();
    if (i >= 0 && scroll && !this.windowed()) beforeFrame(() => this.body.querySelector(`tr[data-i="${i}"]`)?.scrollIntoView({ block: "nearest" }));
  }
}

const badgesHtml = (plan, row) => plan.page.schemes.map((s, i) => (row.schemes[i] > 0
  ? `<span class="badge s${i}" title="${s.name}: ${counted(row.schemes[i], "op")}, ${escapeHtml(s.meaning)}">${s.badge}</span>` : "")).join("");

function kernelsTable(app, plan, host) {
  const kernel = (row) => plan.kernel(row.step);
  const number = (title, value, text, tip) => ({ title, tip, number: true, value, html: (row) => { const v = value(row); return v ? text(v) : ""; } });
  const of = (key) => (row) => (kernel(row) ? kernel(row)[key] : 0);
  const columns = [
    { title: "kernel", value: (row) => row.step, html: (row) => escapeHtml(row.id) },
    { title: "name", value: (row) => row.name,
      html: (row) => escapeHtml(row.name) + (row.body >= 0 ? ` <small>in ${escapeHtml(row.within)}</small>` : "") + (row.runs !== 1 ? ` <small>× ${grouped(row.runs)}</small>` : "") },
    { title: "µs", tip: "Modelled, of one run", number: true, value: (row) => row.predicted_us * row.runs, html: (row) => row.predicted_us.toFixed(2) },
    { title: "share", tip: "Of the time of all steps, with all its runs; modelled", value: (row) => -row.share, html: (row) => `<span class="bar"><i style="width:${Math.max(0.5, 100 * row.share).toFixed(1)}%"></i></span> ${percent(row.share)}` },
    ...plan.metrics.map((metric, m) => ({ title: metric.title, tip: metric.method, number: true, value: (row) => (metric.values[row.step] || [-1])[0],
      html: (row) => { const v = metric.values[row.step]; return v ? escapeHtml(v[1]) : ""; }, metric: m })),
    { title: "schemes", tip: "How values travel between ops", value: (row) => row.badges, html: (row) => (row.kernel >= 0 ? badgesHtml(plan, row) : `<small>${escapeHtml(row.kind)}</small>`) },
    { title: "limited by", tip: "The longest part of its time, modelled", value: (row) => row.limited_by || "", html: (row) => escapeHtml(row.limited_by || "") },
    { title: "of each peak", tip: "Share of its time that the busiest units need at their peak, modelled", value: (row) => row.busiest || "", html: (row) => escapeHtml(row.busiest || "") },
    number("ops", (row) => row.ops, grouped),
    number("groups", (row) => row.groups, grouped),
    number("grid", of("grid"), grouped, "Blocks"),
    number("block", of("block"), grouped, "Threads"),
    number("grid barriers", of("grid_barriers"), grouped),
    number("shared", of("shared_bytes"), bytesText, "Shared memory of a block"),
    number("scratch", of("scratch_bytes"), bytesText),
    number("DRAM", (row) => row.dram_bytes, bytesText, "Read and written, modelled"),
  ];
  return new Table(host, columns, plan.rows, { name: "kernels", first: 2, memory: app.memory("kernels"), key: (row) => row.key,
    pick: (row) => { app.focusView(plan); app.select({ plan, step: row.step, group: -1, op: -1 }, { from: "table" }); },
    chosen: (row) => app.stepsSelected(plan).has(row.step) });
}

// Dividers that can be moved.
function splitters() {
  const root = document.documentElement;
  for (const split of document.querySelectorAll(".split")) {
    split.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      split.setPointerCapture(event.pointerId);
      const what = split.dataset.split;
      const move = (e) => {
        const size = { left: e.clientX, right: innerWidth - e.clientX, dock: innerHeight - e.clientY, code: innerHeight - e.clientY }[what];
        root.style.setProperty("--" + what, Math.max(what === "left" ? 0 : 60, size) + "px");
      };
      split.addEventListener("pointermove", move);
      split.addEventListener("pointerup", () => split.removeEventListener("pointermove", move), { once: true });
    });
  }
}
