// What is selected: its attributes, its scheme, why it is there, what was refused and what would change that. The
// texts are those of `stitchwork explain`.
const MOST_LISTED = 60;
const ELSEWHERE = -2;  // a step of the plan that the page does not show

const lazyLists = [];  // what makes the lists of folded details, by their data-lazy
const opLink = (name) => `<a href="#" data-op="${escapeHtml(name)}">${escapeHtml(name)}</a>`;
const stepLink = (plan, step) => {
  const row = plan.rows[step];
  return `<a href="#" data-step="${step}">${escapeHtml(row.kernel >= 0 ? row.id + " " + row.name : row.id)}</a>`;
};
const factRow = (what, value) => (value === "" || value === undefined || value === null ? "" : `<tr><th>${what}</th><td>${value}</td></tr>`);
const badgeHtml = (plan, scheme) => `<span class="badge s${scheme}" title="${escapeHtml(plan.page.schemes[scheme].meaning)}">${plan.page.schemes[scheme].badge}</span>`;
const listHtml = (items, most = MOST_LISTED) => {
  const first = items.slice(0, most).join("");
  return items.length <= most ? first : `${first}<details class="more" data-lazy="${lazyLists.push(() => items.slice(most).join("")) - 1}"><summary>${counted(items.length - most, "more")}</summary></details>`;
};
const needsHtml = (needs) => (needs ? `<p class="needs"><b>to change it</b> ${escapeHtml(needs)}</p>` : "");

function verdictHtml(d, withStep = true) {
  const pair = d.object ? `${opLink(d.subject)} → ${opLink(d.object)}` : d.subject ? opLink(d.subject) : "";
  return `<div class="verdict ${d.ok ? "yes" : "no"}">${withStep ? `<small>${escapeHtml(d.step)}</small> ` : ""}${pair}
    <b>${d.ok ? "✓ taken" : "✗ refused"}</b> <code>${escapeHtml(d.rule)}</code> <span>${escapeHtml(d.why)}</span>${d.ok ? "" : needsHtml(d.needs)}</div>`;
}

// What each unit does of what it could do in the kernel's time, a bar each.
function unitsHtml(plan, kernel) {
  const shares = Object.entries(kernel.time_parts?.speed_of_light || {});
  if (!shares.length) return "";
  const bars = shares.sort((a, b) => b[1] - a[1]).map(([unit, share]) =>
    `<tr><th>${escapeHtml(plan.page.units[unit] || unit)}</th><td><span class="bar wide"><i style="width:${(100 * share).toFixed(1)}%"></i></span></td><td class="number">${percent(share)}</td></tr>`);
  return `<h4>Speed of light</h4><p class="quiet">Share of its time that each unit needs at its peak, ${escapeHtml(kernel.time_parts.method)}</p><table class="units">${bars.join("")}</table>`;
}

function timeHtml(kernel) {
  const t = kernel.time_parts;
  if (!t) return "";
  const parts = [["launch", t.launch_us], ["DRAM bandwidth", t.dram_us], ["L2 bandwidth", t.l2_us], ["instruction issue", t.issue_us],
                 ["memory latency", t.latency_us], ["uneven work, tail", t.tail_us], ["grid barriers", t.barrier_us]];
  const most = Math.max(...parts.map((p) => p[1]));
  return `<h4>Time</h4><p class="quiet">What each part would take alone, ${escapeHtml(t.method)}; limited by <b>${escapeHtml(t.limited_by)}</b></p><table class="units">${
    parts.filter((p) => p[1] > 0).map(([what, value]) => `<tr><th>${what}</th><td><span class="bar wide"><i style="width:${(100 * value / most).toFixed(1)}%"></i></span></td><td class="number">${us(value)}</td></tr>`).join("")}</table>`
    + (kernel.not_modelled?.length ? `<details><summary>${counted(kernel.not_modelled.length, "effect")} not modelled</summary>${kernel.not_modelled.map((e) => `<p><code>${escapeHtml(e.id)}</code> ${escapeHtml(e.why)}</p>`).join("")}</details>` : "");
}

// Where the steps `own` meet others in memory, and why they end there: as explain lists neighbours.
function neighbours(plan, body, own, op = -1) {
  const part = plan.parts[body + 1], isOwn = (s) => s >= 0 && own.has(s), result = [], known = new Set();
  const where = (s, b) => {
    if (s === ELSEWHERE) return b.elsewhere + " (not on this page)";
    if (s < 0) return "result";
    const step = part.plan.steps[s], k = part.kernelOfStep[s];
    return k >= 0 ? `kernel ${part.plan.kernels[k].id} ${part.plan.kernels[k].name}` : part.ops.outside[part.byName.get(step.ops[0])];
  };
  const near = new Set([...own].flatMap((s) => part.boundariesOf.get(s) || []));
  const found = [...near].sort((a, b) => a - b).map((i) => part.boundaries[i]).filter((b) => isOwn(b.from) !== isOwn(b.to));
  const about = (b) => b.value === op || b.reader === op;
  for (const b of [...found.filter(about), ...found.filter((b) => !about(b))]) {
    const relation = isOwn(b.to) ? "producer" : "consumer", other = isOwn(b.to) ? b.from : b.to;
    const n = { relation, where: where(other, b), step: other, producer: part.ops.name[b.value], consumer: b.reader >= 0 ? part.ops.name[b.reader] : "", refusal: b.refusal };
    const key = relation + " " + n.where;
    if (known.has(key)) continue;
    known.add(key);
    result.push(n);
  }
  if (op < 0) return result;
  // Kernels that only a refusal ties to this one.
  const computed = new Set(part.homes[op].flatMap((k) => [...part.kernels[k].computes]));
  for (const d of part.decided.get(part.ops.name[op]) || []) {
    if (d.ok || !d.kernels || !part.byName.has(d.object)) continue;
    const other = part.byName.get(d.subject === part.ops.name[op] ? d.object : d.subject);
    const homes = other === undefined ? [] : part.homes[other].filter((k) => part.kernels[k].computes.has(other));
    if (!homes.length || computed.has(other)) continue;
    const kernel = part.plan.kernels[homes[0]], at = `kernel ${kernel.id} ${kernel.name}`;
    const listed = result.find((n) => n.where === at);
    if (!listed) result.push({ relation: "sibling", where: at, step: part.stepOfKernel[homes[0]], producer: part.ops.name[op], consumer: part.ops.name[other], refusal: d });
    else if (listed.relation === "sibling") listed.refusal = d;  // the last decides
  }
  return result;
}

function neighboursHtml(plan, body, list) {
  if (!list.length) return "";
  return "<h4>Neighbours it was not fused with</h4>" + listHtml(list.map((n) => `<div class="verdict ${n.refusal.ok ? "yes" : "no"}"><small>${n.relation}</small>
    ${n.step >= 0 ? `<a href="#" data-step="${plan.firstStep[body + 1] + n.step}">${escapeHtml(n.where)}</a>` : escapeHtml(n.where)}
    <span class="quiet">${opLink(n.producer)}${n.consumer ? " → " + opLink(n.consumer) : ""}</span><br>
    <b>✗</b> <code>${escapeHtml(n.refusal.rule)}</code> <span>${escapeHtml(n.refusal.why)}</span>${needsHtml(n.refusal.needs)}</div>`), 12);
}

const decisionsHtml = (list) => (list.length ? `<details class="decisions" data-lazy="${lazyLists.push(() => listHtml(list.map((d) => verdictHtml(d)))) - 1}"><summary>${counted(list.length, "decision")} that name it</summary></details>` : "");

function placementHtml(plan, body, op, k) {
  const part = plan.parts[body + 1], kernel = part.plan.kernels[k], name = part.ops.name[op], step = plan.firstStep[body + 1] + part.stepOfKernel[k];
  const groups = kernel.groups.map((g, i) => [g, i]).filter(([g]) => g.ops.includes(name));
  const own = groups.find(([g]) => g.dominant === name || g.sub_dominants.includes(name)) || (groups.length === 1 ? groups[0] : null);
  const role = !own ? "inlined" : own[0].dominant === name ? "dominant" : own[0].sub_dominants.includes(name) ? "sub-dominant" : "inlined";
  if (kernel.code) return compiledHtml(plan, part, kernel, name, step);
  const scheme = plan.schemeNumber.get(kernel.schemes[name]), near = kernel.in_phase?.[name];
  const inKernel = (o) => kernel.schemes[part.ops.name[o]] !== undefined;
  const names = (ops) => ops.filter(inKernel).map((o) => opLink(part.ops.name[o])).join(", ");
  return `<div class="placement"><p>${badgeHtml(plan, scheme)} <b>${kernel.schemes[name]}</b>${near ? ` (${near} in its phase)` : ""} in ${stepLink(plan, step)}</p>
    <p class="quiet">${escapeHtml(plan.page.schemes[scheme].meaning)}</p><table>
    ${factRow("Role", role + (kernel.outputs.includes(name) ? ", an output" : "") + `, level ${kernel.levels[name]}`)}
    ${factRow("Group of", own && role !== "dominant" ? opLink(own[0].dominant) : "")}
    ${factRow("Mapping", own ? escapeHtml(part.kernels[k].mappings[own[1]]) : "")}
    ${factRow("Reads", names(part.ops.operands[op]))}${factRow("Read by", names(part.users[op]))}
    ${factRow("Kernel", `${us(kernel.predicted_us)} modelled, limited by ${escapeHtml(kernel.time_parts.limited_by)}`)}</table>
    ${part.kernels[k].forms.length ? "<h4>Forms tried, modelled</h4>" + listHtml(part.kernels[k].forms.map((f) => `<div class="verdict ${f.ok ? "yes" : "no"}">${escapeHtml(f.object)} <b>${f.ok ? "✓ taken" : "✗ refused"}</b> <code>${escapeHtml(f.rule)}</code> ${escapeHtml(f.why)}</div>`), 12) : ""}</div>`;
}

// In a compiler's kernel: which one, and what of the model it computes beside the op.
function compiledHtml(plan, part, kernel, name, step) {
  const others = kernel.ops.filter((op) => op !== name);
  return `<div class="placement"><p>in ${stepLink(plan, step)}${kernel.outputs.includes(name) ? ", an output" : ""}${kernel.schemes[name] === "recomputed" ? ", which others compute again" : ""}</p><table>
    ${factRow("Code", `<code>${escapeHtml(kernel.code.entry)}</code> of ${escapeHtml(kernel.code.module)}`)}${factRow("Instruction", escapeHtml([kernel.code.kind, kernel.code.instruction].join(" ").trim()))}
    ${factRow("Together with", others.slice(0, 40).map(opLink).join(", ") + (others.length > 40 ? ` and ${others.length - 40} more` : ""))}
    ${factRow("Kernel", kernel.time_parts ? `${us(kernel.predicted_us)} simulated, limited by ${escapeHtml(kernel.time_parts.limited_by)}` : "not run")}</table></div>`;
}

function opHtml(plan, s) {
  const body = s.body, part = plan.parts[body + 1], ops = part.ops, op = s.op, name = ops.name[op];
  const own = new Set([...part.homes[op].map((k) => part.stepOfKernel[k]), ...part.calls[op]]);
  const near = neighbours(plan, body, own, op), decided = part.decided.get(name) || [], told = [...near.map((n) => n.refusal)];
  const same = (a, b) => a.subject === b.subject && a.object === b.object && a.rule === b.rule;
  const refusals = decided.filter((d) => !d.ok && !told.some((t) => same(t, d)) && told.push(d));
  const from = ops.from ? ops.from[op] : [];
  return `<h2>${escapeHtml(name)}</h2><p class="quiet">${escapeHtml(ops.opcode[op])} ${escapeHtml(ops.shape[op])}</p>
    <table>${factRow("Layer", escapeHtml(ops.scope[op]))}${factRow("Line", ops.line[op] ? `${ops.line[op]} of ${escapeHtml(plan.page.model.path)}` : "")}
    ${factRow("Operands", ops.operands[op].map((o) => opLink(ops.name[o])).join(", "))}
    ${factRow("Users", part.users[op].slice(0, 40).map((o) => opLink(ops.name[o])).join(", ") + (part.users[op].length > 40 ? ` and ${part.users[op].length - 40} more` : ""))}
    ${factRow("Stands for", from.length && (from.length > 1 || from[0] !== name) ? from.map(escapeHtml).join(", ") + " of the model" : "")}
    ${factRow("Where", part.homes[op].length ? "" : escapeHtml(ops.outside[op]))}${factRow("Library", escapeHtml(ops.library_time[op]))}</table>
    ${rewrittenHtml(plan, name)}
    ${part.homes[op].length > 1 ? `<h4>Computed in ${part.homes[op].length} kernels</h4>` : part.homes[op].length ? "<h4>Where</h4>" : ""}
    ${listHtml(part.homes[op].map((k) => placementHtml(plan, body, op, k)), 4)}
    ${neighboursHtml(plan, body, near)}
    ${refusals.length ? "<h4>Other refusals</h4>" + listHtml(refusals.map((d) => verdictHtml(d)), 12) : ""}
    ${decisionsHtml(decided)}<pre class="hlo">${escapeHtml(ops.text[op])}</pre>`;
}

function rewrittenHtml(plan, name) {
  const steps = plan.rewritings.filter((r) => r.at.includes(name) || (r.now >= 0 && plan.parts[0].ops.name[r.now] === name));
  if (!steps.length) return "";
  return "<h4>Rewritten</h4>" + listHtml(steps.map((r) => `<div class="verdict yes"><code>${escapeHtml(r.rule)}</code> at ${r.at.map(escapeHtml).join(", ")} <span>${escapeHtml(r.why)}</span></div>`), 8);
}

// A compiler's kernel: its code, and what of the model its ops stand for.
function codeHtml(plan, kernel) {
  const code = kernel.code, stands = Object.entries(code.model_ops);
  return `<h4>Compiled</h4><table>${factRow("Code", `<code>${escapeHtml(code.entry)}</code> of ${escapeHtml(code.module)}`)}
    ${factRow("Instruction", escapeHtml([code.kind, code.instruction].join(" ").trim()))}${factRow("Products", code.product ? "it holds a matrix product" : "")}</table>
    <h4>Ops, and of the model</h4>${listHtml(stands.map(([op, of]) => `<p>${opLink(op)} <span class="quiet">${of.length ? of.map(escapeHtml).join(", ") : "the compiler's own"}</span></p>`), 40)}
    ${code.not_linked_to.length ? "<h4>Not linked</h4>" + listHtml(code.not_linked_to.map((name) => `<p>${escapeHtml(name)}</p>`), 12) : ""}`;
}

// What of the model no step of a compiler's plan carries out.
function peerHtml(plan) {
  const gone = Object.entries(plan.plan.peer.gone);
  return `<p class="quiet">Compiled by ${escapeHtml(plan.plan.peer.title)}, from ${escapeHtml(plan.plan.peer.dump)}: its own kernels.</p>${gone.length ? `<h4>${counted(gone.length, "op")} of the model in no step</h4>${listHtml(gone.map(([op, why]) => `<p>${escapeHtml(op)} <span class="quiet">${escapeHtml(why)}</span></p>`), 12)}` : ""}`;
}

const schemesHtml = (plan, row) => `<h4>Schemes</h4><table class="schemes">${plan.page.schemes.map((s, i) => (row.schemes[i] ? `<tr><td>${badgeHtml(plan, i)}</td><td>${counted(row.schemes[i], "op")} <b>${s.name}</b><br><span class="quiet">${escapeHtml(s.meaning)}</span></td></tr>` : "")).join("")}</table>`;
const groupsHtml = (kernel, shown, step) => `<h4>Groups</h4>${listHtml(kernel.groups.map((g, i) => `<p>★ <a href="#" data-group="${step}.${i}">${escapeHtml(g.dominant)}</a>, ${counted(g.ops.length, "op")}<br><span class="quiet">${escapeHtml(shown.mappings[i])}</span></p>`))}`;

function stepHtml(plan, step) {
  const row = plan.rows[step], part = plan.part(step), planned = plan.planStep(step), kernel = plan.kernel(step);
  const kind = row.kernel < 0 ? row.kind : plan.kernel(step).code ? "kernel of " + escapeHtml(plan.plan.peer.title) : "generated kernel";
  let html = `<h2>${escapeHtml(row.kernel >= 0 ? row.id + " " + row.name : row.id)}</h2>
    <p class="quiet">${kind} · <b>${us(row.predicted_us)}</b> ${row.kernel >= 0 ? plan.method : "modelled"} · ${percent(row.share)} of the plan${row.runs !== 1 ? ` · runs ${grouped(row.runs)} times` : ""}</p>`;
  const metrics = plan.metrics.filter((m) => m.values[step]);
  if (metrics.length) html += `<h4>${plan.profile ? "Run and profile" : "Run"}</h4><table>${metrics.map((m) => factRow(escapeHtml(m.title), `${escapeHtml(m.values[step][1])} <small>${escapeHtml(m.method)}</small>`)).join("")}</table>`;
  const own = new Set([plan.local(step)]);
  if (!kernel) {
    const ops = planned.ops || [];
    return html + `<p>${row.kind === "control" ? "A loop or branch: the host decides; what it runs is within it in the graph." : "Not generated: a library or the device does it. Times of calls are a roofline of the device."}</p>
      <table>${factRow("Ops", ops.map(opLink).join(", "))}${factRow("Stream", planned.stream)}${factRow("Trips", planned.trips)}
      ${ops.map((op) => factRow("Library", escapeHtml(part.ops.library_time[part.byName.get(op)]))).join("")}</table>` + neighboursHtml(plan, row.body, neighbours(plan, row.body, own));
  }
  const k = plan.kernelNumber(step);
  const decided = [...new Set(kernel.ops.flatMap((op) => part.decided.get(op) || []))].sort((a, b) => a.at - b.at);
  html += `<table>${factRow("Launch", `${counted(kernel.grid, "block")} of ${grouped(kernel.block)} threads${kernel.cluster ? `, clusters of ${kernel.cluster}` : ""}`)}
    ${factRow("Residency", kernel.blocks_per_sm ? `${counted(kernel.blocks_per_sm, "block")} an SM, ${grouped(kernel.blocks_per_wave)} a wave` : "")}
    ${factRow("Registers", kernel.register_bound ? `at most ${kernel.register_bound} a thread` : "")}
    ${factRow("Grid barriers", kernel.grid_barriers || "none")}${factRow("Shared memory", kernel.shared_bytes ? bytesText(kernel.shared_bytes) + " a block" : "")}
    ${factRow("Scratch", kernel.scratch_bytes ? bytesText(kernel.scratch_bytes) : "")}${factRow("DRAM", bytesText(row.dram_bytes) + ", " + plan.method)}
    ${factRow("Stream", planned.stream)}</table>${kernel.code ? codeHtml(plan, kernel) : ""}
    ${kernel.code ? "" : schemesHtml(plan, row)}
    ${neighboursHtml(plan, row.body, neighbours(plan, row.body, own))}${decisionsHtml(decided)}
    ${timeHtml(kernel)}${unitsHtml(plan, kernel)}
    ${closed(plan, kernel) ? `<p>Its ${grouped(row.ops)} ops are more than a page shows; <code>stitchwork explain</code> tells of each, and <code>plan --json</code> has all.</p>` : ""}
    ${kernel.code || closed(plan, kernel) ? "" : groupsHtml(kernel, part.kernels[k], step)}
    ${closed(plan, kernel) ? "" : `<h4>Writes</h4><p>${kernel.outputs.map(opLink).join(", ")}</p><h4>Reads</h4><p>${part.kernels[k].inputs.map((o) => opLink(part.ops.name[o])).join(", ")}</p>`}`;
  return html;
}

function groupHtml(plan, step, g) {
  const kernel = plan.kernel(step), part = plan.part(step), group = kernel.groups[g], k = plan.kernelNumber(step);
  const shape = (op) => escapeHtml(part.ops.shape[part.byName.get(op)]);
  return `<h2>★ ${escapeHtml(group.dominant)}</h2><p class="quiet">group of ${stepLink(plan, step)}</p>
    <p>The dominant op decides how threads are dealt to elements; the ops of the group follow it.</p>
    <table>${factRow("Mapping", escapeHtml(part.kernels[k].mappings[g]))}${factRow("Sub-dominants", group.sub_dominants.map(opLink).join(", "))}</table>
    <h4>Ops</h4><table class="schemes">${group.ops.map((op) => `<tr><td>${badgeHtml(plan, plan.schemeNumber.get(kernel.schemes[op]))}</td><td>${opLink(op)} <span class="quiet">${shape(op)}</span></td></tr>`).join("")}</table>`;
}

function nodeHtml(plan, node) {
  const n = plan.nodes[node];
  const steps = plan.nodes.filter((m) => m.kind === KIND.step && within(plan, m.id, node)).sort((a, b) => b.us - a.us);
  return `<h2>${escapeHtml(n.label)}</h2><p class="quiet">${n.kind === KIND.layer ? "layer" : n.kind === KIND.body ? "what a loop or branch runs" : "model"} · ${counted(n.steps, "step")}, ${counted(n.ops, "op")} · <b>${us(n.us)}</b> ${plan.method}</p>
    <h4>Steps by time</h4><table>${steps.slice(0, 30).map((m) => `<tr><td>${stepLink(plan, m.step)}</td><td class="number">${us(m.us)}</td></tr>`).join("")}</table>`;
}
const within = (plan, node, outer) => {
  for (; node >= 0; node = plan.nodes[node].parent) if (node === outer) return true;
  return false;
};

const closed = (plan, kernel) => !!plan.excerpt && plan.excerpt.closed.includes(kernel.id);

// What an excerpt leaves out, and how to see it.
function excerptHtml(plan) {
  const e = plan.excerpt;
  if (!e) return "";
  return `<h4>An excerpt</h4><p>This page shows ${counted(e.steps, "step")} of ${grouped(e.of_steps)} and ${grouped(e.ops)} ops of ${grouped(e.of_ops)}: what computes <code>${escapeHtml(e.first)}</code> to <code>${escapeHtml(e.last)}</code>, and what that meets. Kernels, calls and times above are of the whole plan. <code>stitchwork view --around OP</code> shows what is around another op.</p>
    ${e.closed.length ? `<p>Shown without their ops, which are too many: ${e.closed.map(escapeHtml).join(", ")}.</p>` : ""}
    <h4>Costliest steps of the whole plan, ${plan.method}</h4><table>${e.costliest.map((s) => `<tr><td>${escapeHtml(s.id)} ${escapeHtml(s.name)}</td><td class="quiet">${s.around === null ? "" : "around " + escapeHtml(s.around)}</td><td class="number">${us(s.predicted_us)}</td></tr>`).join("")}</table>`;
}

// What a link leads to and the page has not.
function absentHtml(plan, absent) {
  if (!absent) return "";
  return `<p>The link's ${escapeHtml(absent.join(" "))} is not on this page${plan.excerpt ? ", which is an excerpt: <code>stitchwork view --around OP</code> makes one around another op" : ""}.</p>`;
}

function nothingHtml(plan) {
  const options = Object.entries(plan.plan.options).map(([k, v]) => `${escapeHtml(k)}=${escapeHtml(v)}`).join(", "), c = plan.plan.counts;
  return `<h2>${escapeHtml(plan.page.model.path)}</h2><p class="quiet">planned by <b>${escapeHtml(plan.name)}</b> on ${escapeHtml(plan.page.device.name)}</p>
    <table>${factRow("Time", plan.plan.predicted_us === null ? "not run" : us(plan.plan.predicted_us) + " " + plan.method)}${factRow("Kernels", grouped(c.memory_kernels))}${factRow("Library calls", grouped(c.library_calls))}
    ${factRow("Copies, memsets", c.copies + c.memsets ? `${c.copies}, ${c.memsets}` : "")}${factRow("Knobs", options)}
    ${factRow("Peak memory", bytesText(plan.memory.peak_bytes) + " modelled")}${factRow("SHA-256", `<code>${plan.page.model.sha256.slice(0, 16)}…</code>`)}</table>
    ${excerptHtml(plan)}
    <p class="quiet">Select a kernel, a group or an op, anywhere: in the graph, the outline, the table, the timeline or the source. What it is, <i>why</i> it is there and what was refused appear here. Double-click folds and unfolds; <kbd>?</kbd> lists the keys.</p>
    ${plan.plan.peer ? peerHtml(plan) : ""}
    <p class="quiet">${plan.plan.peer ? "Times of its kernels are " + (plan.plan.peer.method || "not there: it was not run") + ", those of library calls and copies modelled" : "Every time is modelled from the plan"}${plan.metrics.length ? ", but for a run's and a profile's, which say how they were obtained" : ""}.</p>`;
}
