// The address of the page: what is shown and selected, by name, so that a link to it works in every copy of the page.
function selectionOf(plan, node) {
  const n = plan.nodes[node];
  return { plan, node, body: n.body, step: n.step, group: n.kind === KIND.group || n.kind === KIND.op ? n.group : -1, op: n.kind === KIND.op ? n.op : -1 };
}

class Addressed {
  address() {
    const s = this.selection, parts = [];
    if (this.plan !== this.plans[0]) parts.push(["plan", this.plan.name]);
    if (this.beside) parts.push(["beside", this.beside.name]);
    if (this.tab !== "kernels" && !(this.tab === "diff" && this.beside)) parts.push(["tab", this.tab]);
    if (s) {
      const name = this.opName();
      if (name) parts.push(["op", name]);
      else if (s.step >= 0 && s.group >= 0) parts.push(["group", s.plan.rows[s.step].key + "*" + s.plan.kernel(s.step).groups[s.group].dominant]);
      else if (s.step >= 0) parts.push([s.plan.rows[s.step].kernel >= 0 ? "kernel" : "step", s.plan.rows[s.step].key]);
      else if (s.node > 0) parts.push(["layer", String(s.node)]);
      if (name && s.step >= 0 && s.plan.stepsOf(s.body, s.op).length > 1) parts.push(["in", s.plan.rows[s.step].key]);
    } else if (this.absent) parts.push(this.absent);
    return parts.length ? "#" + parts.map(([k, v]) => k + "=" + encodeURIComponent(v)).join("&") : "";
  }
  writeAddress(remember) {
    const now = this.address();
    if (this.reading || now === location.hash) return;
    try { history[remember ? "pushState" : "replaceState"](null, "", now || location.pathname + location.search); } catch (_) { /* in a frame without an address of its own */ }
  }
  readAddress(show) {
    const given = new Map(location.hash.slice(1).split("&").filter(Boolean).map((part) => {
      const at = part.indexOf("=");
      try { return [part.slice(0, at), decodeURIComponent(part.slice(at + 1))]; } catch (_) { return ["", ""]; }
    }));
    if (show && location.hash === this.address()) return;
    this.reading = true;
    const named = (key) => this.plans.find((p) => p.name === given.get(key));
    const plan = named("plan") || this.plans[0], beside = named("beside") || null;
    const changed = plan !== this.plan || beside !== this.beside;
    this.plan = plan.load();
    this.beside = beside === plan ? null : beside;
    this.tab = given.get("tab") || (this.beside ? "diff" : this.tab);
    if (show && changed) this.showPlans();
    let s = null;
    this.absent = null;
    const stepOf = (key) => plan.stepById.get(key);
    if (given.has("op")) {
      const at = plan.find(given.get("op"));
      if (at) {
        const step = given.has("in") ? stepOf(given.get("in")) ?? -1 : -1, node = plan.placeOf(at.body, at.op, step);
        s = node >= 0 ? selectionOf(plan, node) : { plan, node: -1, body: at.body, step: plan.stepsOf(at.body, at.op)[0] ?? -1, group: -1, op: at.op };
      }
    } else if (given.has("kernel") || given.has("step")) {
      const step = stepOf(given.get("kernel") ?? given.get("step"));
      if (step !== undefined) s = { plan, step, group: -1, op: -1 };
    } else if (given.has("group")) {
      const [key, dominant] = given.get("group").split("*"), step = stepOf(key), kernel = step === undefined ? null : plan.kernel(step);
      if (kernel) s = { plan, step, group: kernel.groups.findIndex((g) => g.dominant === dominant), op: -1 };
    } else if (given.has("layer") && plan.nodes[+given.get("layer")]) s = selectionOf(plan, +given.get("layer"));
    if (s && s.node === undefined) { s.node = plan.nodeOfStep.get(s.step) ?? -1; s.body = plan.rows[s.step].body;
      if (s.group >= 0 && s.node >= 0) s.node = plan.nodes[s.node].children.find((c) => plan.nodes[c].group === s.group) ?? s.node; }
    // What the address names and the page has not; told until something is selected.
    if (!s) this.absent = ["op", "kernel", "step", "group"].filter((key) => given.has(key)).map((key) => [key, given.get(key)])[0] || null;
    this.selection = s;
    if (show) this.follow({ from: "address" });
    this.reading = false;
  }
}

function localStored(key, otherwise) {
  try { return localStorage.getItem("stitchwork-" + key) || otherwise; } catch (_) { return otherwise; }
}

