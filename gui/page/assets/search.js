// Search, in the words of the workbench: words, /regular expressions/, kernel: op: scheme: dtype:. And the outline,
// which is the fold tree as it is folded in the graph, or what was found.
function parseQuery(text) {
  const query = { words: [], kernel: [], op: [], scheme: [], dtype: [], regex: null, error: "" }, trimmed = text.trim();
  if (trimmed.length > 2 && trimmed.startsWith("/") && trimmed.endsWith("/")) {
    try { query.regex = new RegExp(trimmed.slice(1, -1), "i"); } catch (error) { query.error = error.message; }
    return query;
  }
  for (const part of trimmed.split(/\s+/).filter(Boolean)) {
    const colon = part.indexOf(":"), filter = part.slice(0, colon), value = part.slice(colon + 1).toLowerCase();
    if (colon <= 0) query.words.push(part.toLowerCase());
    else if (query[filter] && filter !== "words") { if (value) query[filter].push(value); }
    else query.error = `no filter '${filter}': there are kernel: op: scheme: dtype:`;
  }
  return query;
}

function findNodes(plan, query) {
  const filters = ["words", "kernel", "op", "scheme", "dtype"].filter((f) => query[f].length);
  if (query.error || (!query.regex && !filters.length)) return [];
  const kernelsOnly = filters.length === 1 && filters[0] === "kernel", found = [];
  // "k1" is the kernel k1 and not k10.
  const isKernel = (label) => !query.kernel.length || query.kernel.some((w) => (/^k\d+$/.test(w) ? label === w || label.startsWith(w + " ") : label.includes(w)));
  for (const n of plan.nodes) {
    if (n.kind !== KIND.step && n.kind !== KIND.op) continue;
    const label = n.label.toLowerCase();
    if (n.kind === KIND.step) {
      if (query.regex ? query.regex.test(n.label) : kernelsOnly ? isKernel(label) : false) found.push(n.id);
      continue;
    }
    if (kernelsOnly || n.op < 0) continue;
    if (query.regex) { if (query.regex.test(n.label)) found.push(n.id); continue; }
    const part = plan.part(n.step), opcode = part.ops.opcode[n.op];
    if (!query.words.every((w) => label.includes(w) || opcode.includes(w))) continue;
    if (query.op.length && !query.op.some((w) => opcode.includes(w))) continue;
    if (query.dtype.length && !query.dtype.some((w) => part.ops.shape[n.op].split("[")[0].includes(w))) continue;
    let step = n;
    while (step.parent >= 0 && step.kind !== KIND.step) step = plan.nodes[step.parent];
    if (!isKernel(step.kind === KIND.step ? step.label.toLowerCase() : "")) continue;
    if (query.scheme.length) {
      const s = plan.schemeOf(n);
      if (s === undefined || !query.scheme.some((w) => plan.page.schemes[s].name.startsWith(w) || w === plan.page.schemes[s].badge.toLowerCase())) continue;
    }
    found.push(n.id);
  }
  return found;
}

const LINE = 25;
class Outline {
  constructor(app) {
    this.app = app;
    this.host = document.getElementById("outline");
    this.host.innerHTML = `<div class="lines"></div>`;
    this.inner = this.host.firstChild;
    this.viewport = new Viewport(this.host, () => this.render());
    this.host.addEventListener("click", (event) => {
      const line = event.target.closest("[data-node]");
      if (!line) return;
      const node = +line.dataset.node, plan = app.plan;
      if (event.target.className === "fold") return app.fold(plan, node);
      app.select(selectionOf(plan, node), { from: "outline" });
    });
  }
  // What is listed: of the shown plan, as it is folded, or the hits.
  list() {
    const plan = this.app.plan, layout = plan.layout, found = this.app.found;
    if (found) return found.map((node) => ({ node, depth: 0 }));
    const lines = [];
    const walk = (node, depth) => {
      for (const child of plan.nodes[node].children) {
        lines.push({ node: child, depth });
        if (layout.isOpen(child)) walk(child, depth + 1);
      }
    };
    walk(0, 0);
    return lines;
  }
  load() {
    this.lines = this.list();
    this.inner.style.height = this.lines.length * LINE + 12 + "px";
    this.render();
  }
  render() {
    if (!this.lines) return;
    const plan = this.app.plan, from = Math.max(0, Math.floor(this.viewport.top / LINE) - 8), to = Math.min(this.lines.length, from + Math.ceil(this.viewport.height / LINE) + 16);
    let html = "";
    for (let i = from; i < to; ++i) {
      const { node, depth } = this.lines[i], n = plan.nodes[node], scheme = n.kind >= KIND.step ? plan.schemeOf(n) : undefined;
      const fold = n.children.length && !this.app.found ? `<button class="fold" tabindex="-1" aria-label="Fold">${plan.layout.isOpen(node) ? "▾" : "▸"}</button>` : `<span class="fold"></span>`;
      const mark = n.kind < KIND.step ? "" : scheme === undefined ? `<span class="badge lib">·</span>` : `<span class="badge s${scheme}">${plan.page.schemes[scheme].badge}</span>`;
      const time = n.kind <= KIND.step && n.us ? `<small>${us(n.us)}</small>` : "";
      html += `<div class="line${node === this.app.node ? " selected" : ""}" data-node="${node}" style="top:${6 + i * LINE}px;padding-left:${6 + 14 * depth}px">${fold}${mark}<span>${n.kind === KIND.group ? "★ " : ""}${escapeHtml(n.label)}</span>${time}</div>`;
    }
    this.inner.innerHTML = html;
  }
  follow() {
    const i = this.lines ? this.lines.findIndex((line) => line.node === this.app.node) : -1;
    if (i >= 0) {
      const top = i * LINE, view = this.viewport;
      if (top < view.top || top + 2 * LINE > view.top + view.height) view.scrollTo(top - view.height / 2, this.lines.length * LINE + 12);
    }
    this.render();
  }
}
