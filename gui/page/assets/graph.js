// The graph of a plan on a canvas: pan and zoom by d3, levels of detail by how large a box is on the screen.
const TEXT_FROM = 0.42, DETAIL_FROM = 0.2;
// Of fewer pixels of width than these, boxes are painted a path a colour.
const SMALL = 14;

class GraphView {
  constructor(app, plan, host) {
    this.app = app;
    this.plan = plan;
    this.layout = plan.layout || (plan.layout = new Layout(plan, plan.graph.open));
    this.element = document.createElement("div");
    this.element.className = "view";
    this.element.innerHTML = `<canvas tabindex="0" role="img" aria-label="Graph of ${escapeHtml(plan.name)}"></canvas>
      <div class="viewname"><b>${escapeHtml(plan.name)}</b> ${escapeHtml(planSummary(plan))}</div>
      <div class="zoomers"><button data-do="in" title="Zoom in (+)">+</button><button data-do="out" title="Zoom out (−)">−</button><button data-do="fit" title="Fit (Space)">⤢</button></div>`;
    host.append(this.element);
    this.canvas = this.element.querySelector("canvas");
    this.context = this.canvas.getContext("2d");
    this.transform = d3.zoomIdentity;
    this.selected = -1;
    this.hits = new Set();
    this.also = new Set();
    this.fits = new Map();
    this.zoom = d3.zoom().scaleExtent([0.005, 4]).on("zoom", (first) => {
      const event = first && first.transform ? first : d3.event;  // of d3 6 and later, of d3 5
      this.transform = event.transform;
      this.touched = this.touched || !!event.sourceEvent;
      this.draw();
    });
    d3.select(this.canvas).call(this.zoom).on("dblclick.zoom", null);
    this.canvas.addEventListener("click", (event) => this.click(event));
    this.canvas.addEventListener("dblclick", (event) => this.doubleClick(event));
    this.canvas.addEventListener("mousemove", (event) => this.hover(event));
    this.canvas.addEventListener("mouseleave", () => app.tip(null));
    this.element.querySelector(".zoomers").addEventListener("click", (event) => {
      const what = event.target.dataset.do;
      if (what === "fit") this.fit();
      else if (what) this.scaleBy(what === "in" ? 1.4 : 1 / 1.4);
    });
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.element);
    this.resize();
  }

  remove() {
    this.observer.disconnect();
    this.element.remove();
  }

  resize() {
    const w = this.element.clientWidth, h = this.element.clientHeight;
    if (!w || !h || (w === this.w && h === this.h && this.ratio === devicePixelRatio)) return;
    this.w = w;
    this.h = h;
    this.ratio = devicePixelRatio;
    this.zoom.extent([[0, 0], [w, h]]);  // which d3 would ask for each time
    this.canvas.width = w * this.ratio;
    this.canvas.height = h * this.ratio;
    if (!this.touched) this.fit(false);
    else this.paint();
  }

  fitted(rect, most) {
    const pad = 24, scale = Math.min(most, (this.w - 2 * pad) / rect.w, (this.h - 2 * pad) / rect.h);
    return d3.zoomIdentity.translate(this.w / 2, this.h / 2).scale(Math.max(scale, 0.005))
      .translate(-rect.x - rect.w / 2, -rect.y - rect.h / 2);
  }
  go(transform, smooth = true) {
    const quick = !smooth || this.layout.boxes.length > 1500 || matchMedia("(prefers-reduced-motion: reduce)").matches;
    d3.select(this.canvas).interrupt();
    if (quick) d3.select(this.canvas).call(this.zoom.transform, transform);
    else d3.select(this.canvas).transition().duration(220).call(this.zoom.transform, transform);
  }
  fit(smooth = true) {
    this.touched = false;
    this.go(this.fitted({ x: 0, y: 0, w: this.layout.width, h: this.layout.height }, 1.25), smooth);
  }
  scaleBy(factor) {
    this.touched = true;
    d3.select(this.canvas).call(this.zoom.scaleBy, factor);
  }
  // Moves so that the node can be seen and read; stays where it is if that is so already.
  show(node, force = false) {
    const r = this.layout.rects[node];
    if (!r) return;
    const t = this.transform, x = t.applyX(r.x), y = t.applyY(r.y), w = r.w * t.k, h = r.h * t.k;
    const inside = x >= 8 && y >= 8 && x + Math.min(w, this.w - 16) <= this.w - 8 && y + Math.min(h, this.h - 16) <= this.h - 8;
    if (inside && t.k >= TEXT_FROM && !force) return;
    this.touched = true;
    const grown = { x: r.x - 120, y: r.y - 90, w: r.w + 240, h: r.h + 180 };
    this.go(this.fitted(grown, Math.max(Math.min(t.k, 1.2), 0.8)));
  }

  // Lays out again; `anchor` stays where it is on the screen.
  relayout(anchor = -1) {
    const before = anchor >= 0 && this.layout.rects[anchor], t = this.transform;
    const held = before && [t.applyX(before.x), t.applyY(before.y)];
    this.layout.run();
    const after = anchor >= 0 && this.layout.rects[anchor];
    if (held && after && this.touched)
      this.go(d3.zoomIdentity.translate(held[0] - after.x * t.k, held[1] - after.y * t.k).scale(t.k), false);
    else if (!this.touched) this.fit(false);
    else this.draw();
  }

  boxAt(x, y) {
    for (let i = this.layout.boxes.length - 1; i >= 0; --i) {
      const { rect: r } = this.layout.boxes[i];
      if (x >= r.x && x < r.x + r.w && y >= r.y && y < r.y + r.h) return this.layout.boxes[i];
    }
    return null;
  }
  pointed(event) {
    const [x, y] = this.transform.invert([event.offsetX, event.offsetY]);
    return { x, y, box: this.boxAt(x, y) };
  }
  // The corner of a box that folds it.
  onFold(at) {
    const { box, x, y } = at;
    if (!box || !this.plan.nodes[box.node].children.length || this.transform.k < DETAIL_FROM) return false;
    return x > box.rect.x + box.rect.w - 24 && y < box.rect.y + 24;
  }
  click(event) {
    const at = this.pointed(event);
    if (!at.box) return this.app.select(null);
    if (this.onFold(at)) return this.app.fold(this.plan, at.box.node);
    this.app.focusView(this.plan);
    this.app.select(selectionOf(this.plan, at.box.node), { from: "graph" });
  }
  doubleClick(event) {
    const at = this.pointed(event);
    if (at.box && !this.onFold(at)) this.app.fold(this.plan, at.box.node);
  }
  hover(event) {
    const at = this.pointed(event);
    this.canvas.style.cursor = at.box ? "pointer" : "grab";
    if (!at.box || (this.transform.k >= 0.8 && !at.box.open)) {
      const n = at.box && this.plan.nodes[at.box.node];
      return this.app.tip(n && n.label.length > 22 ? n.label : null);
    }
    this.app.tip(boxTitle(this.plan, at.box.node));
  }

  draw() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => { this.pending = 0; this.paint(); });
  }

  paint() {
    const began = performance.now(), c = this.context, t = this.transform, k = t.k;
    const theme = (this.theme = THEMES[this.app.dark ? "dark" : "light"]);
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.fillStyle = theme.canvas;
    c.fillRect(0, 0, this.w, this.h);
    c.translate(t.x, t.y);
    c.scale(k, k);
    const seen = { x0: -t.x / k, y0: -t.y / k, x1: (this.w - t.x) / k, y1: (this.h - t.y) / k };
    const visible = (r) => r.x < seen.x1 && r.x + r.w > seen.x0 && r.y < seen.y1 && r.y + r.h > seen.y0;
    const boxes = this.layout.boxes.filter((b) => visible(b.rect));
    const tiny = (box) => box.rect.w * k < SMALL;
    for (const box of boxes) if (box.open && !tiny(box)) this.container(box);
    this.paintSmallContainers(boxes.filter((box) => box.open && tiny(box)));
    this.paintEdges(seen);
    this.named = [];
    for (const box of boxes) if (box.open) this.title(box);
    const small = [];
    for (const box of boxes) if (!box.open) (tiny(box) ? small.push(box) : this.box(box));
    this.paintRects(small, (n) => (n.kind >= KIND.step ? this.fillOf(n) : this.theme.line));
    if (k >= TEXT_FROM) this.paintStubs(seen);
    for (const box of boxes) {
      if (this.hits.has(box.node)) this.frame(box.rect, theme.hit, 2);
      if (this.also.has(box.node)) this.frame(box.rect, theme.accent, 1.5, [5, 3]);
      if (box.node === this.selected) this.frame(box.rect, theme.accent, 3);
    }
    this.drawn = { boxes: boxes.length, edges: this.layout.edges.length, ms: performance.now() - began };
  }

  frame(r, colour, width, dash = []) {
    const c = this.context, w = Math.max(width, width * 0.8 / this.transform.k);
    c.strokeStyle = colour;
    c.lineWidth = w;
    c.setLineDash(dash);
    c.beginPath();
    c.roundRect(r.x - 2 - w / 2, r.y - 2 - w / 2, r.w + 4 + w, r.h + 4 + w, 7);
    c.stroke();
    c.setLineDash([]);
  }

  fillOf(node) {
    const metric = this.app.metric(this.plan);
    if (!metric) return schemeColour(this.plan.schemeOf(node));
    const value = node.step >= 0 ? metric.values[node.step] : null;
    return value ? d3.interpolateViridis(value[0]) : LIBRARY_COLOUR;
  }

  // How much of its colour is seen behind what a kernel holds.
  tint() { return this.app.dark ? 0.2 : 0.13; }

  container(box) {
    const c = this.context, r = box.rect, n = this.plan.nodes[box.node];
    c.beginPath();
    c.roundRect(r.x, r.y, r.w, r.h, 8);
    c.fillStyle = n.kind >= KIND.step ? this.theme.paper : this.theme.container;
    c.fill();
    if (n.kind >= KIND.step) {
      c.globalAlpha = this.tint();
      c.fillStyle = this.fillOf(n);
      c.fill();
      c.globalAlpha = 1;
    }
    c.lineWidth = n.kind === KIND.step ? 1.4 : 1;
    c.strokeStyle = n.kind === KIND.step ? this.fillOf(n) : this.theme.border;
    if (n.kind === KIND.group) c.setLineDash([4, 3]);
    c.stroke();
    c.setLineDash([]);
  }

  title(box) {
    const k = this.transform.k, c = this.context, r = box.rect, n = this.plan.nodes[box.node];
    // From afar, names of layers stand above them, where they do not cover what is in them.
    if (k < 0.3 && n.kind === KIND.layer) {
      const size = 11 / k, room = r.w - 6 / k;
      const name = { x: r.x + 2 / k, y: r.y - 7 / k, w: room };
      // Outer layers come first; a name that would stand on another is left out.
      const meets = (other) => Math.abs(other.y - name.y) < size && other.x < name.x + name.w && name.x < other.x + other.w;
      if (r.w * k <= 30 || this.plan.nodes[n.parent].kind === KIND.model || this.named.some(meets)) return;
      const cut = this.text(name.x, name.y, n.label.split("/").slice(-2).join("/"), this.theme.text, size, 600, room);
      name.w = this.context.measureText(cut).width;
      this.named.push(name);
      return;
    }
    if (k < 0.1) return;
    // Titles of what holds others keep a size that can be read, as far as there is room above the content.
    const size = Math.min(21, Math.max(12, 10 / k));
    if (size * k < 5) return;
    this.text(r.x + 10, r.y + 14, boxTitle(this.plan, box.node), n.kind === KIND.layer ? this.theme.muted : this.theme.text, size, 600, r.w - 40);
    if (k >= DETAIL_FROM) this.sign(r, "−");
  }

  sign(r, what) {
    const c = this.context;
    c.fillStyle = this.theme.muted;
    c.font = "500 14px ui-sans-serif, system-ui, sans-serif";
    c.textAlign = "center";
    c.fillText(what, r.x + r.w - 12, r.y + 14);
    c.textAlign = "left";
  }

  text(x, y, what, colour, size, weight, width) {
    const c = this.context;
    c.font = `${weight} ${size}px ui-sans-serif, system-ui, "DejaVu Sans", sans-serif`;
    c.fillStyle = colour;
    c.textBaseline = "middle";
    const cut = this.fitting(what, size, weight, width);
    c.fillText(cut, x, y);
    return cut;
  }
  // Cut to the width; measured once a text.
  fitting(what, size, weight, width) {
    const key = size + " " + weight + " " + Math.round(width) + what, known = this.fits.get(key);
    if (known !== undefined) return known;
    let cut = what;
    const c = this.context, wide = c.measureText(what).width;
    if (wide > width) {
      cut = what.slice(0, Math.max(1, Math.floor(what.length * width / wide)));
      while (cut.length > 1 && c.measureText(cut + "…").width > width) cut = cut.slice(0, -1);
      cut += "…";
    }
    if (this.fits.size > 20000) this.fits.clear();
    this.fits.set(key, cut);
    return cut;
  }

  box(box) {
    const c = this.context, r = box.rect, n = this.plan.nodes[box.node], k = this.transform.k, theme = this.theme;
    const scheme = n.kind >= KIND.step ? this.plan.schemeOf(n) : undefined, holds = n.kind < KIND.step;
    const metric = this.app.metric(this.plan), fill = holds ? null : this.fillOf(n);
    c.beginPath();
    c.roundRect(r.x, r.y, r.w, r.h, 6);
    c.fillStyle = theme.paper;
    c.fill();
    if (fill) {
      c.globalAlpha = metric ? 1 : k < TEXT_FROM ? 0.75 : this.app.dark ? 0.24 : 0.2;
      c.fillStyle = fill;
      c.fill();
      c.globalAlpha = 1;
    }
    c.lineWidth = scheme === 4 ? 2.6 : scheme === 1 || scheme === 2 || scheme === 3 ? 1.5 : 0.9;
    if (this.plan.isDominant(n)) c.lineWidth += 1;
    c.strokeStyle = holds ? theme.line : borderColour(scheme, this.app.dark);
    if (scheme === 5) c.setLineDash([4, 3]);
    c.stroke();
    c.setLineDash([]);
    if (k < TEXT_FROM) return;
    if (scheme === 2) {
      c.lineWidth = 0.8;
      c.beginPath();
      c.roundRect(r.x + 3, r.y + 3, r.w - 6, r.h - 6, 4);
      c.stroke();
    }
    const ink = metric && fill ? inkOn(fill) : theme.text, quiet = metric && fill ? ink : theme.muted;
    let x = r.x + 11;
    if (!holds) {
      const chip = schemeColour(scheme);
      c.fillStyle = chip;
      c.beginPath();
      c.roundRect(r.x + 9, r.y + 8, 17, 17, 4);
      c.fill();
      c.fillStyle = inkOn(chip);
      c.font = "700 11px ui-sans-serif, system-ui, sans-serif";
      c.textAlign = "center";
      c.textBaseline = "middle";
      c.fillText(scheme === undefined ? "·" : this.plan.page.schemes[scheme].badge, r.x + 17.5, r.y + 17);
      c.textAlign = "left";
      x = r.x + 32;
    }
    const star = this.plan.isDominant(n) || n.kind === KIND.group ? "★ " : "";
    const folds = n.children.length > 0;
    this.text(x, r.y + 17, star + n.label, ink, 12.5, 600, r.x + r.w - x - (folds ? 24 : 8));
    this.text(x, r.y + 34, boxNote(this.plan, n, metric), quiet, 11, 400, r.x + r.w - x - 8);
    if (folds) this.sign(r, "+");
  }

  // Boxes of a few pixels: their colours, a path a colour.
  paintRects(boxes, colourOf) {
    const byColour = new Map();
    for (const box of boxes) {
      const colour = colourOf(this.plan.nodes[box.node]);
      (byColour.get(colour) || byColour.set(colour, []).get(colour)).push(box.rect);
    }
    for (const [colour, rects] of byColour) {
      this.context.fillStyle = colour;
      this.context.beginPath();
      for (const r of rects) this.context.rect(r.x, r.y, r.w, r.h);
      this.context.fill();
    }
  }
  // What holds others and is a few pixels wide: the colours of `container` without its border, outer kinds first.
  paintSmallContainers(boxes) {
    const tinted = new Map();
    const tint = (fill) => tinted.get(fill) || tinted.set(fill, d3.interpolateRgb(this.theme.paper, fill)(this.tint())).get(fill);
    const byKind = d3.group(boxes, (box) => this.plan.nodes[box.node].kind);
    for (const kind of [...byKind.keys()].sort())
      this.paintRects(byKind.get(kind), (n) => (kind < KIND.step ? this.theme.container : tint(this.fillOf(n))));
  }

  paintEdges(seen) {
    const c = this.context, k = this.transform.k, paths = new Map(), near = this.selected;
    const chosen = new Path2D();
    let any = false;
    for (const edge of this.layout.edges) {
      const p = edge.points;
      edge.box = edge.box || boundsOf(p);
      if (edge.box[0] > seen.x1 || edge.box[2] < seen.x0 || edge.box[1] > seen.y1 || edge.box[3] < seen.y0) continue;
      if ((edge.box[2] - edge.box[0] + edge.box[3] - edge.box[1]) * k < 3) continue;
      const mine = edge.from === near || edge.to === near, width = edge.chip ? 1 : 0.7 + Math.log2(Math.max(1, edge.bytes)) / 11;
      const key = (edge.chip ? "c" : "d") + Math.round(width * 2);
      if (mine) any = true;
      const path = mine ? chosen : paths.get(key) || paths.set(key, Object.assign(new Path2D(), { chip: edge.chip, width })).get(key);
      path.moveTo(p[0][0], p[0][1]);
      for (let i = 1; i < p.length; ++i) {
        if (k < 0.15) { path.lineTo(p[i][0], p[i][1]); continue; }
        const [x0, y0] = p[i - 1], [x1, y1] = p[i];
        if (edge.turn) path.bezierCurveTo((x0 + x1) / 2, y0, (x0 + x1) / 2, y1, x1, y1);
        else path.bezierCurveTo(x0, (y0 + y1) / 2, x1, (y0 + y1) / 2, x1, y1);
      }
      if (k >= DETAIL_FROM) {
        const [x, y] = p[p.length - 1];
        if (edge.turn) { path.moveTo(x - 5, y - 3); path.lineTo(x, y); path.lineTo(x - 5, y + 3); }
        else { path.moveTo(x - 3, y - 5); path.lineTo(x, y); path.lineTo(x + 3, y - 5); }
      }
    }
    for (const path of paths.values()) {
      c.strokeStyle = path.chip ? this.theme.chip : this.theme.edge;
      c.lineWidth = Math.max(path.width, 0.6 / k);
      c.setLineDash(path.chip && k > DETAIL_FROM ? [3, 3] : []);
      c.stroke(path);
    }
    c.setLineDash([]);
    if (!any) return;
    c.strokeStyle = this.theme.accent;
    c.lineWidth = Math.max(2, 1.5 / k);
    c.stroke(chosen);
  }

  paintStubs(seen) {
    const c = this.context;
    const dot = (x, y, number) => {
      if (x < seen.x0 || x > seen.x1 || y < seen.y0 || y > seen.y1) return;
      c.fillStyle = this.theme.paper;
      c.strokeStyle = this.theme.edge;
      c.lineWidth = 0.8;
      c.beginPath();
      c.arc(x, y, 8, 0, 7);
      c.fill();
      c.stroke();
      c.fillStyle = this.theme.muted;
      c.font = "500 9px ui-sans-serif, system-ui, sans-serif";
      c.textAlign = "center";
      c.textBaseline = "middle";
      c.fillText(number, x, y + 0.5);
      c.textAlign = "left";
    };
    for (const stub of this.layout.stubs) {
      dot(stub.out[0], stub.out[1], stub.number);
      dot(stub.in[0], stub.in[1], stub.number);
    }
  }

  // Where the middle of a node's title is in the window: what tests click.
  locate(node) {
    const r = this.layout.rects[this.layout.shown[node]], box = this.canvas.getBoundingClientRect(), t = this.transform;
    return [box.x + t.applyX(r.x + Math.min(r.w / 2, 60)), box.y + t.applyY(r.y + Math.min(r.h / 2, 14))];
  }
}

const planSummary = (plan) => {
  const c = plan.plan.counts;
  return `${counted(c.memory_kernels, "kernel")} · ${counted(c.library_calls, "library call")} · ${us(plan.plan.predicted_us)}${plan.plan.predicted_us === null ? "" : " " + plan.method}`;
};

function boxTitle(plan, node) {
  const n = plan.nodes[node];
  if (n.kind === KIND.op) {
    const ops = plan.part(n.step).ops;
    return `${n.label}: ${ops.opcode[n.op]} ${ops.shape[n.op]}`;
  }
  if (n.kind === KIND.group) return "★ " + n.label;
  if (n.kind === KIND.step) return `${n.label} · ${us(plan.rows[n.step].predicted_us)}`;
  return `${n.label} · ${counted(n.steps, "step")} · ${us(n.us)}`;
}

function boxNote(plan, n, metric) {
  const value = metric && n.step >= 0 && n.kind <= KIND.step ? metric.values[n.step] : null;
  if (n.kind === KIND.op) {
    const ops = plan.part(n.step).ops;
    return `${ops.opcode[n.op]}  ${ops.shape[n.op]}`;
  }
  if (n.kind === KIND.group) return counted(n.ops, "op");
  if (n.kind < KIND.step) return `${counted(n.steps, "step")} · ${us(n.us)}`;
  const row = plan.rows[n.step];
  return (value ? value[1] : us(row.predicted_us)) + (row.kernel >= 0 ? ` · ${counted(row.ops, "op")}` : ` · ${row.kind}`);
}
