// The page: one selection, which everything follows; what is shown beside what; keys; the address.
const LEVELS = [["Layers", KIND.layer], ["Kernels", KIND.step], ["Groups", KIND.group], ["Ops", KIND.op]];
const byId = (id) => document.getElementById(id);

class App extends Addressed {
  constructor(page) {
    super();
    this.page = page;
    this.plans = page.plans.map((_, i) => new Plan(page, i));
    this.plan = this.plans[0];
    this.beside = null;
    this.selection = null;
    this.node = -1;
    this.found = null;
    this.tab = "kernels";
    this.memories = {};
    this.views = [];
    this.dark = localStored("theme", matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light") === "dark";
    this.colour = "scheme";
    this.source = new Source(this);
    this.details = new Viewport(byId("details"));
    this.outline = new Outline(this);
    this.chrome();
    this.applyTheme();
    this.readAddress(false);
    this.showPlans();
    this.follow({ from: "start" });
    addEventListener("hashchange", () => this.readAddress(true));
    addEventListener("popstate", () => this.readAddress(true));
    addEventListener("keydown", (event) => this.key(event));
    addEventListener("beforeprint", () => this.beforePrint());
    addEventListener("afterprint", () => { byId("print").innerHTML = ""; });
    this.prepare();
  }

  // While nothing is asked: indexes the other plans, lays them out and what is folded in each, so that it opens at once.
  prepare() {
    requestIdleCallback(() => {
      const next = this.plans.find((plan) => !plan.prepared);
      if (!next) return;
      next.load();
      next.layout = next.layout || new Layout(next, next.graph.open);
      next.prepared = next.layout.foresee();
      this.prepare();
    });
  }

  memory(name) { return this.memories[name] || (this.memories[name] = {}); }

  // The metric that colours a plan: of its run; times are there without one.
  metric(plan) {
    if (this.colour === "scheme") return null;
    if (this.colour.startsWith("run:")) return plan.metrics.find((m) => m.title === this.colour.slice(4)) || null;
    plan.modelled = plan.modelled || {};
    if (!plan.modelled[this.colour]) {
      const value = this.colour === "dram" ? (row) => (row.kernel >= 0 ? row.dram_bytes : null) : (row) => row.predicted_us * row.runs;
      const text = this.colour === "dram" ? bytesText : us, values = plan.rows.map(value), known = values.filter((v) => v !== null);
      const least = Math.min(...known), most = Math.max(...known);
      plan.modelled[this.colour] = { title: this.colour === "dram" ? "DRAM bytes" : "time", method: plan.method, least: known.length ? text(least) : "", most: known.length ? text(most) : "",
        values: values.map((v) => (v === null ? null : [most > least ? (v - least) / (most - least) : 0.5, text(v)])) };
    }
    return plan.modelled[this.colour];
  }

  chrome() {
    const model = this.page.model;
    byId("title").innerHTML = `<b title="${escapeHtml(model.path)}">${escapeHtml(model.path.split("/").pop())}</b><span>${escapeHtml(this.page.device.name)}</span>`;
    byId("plans").innerHTML = this.plans.map((p, i) => `<button role="tab" data-plan="${i}" title="${escapeHtml(planSummary(p))}"><b>${escapeHtml(p.name)}</b><span>${grouped(p.plan.counts.memory_kernels)} + ${grouped(p.plan.counts.library_calls)} · ${us(p.plan.predicted_us)}</span></button>`).join("");
    byId("plans").addEventListener("click", (event) => {
      const button = event.target.closest("[data-plan]");
      if (button) this.showPlan(this.plans[+button.dataset.plan]);
    });
    const beside = byId("beside");
    beside.parentNode.hidden = this.plans.length < 2;
    beside.addEventListener("change", () => this.showBeside(beside.value === "" ? null : this.plans[+beside.value]));
    byId("levels").innerHTML = LEVELS.map(([name], i) => `<button data-level="${i}" title="Fold to ${name.toLowerCase()} (${i + 1})">${name}</button>`).join("");
    byId("levels").addEventListener("click", (event) => event.target.dataset.level && this.level(+event.target.dataset.level));
    const metrics = [...new Set(this.plans.flatMap((p) => p.metrics.map((m) => m.title)))];
    byId("colour").innerHTML = `<option value="scheme">scheme</option><optgroup label="modelled"><option value="us">time</option><option value="dram">DRAM bytes</option></optgroup>` +
      (metrics.length ? `<optgroup label="run and profile">${metrics.map((m) => `<option value="run:${escapeHtml(m)}">${escapeHtml(m)}</option>`).join("")}</optgroup>` : "");
    byId("colour").addEventListener("change", (event) => this.setColour(event.target.value));
    byId("theme").addEventListener("click", () => this.toggleTheme());
    byId("help").addEventListener("click", () => this.keys());
    byId("tabs").addEventListener("click", (event) => event.target.dataset.tab && this.showTab(event.target.dataset.tab));
    const query = byId("query");
    let late = 0;
    query.addEventListener("input", () => { clearTimeout(late); late = setTimeout(() => this.search(), this.plan.nodes.length > 4000 ? 150 : 40); });
    query.addEventListener("keydown", (event) => {
      if (event.key === "Enter") { this.search(); this.nextHit(event.shiftKey ? -1 : 1); }
      if (event.key === "Escape") { query.value = ""; this.search(); query.blur(); event.stopPropagation(); }
    });
    document.addEventListener("click", (event) => {
      const link = event.target.closest("a[data-op],a[data-step],a[data-group]");
      if (!link) return;
      event.preventDefault();
      const plan = this.selection ? this.selection.plan : this.plan;
      if (link.dataset.op !== undefined) return this.selectOp(link.dataset.op, plan, { from: "link" });
      const [step, group] = (link.dataset.step ?? link.dataset.group).split(".").map(Number);
      this.select({ plan, step, group: group ?? -1, op: -1 }, { from: "link" });
    });
    // Lists that are folded are made when they are opened.
    document.addEventListener("toggle", (event) => {
      const list = event.target.open && event.target.dataset.lazy !== undefined && lazyLists[event.target.dataset.lazy];
      if (!list) return;
      delete event.target.dataset.lazy;
      event.target.insertAdjacentHTML("beforeend", list());
    }, true);
    splitters();
  }

  showPlans() {
    for (const view of this.views) view.remove();
    const plans = this.beside ? [this.plan, this.beside].sort((a, b) => a.index - b.index) : [this.plan];
    for (const plan of plans) plan.load();
    byId("views").dataset.count = plans.length;
    this.views = plans.map((plan) => new GraphView(this, plan, byId("views")));
    document.querySelectorAll("[data-plan]").forEach((b) => b.setAttribute("aria-selected", this.plans[+b.dataset.plan] === this.plan));
    byId("beside").innerHTML = `<option value="">nothing</option>` + this.plans.map((p, i) => (p === this.plan ? "" : `<option value="${i}"${p === this.beside ? " selected" : ""}>${escapeHtml(p.name)}</option>`)).join("");
    this.legend();
    this.found = null;
    if (byId("query").value) this.search();
    else this.outline.load();
    this.tabs();
    this.showTab(this.tab);
    this.markFocus();
  }
  showPlan(plan) {
    if (plan === this.plan) return;
    if (plan === this.beside) return this.focusView(plan, true);
    const name = this.opName(), before = this.selection;
    this.plan = plan;
    this.showPlans();
    if (name) this.selectOp(name, plan, { from: "plan" });
    else if (before && before.step >= 0) this.select(this.counterpart(before, plan), { from: "plan" });
    else this.select(null);
  }
  showBeside(plan) {
    this.beside = plan;
    if (plan) this.tab = "diff";
    else if (this.tab === "diff") this.tab = "kernels";
    this.showPlans();
    this.follow({ from: "beside" });
    this.writeAddress(false);
  }
  // Makes the plan the one that outline and table are of.
  focusView(plan, redraw = false) {
    if (plan === this.plan) return;
    if (plan !== this.beside) { if (redraw || plan !== this.plan) { this.plan = plan; this.beside = null; this.showPlans(); } return; }
    this.beside = this.plan;
    this.plan = plan;
    document.querySelectorAll("[data-plan]").forEach((b) => b.setAttribute("aria-selected", this.plans[+b.dataset.plan] === plan));
    byId("beside").innerHTML = `<option value="">nothing</option>` + this.plans.map((p, i) => (p === this.plan ? "" : `<option value="${i}"${p === this.beside ? " selected" : ""}>${escapeHtml(p.name)}</option>`)).join("");
    this.outline.load();
    if (this.tab !== "diff") this.showTab(this.tab);
    this.markFocus();
  }
  markFocus() {
    for (const view of this.views) view.element.classList.toggle("focus", this.views.length > 1 && view.plan === this.plan);
  }

  opName() { const s = this.selection; return s && s.op >= 0 ? s.plan.parts[s.body + 1].ops.name[s.op] : ""; }

  selectOp(name, plan, how) {
    const at = plan.find(name);
    if (!at) return false;
    const node = plan.placeOf(at.body, at.op, this.selection && this.selection.plan === plan ? this.selection.step : -1);
    if (node >= 0) this.select(selectionOf(plan, node), how);
    else this.select({ plan, node: -1, body: at.body, step: plan.stepsOf(at.body, at.op)[0] ?? -1, group: -1, op: at.op }, how);
    return true;
  }

  select(s, how = {}) {
    if (s) {
      s.body = s.body ?? (s.step >= 0 ? s.plan.rows[s.step].body : -1);
      if (s.node === undefined) {
        s.node = s.step >= 0 ? s.plan.nodeOfStep.get(s.step) ?? -1 : -1;
        if (s.group >= 0 && s.node >= 0) s.node = s.plan.nodes[s.node].children.find((c) => s.plan.nodes[c].kind === KIND.group && s.plan.nodes[c].group === s.group) ?? s.node;
      }
      if (s.plan !== this.plan) this.focusView(s.plan);
    }
    this.selection = s;
    this.absent = null;
    this.follow(how);
    if (how.from !== "address") this.writeAddress(true);
  }

  // The same thing in another plan: by the op, or by the kernel that has most of the kernel's ops.
  counterpart(s, plan) {
    plan.load();
    const name = s.op >= 0 ? s.plan.parts[s.body + 1].ops.name[s.op] : "";
    if (name) {
      const at = this.sameOp(s, name, plan);
      if (!at) return null;
      const node = plan.placeOf(at.body, at.op);
      return node < 0 ? null : selectionOf(plan, node);
    }
    if (s.step < 0) return null;
    const best = [...this.stepsBeside(s, plan)].sort((a, b) => b[1] - a[1])[0];
    return best ? { plan, step: best[0], group: -1, op: -1, node: plan.nodeOfStep.get(best[0]) ?? -1, body: plan.rows[best[0]].body } : null;
  }
  // The op of the other plan by its name, else one that stands for the same op of the model: rewritten graphs have others.
  sameOp(s, name, plan) {
    const shown = (at) => at && plan.placeOf(at.body, at.op) >= 0;
    const here = s.plan.parts[s.body + 1].ops.from, origins = [name, ...(here && s.body < 0 ? here[s.op] : [])];
    for (const origin of origins) if (shown(plan.find(origin))) return plan.find(origin);
    const there = plan.parts[0].ops.from || [];
    for (const origin of origins)
      for (let op = there.length - 1; op >= 0; --op) if (there[op].includes(origin) && shown({ body: -1, op })) return { body: -1, op };
    return null;
  }
  // Steps of the other plan that compute ops of the selected step: with how many.
  stepsBeside(s, plan) {
    const part = s.plan.part(s.step), kernel = s.plan.kernel(s.step), counts = new Map();
    const ops = kernel ? kernel.ops : s.plan.planStep(s.step).ops || [];
    for (const op of ops) {
      const at = plan.find(op);
      if (at) for (const step of plan.stepsOf(at.body, at.op)) counts.set(step, (counts.get(step) || 0) + 1);
    }
    return counts;
  }
  // The steps of a plan that the selection is in: its own, or those of its counterpart.
  stepsSelected(plan) {
    const s = this.selection;
    if (!s) return new Set();
    if (this.stepsOf !== s) { this.stepsOf = s; this.steps = new Map(); }
    if (!this.steps.has(plan)) this.steps.set(plan, this.stepsIn(s, plan));
    return this.steps.get(plan);
  }
  stepsIn(s, plan) {
    plan.load();
    if (s.plan === plan) return s.op >= 0 && s.node < 0 ? new Set(plan.stepsOf(s.body, s.op)) : new Set(s.step >= 0 ? [s.step] : []);
    const other = this.counterpart(s, plan);
    return new Set(other && other.step >= 0 ? [other.step] : []);
  }

  follow(how = {}) {
    const s = this.selection;
    this.node = s ? s.node : -1;
    for (const view of this.views) {
      const own = s && (s.plan === view.plan ? s : this.counterpart(s, view.plan));
      view.also = new Set();
      view.selected = -1;
      if (own && own.node >= 0) {
        if (own.node > 0 && view.layout.reveal(own.node)) { view.relayout(); if (view.plan === this.plan) this.outline.load(); }
        view.selected = own.node;
        if (s.plan !== view.plan && s.op < 0 && s.step >= 0)
          for (const step of this.stepsBeside(s, view.plan).keys()) { const n = view.plan.nodeOfStep.get(step); if (n !== undefined && n !== own.node) view.also.add(view.layout.shown[n]); }
        if (how.from !== "graph" || s.plan !== view.plan) view.show(own.node);
      }
      view.draw();
    }
    this.outline.follow();
    const details = byId("details");
    details.innerHTML = this.detailsHtml();
    this.details.scrollTo(0);
    this.source.show();
    if (this.pane && this.pane.follow) this.pane.follow(how.from !== "table");
  }

  detailsHtml() {
    lazyLists.length = 0;
    const s = this.selection;
    if (!s) return absentHtml(this.plan, this.absent) + nothingHtml(this.plan);
    if (s.op >= 0) return opHtml(s.plan, s);
    if (s.step >= 0) return s.group >= 0 && s.plan.kernel(s.step) ? groupHtml(s.plan, s.step, s.group) : stepHtml(s.plan, s.step);
    return s.node > 0 ? nodeHtml(s.plan, s.node) : nothingHtml(s.plan);
  }

  fold(plan, node, open) {
    plan.layout.toggle(node, open);
    for (const view of this.views) if (view.plan === plan) { view.relayout(node); view.draw(); }
    if (plan === this.plan) this.outline.load();
  }
  level(i) {
    for (const view of this.views) {
      view.layout.level(LEVELS[i][1]);
      view.touched = false;
      view.relayout();
    }
    this.outline.load();
    this.levelShown = i;
    document.querySelectorAll("[data-level]").forEach((b) => b.setAttribute("aria-pressed", +b.dataset.level === i));
  }

  setColour(colour) {
    this.colour = colour;
    byId("colour").value = colour;
    this.legend();
    for (const view of this.views) view.draw();
    if (this.pane && this.pane.paint) this.pane.paint();
  }
  legend() {
    const metric = this.metric(this.plan), used = new Set();
    let html = "";
    if (metric) {
      const stops = d3.range(0, 1.01, 0.1).map((t) => d3.interpolateViridis(t)).join(",");
      html = `<span><b>${escapeHtml(metric.title)}</b> ${escapeHtml(metric.method)}</span><span>${escapeHtml(metric.least)} <i class="ramp" style="background:linear-gradient(90deg,${stops})"></i> ${escapeHtml(metric.most)}</span>`;
    } else {
      for (const row of this.plan.rows) row.schemes.forEach((n, s) => n > 0 && used.add(s));
      html = this.page.schemes.map((s, i) => (used.has(i) ? `<span title="${escapeHtml(s.meaning)}"><span class="badge s${i}">${s.badge}</span> ${s.name}</span>` : "")).join("") + `<span><span class="badge lib">·</span> library, copy</span><span>★ dominant</span>`;
    }
    html += `<span class="lines"><i class="dram"></i> through device memory <i class="chip"></i> on chip</span>`;
    byId("legend").innerHTML = html;
  }

  // Tabs below.
  tabs() {
    const list = [["kernels", "Kernels"], ["timeline", "Timeline"], ["roofline", "Roofline"], ["memory", "Memory"], ["decided", "Decisions"]];
    if (this.plan.rewritings.length) list.push(["rewritings", "Rewriting"]);
    if (this.plan.profile) list.push(["profile", "Profile"]);
    if (this.plans.length > 1) list.push(["diff", "Difference"]);
    if (!list.some(([id]) => id === this.tab)) this.tab = "kernels";
    byId("tabs").innerHTML = list.map(([id, title]) => `<button role="tab" data-tab="${id}">${title}</button>`).join("");
  }
  showTab(tab) {
    this.tab = tab;
    document.querySelectorAll("[data-tab]").forEach((b) => b.setAttribute("aria-selected", b.dataset.tab === tab));
    if (this.pane && this.pane.remove) this.pane.remove();
    const host = byId("pane");
    host.innerHTML = "";
    host.scrollTop = 0;
    const make = {
      kernels: () => kernelsTable(this, this.plan, host),
      timeline: () => new Timeline(this, this.plan, host),
      roofline: () => new Roofline(this, this.plans, host),
      memory: () => new Memory(this, this.plans, host),
      decided: () => decisionsPane(this, this.plan, host),
      rewritings: () => rewritingsPane(this, this.plan, host),
      profile: () => profilePane(this, this.plan, host),
      diff: () => diffPane(this, this.diff(), host),
    };
    this.pane = make[tab]();
    if (this.pane && this.pane.follow) this.pane.follow();
    this.writeAddress(false);
  }
  // Between the two plans shown, else the shown and the first other.
  diff() {
    const other = this.beside || this.plans.find((p) => p !== this.plan), [a, b] = [this.plan.index, other.index].sort((x, y) => x - y);
    return this.page.diffs.find((d) => d.plans[0] === a && d.plans[1] === b);
  }

  search() {
    const text = byId("query").value, query = parseQuery(text);
    const found = text.trim() ? findNodes(this.plan, query) : null;
    this.found = found;
    this.hit = -1;
    byId("found").textContent = !found ? "" : query.error || (found.length ? counted(found.length, "hit") : this.plan.excerpt ? "not on this page" : "nothing");
    byId("found").classList.toggle("error", !!query.error);
    this.markHits();
    this.outline.load();
  }
  markHits() {
    for (const view of this.views) {
      const found = view.plan === this.plan ? this.found : this.found && findNodes(view.plan, parseQuery(byId("query").value));
      view.hits = new Set((found || []).map((node) => view.layout.shown[node]));
      view.draw();
    }
  }
  nextHit(by) {
    if (!this.found || !this.found.length) return;
    this.hit = (this.hit + by + this.found.length) % this.found.length;
    byId("found").textContent = `${this.hit + 1} of ${grouped(this.found.length)}`;
    this.select(selectionOf(this.plan, this.found[this.hit]), { from: "search" });
    this.markHits();
  }

  tip(text) {
    const tip = byId("tip");
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const at = this.mouse || [0, 0];
    tip.style.left = Math.min(innerWidth - 20 - tip.offsetWidth, at[0] + 14) + "px";
    tip.style.top = Math.min(innerHeight - 10 - tip.offsetHeight, at[1] + 18) + "px";
  }

  applyTheme() {
    document.documentElement.dataset.theme = this.dark ? "dark" : "light";
    for (const view of this.views) view.draw();
  }
  toggleTheme() {
    this.dark = !this.dark;
    try { localStorage.setItem("stitchwork-theme", this.dark ? "dark" : "light"); } catch (_) { /* a page without storage */ }
    this.applyTheme();
    this.showTab(this.tab);
  }

  keys() {
    const rows = [["/ or Ctrl+F", "search; Enter and Shift+Enter: next and previous hit"], ["Space or 0", "fit the graph to the window"], ["F", "move to the selection"],
      ["+ −", "zoom"], ["1 2 3 4", "fold to layers, kernels, groups, ops"], ["→ ←", "unfold, fold the selection"], ["↑ ↓", "previous, next line of the outline"], ["[ ]", "previous, next kernel"],
      ["D", "the other plan beside, or not"], ["T", "light or dark"], ["Esc", "select nothing"], ["Alt+← Alt+→", "back and forward through selections"], ["?", "these keys"]];
    const dialog = byId("keys");
    dialog.innerHTML = `<h2>Keys</h2><table>${rows.map(([k, what]) => `<tr><td><kbd>${k}</kbd></td><td>${what}</td></tr>`).join("")}</table>
      <p class="quiet">Double-click folds a box; the wheel zooms; dragging moves. The address has the selection: copy it as a link.</p>
      <p class="quiet">Stitchwork ${escapeHtml(this.page.stitchwork)}. Drawn with d3, whose licence is in the page's source.</p><form method="dialog"><button>Close</button></form>`;
    dialog.showModal();
  }
  key(event) {
    const typing = /INPUT|SELECT|TEXTAREA/.test(event.target.tagName);
    if ((event.key === "/" && !typing) || (event.key === "f" && (event.ctrlKey || event.metaKey))) {
      event.preventDefault();
      byId("query").focus();
      return byId("query").select();
    }
    if (typing || event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
    const view = this.views.find((v) => v.plan === this.plan), s = this.selection;
    const step = (by) => {
      const kernels = this.plan.rows.filter((row) => row.kernel >= 0).map((row) => row.step), at = s ? kernels.indexOf(s.step) : -1;
      const next = kernels[at < 0 ? 0 : Math.min(kernels.length - 1, Math.max(0, at + by))];
      if (next !== undefined) this.select({ plan: this.plan, step: next, group: -1, op: -1 }, { from: "key" });
    };
    const line = (by) => {
      const lines = this.outline.lines, at = lines.findIndex((l) => l.node === this.node), next = lines[Math.min(lines.length - 1, Math.max(0, at + by))];
      if (next) this.select(selectionOf(this.plan, next.node), { from: "key" });
    };
    const keys = {
      " ": () => view.fit(), 0: () => view.fit(), "+": () => view.scaleBy(1.4), "=": () => view.scaleBy(1.4), "-": () => view.scaleBy(1 / 1.4),
      f: () => s && s.node >= 0 && view.show(s.node, true), Escape: () => this.select(null), "[": () => step(-1), "]": () => step(1),
      ArrowRight: () => s && s.node > 0 && this.fold(s.plan, s.node, true), ArrowLeft: () => s && s.node > 0 && this.fold(s.plan, s.node, false),
      ArrowDown: () => line(1), ArrowUp: () => line(-1), t: () => this.toggleTheme(), "?": () => this.keys(),
      d: () => this.plans.length > 1 && this.showBeside(this.beside ? null : this.plans.find((p) => p !== this.plan)),
      1: () => this.level(0), 2: () => this.level(1), 3: () => this.level(2), 4: () => this.level(3),
    };
    const action = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action || (event.target.closest && event.target.closest("button") && event.key === " ")) return;
    event.preventDefault();
    action();
  }

  // On paper: the graph as it is shown, the kernels, the selection.
  beforePrint() {
    const table = document.createElement("div");
    kernelsTable(this, this.plan, table).render(true);
    byId("print").innerHTML = `<h1>${escapeHtml(this.page.model.path)}</h1><p>planned by <b>${escapeHtml(this.plan.name)}</b> on ${escapeHtml(this.page.device.name)}: ${escapeHtml(planSummary(this.plan))}. Stitchwork ${escapeHtml(this.page.stitchwork)}.</p>` +
      this.views.map((v) => `<figure><img src="${v.canvas.toDataURL()}" alt="graph"><figcaption>${escapeHtml(v.plan.name)}</figcaption></figure>`).join("") +
      (this.selection ? `<section class="details">${this.detailsHtml()}</section>` : "") + table.querySelector("table").outerHTML;
  }
}

document.documentElement.dataset.theme = localStored("theme", matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
readDocument().then((page) => {
  const app = new App(page);
  addEventListener("mousemove", (event) => { app.mouse = [event.clientX, event.clientY]; }, { passive: true });
  window.stitchwork = app;  // for scripts and tests
  requestAnimationFrame(() => requestAnimationFrame(() => { app.painted = performance.now(); document.documentElement.dataset.ready = "yes"; }));
}).catch((error) => {
  document.body.insertAdjacentHTML("afterbegin", `<p class="failed">This page could not be read: ${escapeHtml(error.message)}. It needs a browser of 2023 or later.</p>`);
  console.error(error);
});
