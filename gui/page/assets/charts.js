// Timeline, roofline and memory: what is drawn by numbers. Colours and dashes of planners are those of figures.
const SERIES = ["#777777", "#8A7A1F", "#2B7FA8", "#B04A5C", "#5b4bb5", "#2F8577", "#882255", "#117733"];
const SERIES_DARK = ["#b0b0b0", "#DDCC77", "#88CCEE", "#e58a99", "#a99bff", "#5fc9b8", "#d77fb0", "#5fbf78"];
const seriesColour = (app, plan) => (app.dark ? SERIES_DARK : SERIES)[(plan.style >= 0 ? plan.style : plan.index + 2) % 8];

// Where each step of the entry begins, by its stream and what it waits for; a loop is one bar.
function schedule(plan) {
  const time = plan.metrics.find((m) => m.title === "time"), free = [], begin = [], length = [];
  const gap = plan.page.device.launch_gap_us;
  plan.plan.steps.forEach((step, s) => {
    let at = free[step.stream] || 0;
    for (const other of step.waits || []) at = Math.max(at, begin[other] + length[other]);
    begin.push(at);
    const ran = time && time.values[s] ? parseFloat(time.values[s][1]) : NaN;
    length.push(Number.isFinite(ran) ? ran : step.predicted_us);
    free[step.stream] = at + length[s] + gap;
  });
  return { begin, length, streams: Math.max(1, free.length), total: Math.max(0, ...begin.map((b, i) => b + length[i])),
           method: time ? time.method + " where the step ran, else modelled" : "modelled" };
}

class Timeline {
  constructor(app, plan, host) {
    this.app = app;
    this.plan = plan.load();
    this.times = schedule(plan);
    host.innerHTML = `<canvas class="timeline" tabindex="0" role="img" aria-label="Timeline"></canvas><p class="note">${us(this.times.total)}${plan.excerpt ? " of the steps on this page" : ""} · ${escapeHtml(this.times.method)} · ${counted(this.times.streams, "stream")} · dashed: grid barriers, phases drawn equally long · wheel zooms, dragging moves</p>`;
    this.canvas = host.firstChild;
    this.host = host;
    this.range = d3.scaleLinear().domain([0, Math.max(this.times.total, 1e-3)]);
    this.zoom = d3.zoom().scaleExtent([1, 5000]).on("zoom", (first) => { this.transform = (first && first.transform ? first : d3.event).transform; this.paint(); });
    this.transform = d3.zoomIdentity;
    d3.select(this.canvas).call(this.zoom).on("dblclick.zoom", null);
    this.canvas.addEventListener("click", (event) => {
      const step = this.stepAt(event.offsetX, event.offsetY);
      if (step >= 0) app.select({ plan, step, group: -1, op: -1 }, { from: "timeline" });
    });
    this.canvas.addEventListener("mousemove", (event) => {
      const step = this.stepAt(event.offsetX, event.offsetY);
      app.tip(step >= 0 ? `${plan.rows[step].id} ${plan.rows[step].name} · ${us(this.times.length[step])}` : null);
    });
    this.canvas.addEventListener("mouseleave", () => app.tip(null));
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(host);
    this.resize();
  }
  remove() { this.observer.disconnect(); }
  resize() {
    const w = this.host.clientWidth - 24, h = 40 + this.times.streams * 44;
    if (w <= 0) return;
    this.w = w;
    this.h = h;
    this.canvas.style.width = w + "px";
    this.canvas.style.height = h + "px";
    this.canvas.width = w * devicePixelRatio;
    this.canvas.height = h * devicePixelRatio;
    this.range.range([4, w - 4]);
    this.zoom.translateExtent([[0, 0], [w, h]]).extent([[0, 0], [w, h]]);
    this.paint();
  }
  bar(s) {
    const x = this.transform.rescaleX(this.range), left = x(this.times.begin[s]);
    return [left, 32 + this.plan.plan.steps[s].stream * 44, Math.max(1, x(this.times.begin[s] + this.times.length[s]) - left), 34];
  }
  stepAt(px, py) {
    for (let s = 0; s < this.times.begin.length; ++s) {
      const [x, y, w, h] = this.bar(s);
      if (px >= x && px < x + w && py >= y && py < y + h) return s;
    }
    return -1;
  }
  paint() {
    const c = this.canvas.getContext("2d"), theme = THEMES[this.app.dark ? "dark" : "light"], x = this.transform.rescaleX(this.range);
    const chosen = this.app.stepsSelected(this.plan);
    c.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    c.clearRect(0, 0, this.w, this.h);
    c.font = "11px ui-sans-serif, system-ui, sans-serif";
    c.textBaseline = "middle";
    c.textAlign = "center";
    for (const tick of x.ticks(8)) {
      c.strokeStyle = theme.border;
      c.beginPath();
      c.moveTo(x(tick), 22);
      c.lineTo(x(tick), this.h);
      c.stroke();
      c.fillStyle = theme.muted;
      c.fillText(d3.format("~g")(tick) + " µs", Math.min(this.w - 30, Math.max(30, x(tick))), 11);
    }
    c.textAlign = "left";
    for (let s = 0; s < this.times.begin.length; ++s) {
      const [left, top, w, h] = this.bar(s), row = this.plan.rows[s];
      if (left + w < 0 || left > this.w) continue;
      const metric = this.app.metric(this.plan), value = metric && metric.values[s];
      const fill = value ? d3.interpolateViridis(value[0]) : schemeColour(row.scheme);
      c.fillStyle = fill;
      c.fillRect(left, top, Math.max(1, w - (w > 3 ? 1 : 0)), h);
      const barriers = (this.plan.kernel(s) || {}).grid_barriers || 0;
      c.strokeStyle = c.fillStyle = inkOn(fill);
      if (barriers && w > 6 * barriers) {
        c.setLineDash([3, 3]);
        for (let b = 1; b <= barriers; ++b) {
          c.beginPath();
          c.moveTo(left + w * b / (barriers + 1), top + 4);
          c.lineTo(left + w * b / (barriers + 1), top + h - 4);
          c.stroke();
        }
        c.setLineDash([]);
      }
      if (w > 40) {
        const label = row.kernel >= 0 ? row.id + " " + row.name : row.name, fits = Math.floor((w - 10) / 6.2);
        c.fillText(label.length <= fits ? label : label.slice(0, Math.max(1, fits - 1)) + "…", left + 5, top + h / 2);
      }
      if (chosen.has(s)) {
        c.strokeStyle = theme.accent;
        c.lineWidth = 3;
        c.strokeRect(left - 0.5, top - 1.5, w + 1, h + 3);
        c.lineWidth = 1;
      }
    }
  }
  follow() { this.paint(); }
  locate(step) {
    const [x, y, w] = this.bar(step), box = this.canvas.getBoundingClientRect();
    return [box.x + x + w / 2, box.y + y + 17];
  }
}

function axes(svg, x, y, box, labels, ticks = {}) {
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${box.h - box.bottom})`).call((ticks.x || ((a) => a))(d3.axisBottom(x)));
  svg.append("g").attr("class", "axis").attr("transform", `translate(${box.left},0)`).call((ticks.y || ((a) => a))(d3.axisLeft(y)));
  svg.append("text").attr("class", "label").attr("x", (box.left + box.w - box.right) / 2).attr("y", box.h - 6).attr("text-anchor", "middle").text(labels.x);
  svg.append("text").attr("class", "label").attr("transform", `translate(13,${(box.top + box.h - box.bottom) / 2}) rotate(-90)`).attr("text-anchor", "middle").text(labels.y);
}
const keysHtml = (app, plans) => `<span class="serieskeys">${plans.map((p) => `<span><i style="background:${seriesColour(app, p)}"></i>${escapeHtml(p.name)}</span>`).join("")}</span>`;
const boxOf = (host, most) => ({ w: Math.max(360, Math.min(host.clientWidth - 24, most)), h: Math.max(210, Math.min(420, host.clientHeight - 60)), left: 64, right: 18, top: 12, bottom: 42 });

const DIAMOND = [d3.symbolCircle, d3.symbolDiamond, d3.symbolSquare, d3.symbolTriangle];
class Roofline {
  constructor(app, plans, host) {
    const shown = plans.filter((p) => p.roofline);
    if (!shown.length) { host.innerHTML = `<p class="note">No kernel moves a byte: there is nothing under the roofline.</p>`; return; }
    const first = shown[0].roofline, box = boxOf(host, 1100), marks = shown.flatMap((p) => p.roofline.marks);
    host.innerHTML = `<figure><figcaption><b>Instruction roofline of ${escapeHtml(app.page.device.name)}</b> ${keysHtml(app, shown)} <span class="quiet">${escapeHtml(first.peaks)}</span></figcaption></figure><p class="note">${escapeHtml(app.page.captions.roofline)}</p>`;
    const svg = d3.select(host.firstChild).append("svg").attr("width", box.w).attr("height", box.h).attr("role", "img").attr("aria-label", "Roofline");
    const xs = [...marks.map((m) => m[0]), first.corner[0]], low = Math.min(...xs) / 2, high = Math.max(...xs) * 2;
    const slope = first.corner[1] / first.corner[0], ys = [...marks.map((m) => m[1]), first.corner[1], low * slope];
    const x = d3.scaleLog().domain([low, high]).range([box.left, box.w - box.right]);
    const y = d3.scaleLog().domain([Math.min(...ys) / 1.6, first.corner[1] * 1.6]).range([box.h - box.bottom, box.top]);
    const few = (axis) => axis.ticks(6, "~g");
    axes(svg, x, y, box, { x: first.x, y: first.y }, { x: few, y: few });
    svg.append("path").attr("class", "roof").attr("d", d3.line()([[x(low), y(low * slope)], [x(first.corner[0]), y(first.corner[1])], [x(high), y(first.corner[1])]]));
    // Kernels of one place, as repeated layers have them, are one mark; clicked, it is the first of them.
    this.markOf = new Map();
    shown.forEach((plan, p) => {
      const places = new Map();
      for (const m of plan.roofline.marks) {
        const place = m[0] + " " + m[1];
        (places.get(place) || places.set(place, []).get(place)).push(m);
      }
      const alike = [...places.values()];
      for (const kernels of alike) for (const m of kernels) this.markOf.set(plan.index + "." + m[2], plan.index + "." + kernels[0][2]);
      const title = ([m, ...others]) => `${plan.name} ${plan.rows[m[2]].id} ${plan.rows[m[2]].name}: ${us(plan.rows[m[2]].predicted_us)}, limited by ${plan.rows[m[2]].limited_by}` + (others.length ? `; ${grouped(others.length)} more like it` : "");
      svg.append("g").selectAll("path").data(alike).enter().append("path").attr("class", "mark").attr("data-mark", ([m]) => `${plan.index}.${m[2]}`)
        .attr("transform", ([m]) => `translate(${x(m[0])},${y(m[1])})`).attr("d", d3.symbol().size(64).type(DIAMOND[p % 4])()).attr("fill", seriesColour(app, plan))
        .append("title").text(title);
    });
    this.app = app;
    this.host = host;
    svg.node().addEventListener("click", (event) => {
      const mark = event.target.closest("[data-mark]");
      if (!mark) return;
      const [p, step] = mark.dataset.mark.split(".").map(Number);
      app.focusView(app.plans[p]);
      app.select({ plan: app.plans[p], step, group: -1, op: -1 }, { from: "roofline" });
    });
    this.follow();
  }
  follow() {
    if (!this.host) return;
    const chosen = new Set(this.app.plans.flatMap((p) => [...this.app.stepsSelected(p)].map((s) => this.markOf.get(p.index + "." + s))));
    this.host.querySelectorAll("[data-mark]").forEach((mark) => mark.classList.toggle("selected", chosen.has(mark.dataset.mark)));
  }
}

const BUFFERS_SHOWN = 60;
class Memory {
  constructor(app, plans, host) {
    const shown = plans.filter((p) => p.memory.steps.length);
    if (!shown.length) { host.innerHTML = `<p class="note">The plan has no steps.</p>`; return; }
    const peaks = shown.map((p) => `<li>${escapeHtml(p.name)}: peak ${bytesText(p.memory.peak_bytes)} (modelled) at ${p.memory.peak_step === null ? "a step that is not on this page" : `step ${p.memory.peak_step}${p.excerpt ? " of those on this page" : ""}`}</li>`).join("");
    host.innerHTML = `<div class="pair"><figure><figcaption><b>Device memory over the steps</b> ${keysHtml(app, shown)}</figcaption><ul class="peaks">${peaks}</ul></figure>
      <figure><figcaption><b>Buffers of ${escapeHtml(app.plan.name)}</b> <span class="quiet">from first to last step, largest first; darker: alive at the peak</span></figcaption></figure></div>`;
    const [left, right] = host.querySelectorAll("figure");
    const box = { ...boxOf(host, 620), w: Math.max(320, Math.min(620, host.clientWidth / 2 - 30)) };
    const mib = 1048576, steps = Math.max(...shown.map((p) => p.memory.steps.length));
    const x = d3.scaleLinear().domain([0, steps]).range([box.left, box.w - box.right]);
    const total = (s) => (s.buffer_bytes + s.beside_bytes) / mib;
    const y = d3.scaleLinear().domain([0, Math.max(1e-6, ...shown.flatMap((p) => p.memory.steps.map(total))) * 1.05]).range([box.h - box.bottom, box.top]);
    const svg = d3.select(left).append("svg").attr("width", box.w).attr("height", box.h).attr("role", "img").attr("aria-label", "Memory");
    axes(svg, x, y, box, { x: "step", y: "MiB (modelled)" }, { x: (a) => a.ticks(8), y: (a) => a.ticks(6) });
    for (const plan of shown) {
      const points = plan.memory.steps.flatMap((s, i) => [[x(i), y(total(s))], [x(i + 1), y(total(s))]]);
      svg.append("path").attr("class", "curve").attr("d", d3.line()(points)).attr("stroke", seriesColour(app, plan));
    }
    this.lifetimes(app, app.plan, d3.select(right), box);
  }
  lifetimes(app, plan, figure, box) {
    const last = plan.memory.steps.length, buffers = [...plan.memory.buffers].sort((a, b) => b.bytes - a.bytes).slice(0, BUFFERS_SHOWN);
    const row = 14, h = buffers.length * row + 34, x = d3.scaleLinear().domain([0, last]).range([170, box.w - 74]);
    const svg = figure.append("svg").attr("width", box.w).attr("height", h);
    svg.append("g").attr("class", "axis").attr("transform", "translate(0,20)").call(d3.axisTop(x).ticks(4));
    buffers.forEach((b, i) => {
      const at = 26 + i * row, end = b.last_step === null ? last : b.last_step + 1, g = svg.append("g").attr("class", "life").attr("data-op", b.op);
      g.append("text").attr("x", 164).attr("y", at + 9).attr("text-anchor", "end").text(b.op.length > 24 ? b.op.slice(0, 23) + "…" : b.op);
      g.append("rect").attr("x", x(b.first_step)).attr("y", at).attr("height", row - 4).attr("width", Math.max(2, x(end) - x(b.first_step)))
        .attr("rx", 2).attr("fill", seriesColour(app, plan)).attr("opacity", b.alive_at_peak ? 0.95 : 0.4);
      g.append("text").attr("x", box.w - 68).attr("y", at + 9).text(bytesText(b.bytes));
      g.append("title").text(`${b.op}: ${b.role}, ${bytesText(b.bytes)}, steps ${b.first_step} to ${b.last_step ?? "the end"}${b.aliases.length ? ", also " + b.aliases.join(", ") : ""}`);
    });
    if (plan.memory.buffers.length > buffers.length)
      figure.append("p").attr("class", "quiet").text(`and ${plan.memory.buffers.length - buffers.length} smaller ones`);
  }
  follow() {}
}
