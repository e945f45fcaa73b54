// The document of the page, indexed: plans, ops by name and number, steps, nodes of the fold tree.
const KIND = { model: 0, layer: 1, body: 2, step: 3, group: 4, op: 5 };

async function readDocument() {
  const text = document.getElementById("data").textContent;
  const packed = atob(text), bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; ++i) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

const escapeHtml = (text) =>
  String(text).replace(/[&<>"']/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" })[c]);
const us = (value) => (value === null ? "not run" : value >= 1e5 ? (value / 1000).toFixed(1) + " ms" : value.toFixed(value >= 1000 ? 1 : 2) + " µs");
const grouped = (value) => String(Math.round(value)).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
const counted = (count, what) => grouped(count) + " " + what + (count === 1 ? "" : what.endsWith("x") ? "es" : "s");
const bytesText = (bytes) => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (; bytes >= 1024 && i < 4; ++i) bytes /= 1024;
  return (i === 0 ? grouped(bytes) : bytes.toFixed(bytes < 10 ? 2 : 1)) + " " + units[i];
};
const percent = (share) => (100 * share).toFixed(share < 0.0995 ? 1 : 0) + " %";

// A decision of the document, by its fields.
const decision = (row) => ({ step: row[0], subject: row[1], object: row[2], ok: row[3] === 1, rule: row[4], why: row[5],
                             needs: row[6], kernels: row[7] === 1 });

class Plan {
  constructor(page, index) {
    Object.assign(this, page.plans[index]);
    this.index = index;
    this.page = page;
    // How its times were obtained: a compiler's own kernels are simulated, if they were run.
    this.method = !this.plan.peer ? "modelled" : this.plan.peer.method || "not run";
    this.schemeNumber = new Map(page.schemes.map((s, i) => [s.name, i]));
    this.indexSteps();
  }

  // Indexes ops and nodes when the plan is first looked at: a page of several plans opens as fast as one of one.
  load() {
    if (this.loaded) return this;
    this.loaded = true;
    this.parts.forEach((part, p) => this.indexPart(part, p === 0 ? this.plan : this.plan.computations[p - 1]));
    this.indexNodes();
    return this;
  }

  indexPart(part, plan) {
    part.plan = plan;
    part.byName = new Map(part.ops.name.map((name, i) => [name, i]));
    part.homes = part.ops.name.map(() => []);  // kernels that evaluate the op
    part.calls = part.ops.name.map(() => []);  // steps outside kernels that do
    part.users = part.ops.name.map(() => []);
    part.ops.operands.forEach((operands, op) => operands.forEach((o) => part.users[o].push(op)));
    plan.kernels.forEach((kernel, k) => kernel.ops.forEach((op) => part.homes[part.byName.get(op)].push(k)));
    // Kernels are numbered by id, which steps name.
    const byId = new Map(plan.kernels.map((kernel, k) => [kernel.id, k]));
    part.stepOfKernel = [];
    part.kernelOfStep = plan.steps.map((step, s) => {
      if (step.kind !== "kernel") {
        if (step.kind !== "memset") step.ops.forEach((op) => part.calls[part.byName.get(op)].push(s));
        return -1;
      }
      part.stepOfKernel[byId.get(step.id)] = s;
      return byId.get(step.id);
    });
    part.decisions = part.decisions.map((row, at) => Object.assign(decision(row), { at }));
    part.decided = new Map();  // by the name of an op: the decisions that name it
    part.decisions.forEach((d) => {
      for (const name of new Set([d.subject, d.object]))
        if (name) (part.decided.get(name) || part.decided.set(name, []).get(name)).push(d);
    });
    part.boundaries = part.boundaries.map((b) => ({ value: b[0], reader: b[1], from: b[2], to: b[3], refusal: decision(b[4]), elsewhere: b[5] }));
    part.boundariesOf = new Map();  // by step: those at one of its ends, as they come
    part.boundaries.forEach((b, i) => {
      for (const step of b.from === b.to ? [b.from] : [b.from, b.to])
        if (step >= 0) (part.boundariesOf.get(step) || part.boundariesOf.set(step, []).get(step)).push(i);
    });
    part.kernels.forEach((k) => { k.computes = new Set(k.computes); k.forms = k.forms.map(decision); });
  }

  indexNodes() {
    this.nodes = this.graph.nodes.map((n, i) => ({ id: i, kind: n[0], parent: n[1], label: n[2], step: n[3], group: n[4],
                                                  op: n[5], body: n[6], children: [], depth: 0, ops: 0, steps: 0, us: 0 }));
    this.nodeOfStep = new Map();
    this.placesOf = new Map();  // "body:op" -> nodes
    for (const n of this.nodes) {
      if (n.parent >= 0) {
        this.nodes[n.parent].children.push(n.id);
        n.depth = this.nodes[n.parent].depth + 1;
      }
      if (n.kind === KIND.step || (n.kind === KIND.op && n.group < 0 && n.step >= 0 && !this.nodeOfStep.has(n.step)))
        if (!this.nodeOfStep.has(n.step)) this.nodeOfStep.set(n.step, n.id);
      if (n.kind === KIND.op) {
        const key = n.body + ":" + n.op;
        (this.placesOf.get(key) || this.placesOf.set(key, []).get(key)).push(n.id);
      }
    }
    for (let i = this.nodes.length - 1; i >= 0; --i) {
      const n = this.nodes[i];
      if (n.kind === KIND.op) n.ops = 1;
      if (n.kind === KIND.step) { n.steps = 1; n.us = this.rows[n.step].predicted_us * this.rows[n.step].runs; }
      if (n.parent < 0) continue;
      const up = this.nodes[n.parent];
      up.ops += n.ops;
      up.steps += n.steps;
      up.us += n.us;
    }
  }

  indexSteps() {
    let first = 0;
    this.firstStep = [this.plan, ...(this.plan.computations || [])].map((plan) => {
      const at = first;
      first += plan.steps.length;
      return at;
    });
    this.total = this.rows.reduce((sum, row) => sum + (row.body < 0 ? row.predicted_us : 0), 0);
    this.stepById = new Map();
    this.rows.forEach((row) => {
      const key = (row.body < 0 ? "" : row.within + "/") + row.id;
      if (!this.stepById.has(key)) this.stepById.set(key, row.step);
      row.key = key;
      row.scheme = [4, 3, 2, 1, 0, 5].find((s) => row.schemes[s] > 0);
      row.badges = this.page.schemes.filter((_, s) => row.schemes[s] > 0).map((s) => s.badge).join("");
    });
  }

  part(step) { return this.parts[step >= 0 ? this.rows[step].body + 1 : 0]; }
  local(step) { return step - this.firstStep[this.rows[step].body + 1]; }
  planStep(step) { return this.part(step).plan.steps[this.local(step)]; }
  kernelNumber(step) { return step < 0 ? -1 : this.part(step).kernelOfStep[this.local(step)]; }
  kernel(step) {
    const k = this.kernelNumber(step);
    return k < 0 ? null : this.part(step).plan.kernels[k];
  }
  // The scheme of what the node stands for: of an op within its kernel, of a kernel the one that reaches furthest.
  schemeOf(node) {
    if (node.step < 0) return undefined;
    if (node.kind === KIND.step) return this.rows[node.step].scheme;
    const kernel = this.kernel(node.step);
    return kernel ? this.schemeNumber.get(kernel.schemes[this.part(node.step).ops.name[node.op]]) : undefined;
  }
  isDominant(node) {
    return node.kind === KIND.op && node.group >= 0 && this.nodes[node.parent].op === node.op;
  }
  find(name) {
    this.load();
    for (let p = 0; p < this.parts.length; ++p)
      if (this.parts[p].byName.has(name)) return { body: p - 1, op: this.parts[p].byName.get(name) };
    return null;
  }
  // Where an op is shown: materialised, else first evaluated; in `step` if it is there, too.
  placeOf(body, op, step = -1) {
    const places = this.placesOf.get(body + ":" + op) || [];
    const inStep = step >= 0 ? places.filter((p) => this.nodes[p].step === step) : [];
    const among = inStep.length ? inStep : places;
    return among.find((p) => this.isDominant(this.nodes[p])) ?? among[0] ?? -1;
  }
  // The steps of the op, as rows number them.
  stepsOf(body, op) {
    const part = this.parts[body + 1], first = this.firstStep[body + 1];
    return [...part.homes[op].map((k) => first + part.stepOfKernel[k]), ...part.calls[op].map((s) => first + s)];
  }
  source(step) {
    const part = this.part(step), k = this.kernelNumber(step);
    if (k < 0) return null;
    const source = part.kernels[k].source;
    if (source.problem) return { problem: source.problem };
    const name = part.plan.kernels[k].name;
    const identifier = (op) => op.replace(/[^A-Za-z0-9]/g, "_");
    // Names of ops stay marked, so that they can be selected.
    return { pieces: this.page.sources[source.text].split(/(\u0001[^\u0002]*\u0002)/).map((piece) => {
      if (piece[0] !== "\u0001") return { text: piece };
      const mark = piece.slice(1, -1);
      if (mark === "k") return { text: name };
      const op = source.names[parseInt(mark, 10)];
      return { text: mark.endsWith("n") ? op : identifier(op), op };
    }) };
  }
}
