// What changed between two plans, with the decision behind it; and the steps of a plan's rewriting.
function diffRows(diff) {
  const rows = [], kernel = (k) => k.id + " " + k.name, last = (k) => k.ops[k.ops.length - 1] || "";
  const text = (d) => (d ? `${d.rule}: ${d.why}` : "");
  for (const b of diff.boundaries) {
    const joined = text(b.together), cut = b.apart_in === "b";
    rows.push({ kind: cut ? "cut" : "joined", what: `${b.producer} → ${b.consumer}`, a: cut ? "together" : "apart", b: cut ? "apart" : "together",
                why: [text(b.apart), joined && "joined by " + joined].filter(Boolean).join(" · "), op: b.consumer, ops: [b.producer, b.consumer] });
  }
  for (const c of diff.changed) {
    const why = [c.gained.length && "gains " + c.gained.join(", "), c.lost.length && "loses " + c.lost.join(", "), c.schemes.join(", "),
                 c.launch.a !== c.launch.b && `${c.launch.a} → ${c.launch.b}`, `${us(c.predicted_us.a)} → ${us(c.predicted_us.b)}`].filter(Boolean);
    rows.push({ kind: "changed", what: kernel(c.b), a: kernel(c.a), b: kernel(c.b), why: why.join("; "), op: last(c.b), ops: c.b.ops });
  }
  for (const k of diff.removed) rows.push({ kind: "removed", what: kernel(k), a: kernel(k), b: "", why: k.ops.join(", "), op: last(k), ops: k.ops });
  for (const k of diff.added) rows.push({ kind: "added", what: kernel(k), a: "", b: kernel(k), why: k.ops.join(", "), op: last(k), ops: k.ops });
  const maker = (kernel) => kernel ?? "the library";
  for (const p of diff.products) rows.push({ kind: "product by another kernel", what: p.op, a: maker(p.from), b: maker(p.to), why: "", op: p.op, ops: [p.op] });
  for (const m of diff.moved) rows.push({ kind: "moved", what: m.op, a: m.from.join(", "), b: m.to.join(", "), why: "", op: m.op, ops: [m.op] });
  rows.forEach((row, i) => { row.key = i + " " + row.kind + " " + row.what; });
  return rows;
}

function totalsHtml(page, diff) {
  const [a, b] = diff.plans.map((p) => page.plans[p].name);
  const how = diff.a.method === diff.b.method ? diff.a.method || "not run" : `${diff.a.method || "not run"} and ${diff.b.method || "not run"}`;
  const row = (what, key, text) => {
    const x = diff.a[key], y = diff.b[key];
    if (x === null || y === null) return `<tr><th>${what}</th><td class="number">${x === null ? "not run" : text(x)}</td><td class="number">${y === null ? "not run" : text(y)}</td><td></td></tr>`;
    const change = x === y ? "same" : (y < x ? "−" : "+") + (x === 0 ? text(y) : (100 * Math.abs(y - x) / x).toFixed(1) + " %") + (y < x ? " ▼ less" : " ▲ more");
    return `<tr class="${y < x ? "better" : y > x ? "worse" : ""}"><th>${what}</th><td class="number">${text(x)}</td><td class="number">${text(y)}</td><td>${change}</td></tr>`;
  };
  return `<table class="totals"><thead><tr><th></th><th class="number">${escapeHtml(a)}</th><th class="number">${escapeHtml(b)}</th><th>from ${escapeHtml(a)} to ${escapeHtml(b)}</th></tr></thead><tbody>
    ${row("time, " + how, "predicted_us", us)}${row("memory kernels", "memory_kernels", grouped)}${row("library calls", "library_calls", grouped)}
    ${row("copies", "copies", grouped)}${row("memsets", "memsets", grouped)}${row("grid barriers", "grid_barriers", grouped)}${row("DRAM bytes, " + how, "dram_bytes", bytesText)}</tbody></table>
    <p class="quiet">${counted(diff.same_kernels, "kernel")} the same in both</p>`;
}

function diffPane(app, diff, host) {
  host.innerHTML = `<div class="diff"><div class="totalsbox">${totalsHtml(app.page, diff)}</div><div class="rows"></div></div>`;
  const [a, b] = diff.plans.map((p) => app.plans[p]);
  const text = (key) => ({ value: (row) => row[key], html: (row) => `<span title="${escapeHtml(row[key])}">${escapeHtml(row[key])}</span>` });
  return new Table(host.querySelector(".rows"), [
    { title: "change", value: (row) => row.kind, html: (row) => `<span class="change ${row.kind}">${row.kind}</span>` },
    { title: "what", ...text("what") }, { title: "in " + a.name, ...text("a") }, { title: "in " + b.name, ...text("b") },
    { title: "why", tip: "The decision behind it, with its rule", ...text("why") },
  ], diffRows(diff), { name: "changes", first: 0, memory: app.memory("diff"), key: (row) => row.key,
    pick: (row) => app.selectOp(row.op, [a, b].includes(app.plan) ? app.plan : b, { from: "diff" }),
    chosen: (row) => !!app.selection && app.selection.op >= 0 && row.op === app.opName() });
}

function rewritingsPane(app, plan, host) {
  const rows = plan.rewritings.map((r, i) => ({ ...r, i, now: r.now >= 0 ? plan.parts[0].ops.name[r.now] : "" }));
  return new Table(host, [
    { title: "step", number: true, value: (row) => row.i, html: (row) => row.i + 1 },
    { title: "rule", tip: "stitchwork rules says what each does", value: (row) => row.rule, html: (row) => `<code>${escapeHtml(row.rule)}</code>` },
    { title: "at", tip: "In the graph that the steps before gave", value: (row) => row.at[0], html: (row) => escapeHtml(row.at[0]) },
    { title: "with", value: (row) => row.at.slice(1).join(", "), html: (row) => escapeHtml(row.at.slice(1).join(", ")) },
    { title: "is now", value: (row) => row.now, html: (row) => escapeHtml(row.now) },
    { title: "why", value: (row) => row.why, html: (row) => escapeHtml(row.why) },
  ], rows, { name: "rewritings", first: 0, down: false, memory: { by: 0, down: false }, key: (row) => String(row.i),
    pick: (row) => row.now && app.selectOp(row.now, plan, { from: "rewritings" }),
    chosen: (row) => !!row.now && row.now === app.opName() });
}

// Another tool's launches, each with what it stands for, beside the plan's modelled time.
function profilePane(app, plan, host) {
  const rows = plan.profile.launches.map(([kernel, time, standsFor, rule, steps, why], i) => ({ kernel, time, standsFor, rule, steps, why, i }));
  host.innerHTML = `<div></div><pre class="note" style="white-space:pre-wrap">${escapeHtml((plan.excerpt ? "Above: launches of the steps on this page, and those of no step. Below: the whole profile.\n" : "") + plan.profile.summary + plan.profile.findings)}</pre>`;
  const step = (row) => (row.steps.length ? row.steps.map((s) => plan.rows[s].id).join(", ") : "");
  const modelled = (row) => (row.steps.length === 1 ? plan.rows[row.steps[0]].predicted_us : -1);
  return new Table(host.firstChild, [
    { title: "#", number: true, value: (row) => row.i, html: (row) => row.i },
    { title: "launched", value: (row) => row.kernel, html: (row) => `<code title="${escapeHtml(row.kernel)}">${escapeHtml(row.kernel)}</code>` },
    { title: "imported µs", tip: "Mean over iterations", number: true, value: (row) => row.time ?? -1, html: (row) => (row.time === null ? "" : row.time.toFixed(2)) },
    { title: "modelled µs", tip: "Of the step whose ops it has", number: true, value: modelled, html: (row) => (modelled(row) < 0 ? "" : modelled(row).toFixed(2)) },
    { title: "stands for", value: (row) => row.standsFor, html: (row) => escapeHtml(row.standsFor) },
    { title: "by", tip: "docs/profiles.md says what each rule is", value: (row) => row.rule, html: (row) => escapeHtml(row.rule) },
    { title: "step", tip: "Several: the plan has its ops in several steps, and it is no step's time", value: step, html: (row) => escapeHtml(step(row)) },
    { title: "why not", value: (row) => row.why, html: (row) => `<span title="${escapeHtml(row.why)}">${escapeHtml(row.why)}</span>` },
  ], rows, { name: "profile", first: 0, down: false, memory: app.memory("profile"), key: (row) => String(row.i),
    pick: (row) => row.steps.length && app.select({ plan, step: row.steps[0], group: -1, op: -1 }, { from: "profile" }),
    chosen: (row) => row.steps.some((s) => app.stepsSelected(plan).has(s)) });
}

function decisionsPane(app, plan, host) {
  const rows = plan.load().parts.flatMap((part, p) => part.decisions.map((d, i) => ({ ...d, part: p, i })));
  if (!rows.length) { host.innerHTML = `<p class="note">No decisions: somebody edited this plan, or its planner takes none.</p>`; return null; }
  const text = (key) => ({ value: (row) => row[key], html: (row) => `<span title="${escapeHtml(row[key])}">${escapeHtml(row[key])}</span>` });
  return new Table(host, [
    { title: "#", number: true, value: (row) => row.i, html: (row) => row.i + 1 },
    { title: "pass", ...text("step") }, { title: "subject", ...text("subject") }, { title: "object", ...text("object") },
    { title: "verdict", value: (row) => (row.ok ? "taken" : "refused"), html: (row) => `<b class="${row.ok ? "yes" : "no"}">${row.ok ? "✓ taken" : "✗ refused"}</b>` },
    { title: "rule", value: (row) => row.rule, html: (row) => `<code>${escapeHtml(row.rule)}</code>` },
    { title: "why", ...text("why") }, { title: "what would change it", ...text("needs") },
  ], rows, { name: "decided", first: 0, down: false, memory: app.memory("decided"), key: (row) => row.part + "." + row.i,
    pick: (row) => app.selectOp(plan.find(row.subject) ? row.subject : row.object, plan, { from: "decisions" }),
    chosen: (row) => { const name = app.opName(); return !!name && (row.subject === name || row.object === name); } });
}
