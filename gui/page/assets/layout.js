// Where boxes and edges lie. The positions are those that the workbench's layout computed for each container with
// its children folded; what is expanded pushes aside what is around it and moves nothing else.
const MARGIN = 14, TITLE = 26;
const GAPS = { across: 26, along: 34 }, SIDEWAYS = { across: 40, along: 64 };
const SIZE = [[210, 48], [210, 48], [210, 48], [200, 46], [180, 42], [170, 40]];  // by kind: width, height

// The least rectangle around points: left, top, right, bottom.
function boundsOf(points) {
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  for (const [x, y] of points) {
    if (x < box[0]) box[0] = x;
    if (y < box[1]) box[1] = y;
    if (x > box[2]) box[2] = x;
    if (y > box[3]) box[3] = y;
  }
  return box;
}

class Layout {
  constructor(plan, expanded) {
    this.plan = plan;
    this.expanded = new Set(expanded);
    this.expanded.add(0);
    this.rects = new Array(plan.nodes.length);
    this.containers = plan.graph.containers;
    this.position = new Int32Array(plan.nodes.length);
    this.inner = new Map();
    this.closed = new Map();  // of nodes whose children are folded: what `arrange` says
    for (const n of plan.nodes) n.children.forEach((c, i) => { this.position[c] = i; });
    this.run();
  }

  isOpen(node) { return this.expanded.has(node); }

  run() {
    this.boxes = [];
    const size = this.measure(0);
    this.width = size[0];
    this.height = size[1];
    this.rects[0] = { x: 0, y: 0, w: size[0], h: size[1] };
    this.put(0, 0, 0);
    this.connect();
  }

  // Places the children of a node from (0, 0) on; its size with the frame.
  measure(node) {
    const n = this.plan.nodes[node], least = SIZE[n.kind];
    if (!this.expanded.has(node) || !n.children.length) return least;
    // What holds nothing that is open looks alike each time.
    const closed = !n.children.some((child) => this.expanded.has(child) && this.plan.nodes[child].children.length);
    const place = (closed && this.closed.get(node)) || this.arrange(node);
    if (closed) this.closed.set(node, place);
    this.inner.set(node, place);
    if (node === 0) return place.size;
    return [Math.max(least[0], place.size[0] + 2 * MARGIN), place.size[1] + TITLE + MARGIN];
  }

  // Arranges ahead, for some milliseconds, what holds nothing that opens; true when all is.
  foresee() {
    const until = performance.now() + 12;
    for (this.foreseen = this.foreseen || 0; this.foreseen < this.plan.nodes.length; ++this.foreseen) {
      if (performance.now() > until) return false;
      const n = this.plan.nodes[this.foreseen];
      if (n.children.length && !this.closed.has(n.id) && n.children.every((child) => !this.plan.nodes[child].children.length))
        this.closed.set(n.id, this.arrange(n.id));
    }
    return true;
  }

  // Where the children of a node lie in it, and how large they are together.
  arrange(node) {
    const n = this.plan.nodes[node], c = this.containers[node], turn = c.sideways, gaps = turn ? SIDEWAYS : GAPS;
    const sizes = n.children.map((child) => this.measure(child));
    const wide = (i) => sizes[i][turn ? 1 : 0], deep = (i) => sizes[i][turn ? 0 : 1];
    const rest = (i) => SIZE[this.plan.nodes[n.children[i]].kind][turn ? 1 : 0];
    const place = { corner: new Array(n.children.length), bends: new Map() };
    let along = 0, low = Infinity, high = -Infinity;
    c.ranks.forEach((slots, r) => {
      let grown = 0, height = 0;
      for (const s of slots) if (s >= 0) { grown += wide(s) - rest(s); height = Math.max(height, deep(s)); }
      let shift = -grown / 2;
      slots.forEach((s, i) => {
        const more = s >= 0 ? wide(s) - rest(s) : 0, centre = c.centres[r][i] + shift + more / 2;
        shift += more;
        if (s >= 0) {
          place.corner[s] = [centre - wide(s) / 2, along + (height - deep(s)) / 2];
          low = Math.min(low, centre - wide(s) / 2);
          high = Math.max(high, centre + wide(s) / 2);
        } else {
          const edge = -1 - s;
          if (!place.bends.has(edge)) place.bends.set(edge, []);
          place.bends.get(edge).push([centre, along], [centre, along + height]);
          low = Math.min(low, centre);
          high = Math.max(high, centre);
        }
      });
      along += height + gaps.along;
    });
    if (low === Infinity) low = high = 0;
    let across = high - low, end = c.ranks.length ? along - gaps.along : 0;
    // Nodes without edges, in rows below the rest, about as wide as they are high together.
    if (c.loose.length) {
      let area = 0, limit = across;
      for (const i of c.loose) {
        area += (wide(i) + gaps.across) * (deep(i) + gaps.across);
        limit = Math.max(limit, wide(i));
      }
      while (limit * limit < area * 1.6) limit *= 1.1;
      let at = 0, row = end > 0 ? end + gaps.along : 0, most = 0;
      for (const i of c.loose) {
        if (at > 0 && at + wide(i) > limit) { row += most + gaps.across; at = most = 0; }
        place.corner[i] = [low + at, row];
        at += wide(i) + gaps.across;
        most = Math.max(most, deep(i));
        across = Math.max(across, at - gaps.across);
      }
      end = row + most;
    }
    for (const corner of place.corner) corner[0] -= low;
    for (const bends of place.bends.values()) for (const b of bends) b[0] -= low;
    place.size = turn ? [end, across] : [across, end];
    return place;
  }

  origin(node) {
    const r = this.rects[node], place = this.inner.get(node);
    if (node === 0) return [r.x, r.y];
    return [r.x + MARGIN + (r.w - 2 * MARGIN - place.size[0]) / 2, r.y + TITLE];
  }

  put(node) {
    const n = this.plan.nodes[node], place = this.inner.get(node), turn = this.containers[node].sideways;
    const [ox, oy] = this.origin(node);
    n.children.forEach((child, i) => {
      const [a, b] = place.corner[i], kid = this.plan.nodes[child];
      const open = this.expanded.has(child) && kid.children.length > 0;
      let [w, h] = SIZE[kid.kind];
      if (open) {
        const inside = this.inner.get(child).size;
        w = Math.max(w, inside[0] + 2 * MARGIN);
        h = inside[1] + TITLE + MARGIN;
      }
      this.rects[child] = { x: ox + (turn ? b : a), y: oy + (turn ? a : b), w, h };
      this.boxes.push({ node: child, rect: this.rects[child], open });
      if (open) this.put(child);
    });
  }

  // The deepest drawn node that is or holds each.
  drawnNodes() {
    const nodes = this.plan.nodes, shown = new Int32Array(nodes.length);
    for (let i = 1; i < nodes.length; ++i) {
      const up = nodes[i].parent;
      shown[i] = shown[up] === up && this.expanded.has(up) ? i : shown[up];
    }
    return shown;
  }

  connect() {
    const nodes = this.plan.nodes, shown = (this.shown = this.drawnNodes());
    const sums = new Map();
    for (const [from, to, bytes, chip] of this.plan.graph.edges) {
      const a = shown[from], b = shown[to];
      if (a === b) continue;
      const key = a * nodes.length + b, sum = sums.get(key);
      if (sum) { sum.bytes += bytes; sum.chip = sum.chip && chip; }
      else sums.set(key, { from: a, to: b, bytes, chip });
    }
    this.edges = [];
    this.stubs = [];
    const numbers = new Map();
    for (const edge of sums.values()) {
      let a = edge.from, b = edge.to;
      while (nodes[a].depth > nodes[b].depth) a = nodes[a].parent;
      while (nodes[b].depth > nodes[a].depth) b = nodes[b].parent;
      while (nodes[a].parent !== nodes[b].parent) { a = nodes[a].parent; b = nodes[b].parent; }
      const parent = nodes[a].parent, c = this.containers[parent], e = this.edgeNumber(parent, this.position[a], this.position[b]);
      const from = this.rects[edge.from], to = this.rects[edge.to];
      if (e === undefined || c.kinds[e] & 1) {
        if (!numbers.has(edge.from)) numbers.set(edge.from, numbers.size + 1);
        edge.number = numbers.get(edge.from);
        edge.out = [from.x + from.w - 10, from.y + from.h + 14];
        edge.in = [to.x + 10, to.y - 14];
        this.stubs.push(edge);
        continue;
      }
      const back = (c.kinds[e] & 2) !== 0, turn = c.sideways, bends = this.inner.get(parent).bends.get(e);
      edge.turn = turn;
      edge.points = [this.border(from, turn, !back)];
      if (a !== edge.from) edge.points.push(this.crossing(this.rects[a], edge.points[0], turn, !back));
      if (bends) {
        const [ox, oy] = this.origin(parent);
        for (let i = 0; i < bends.length; ++i) {
          const [x, y] = bends[back ? bends.length - 1 - i : i];
          edge.points.push(turn ? [ox + y, oy + x] : [ox + x, oy + y]);
        }
      }
      const last = this.border(to, turn, back);
      if (b !== edge.to) edge.points.push(this.crossing(this.rects[b], last, turn, back));
      edge.points.push(last);
      this.edges.push(edge);
    }
  }

  edgeNumber(parent, from, to) {
    const c = this.containers[parent];
    if (!c.byEnds) {
      c.byEnds = new Map();
      for (let e = 0; e * 2 < c.edges.length; ++e) c.byEnds.set(c.edges[2 * e] * 1e6 + c.edges[2 * e + 1], e);
    }
    return c.byEnds.get(from * 1e6 + to);
  }

  // Where an edge meets a box: the middle of its far or near side.
  border(r, turn, far) {
    return turn ? [far ? r.x + r.w : r.x, r.y + r.h / 2] : [r.x + r.w / 2, far ? r.y + r.h : r.y];
  }
  // Where an edge to a box within another passes the border of the other.
  crossing(outer, own, turn, far) {
    return turn ? [far ? outer.x + outer.w : outer.x, own[1]] : [own[0], far ? outer.y + outer.h : outer.y];
  }

  toggle(node, open = !this.expanded.has(node)) {
    if (node === 0 || !this.plan.nodes[node].children.length) return;
    if (open) this.expanded.add(node);
    else this.expanded.delete(node);
  }

  reveal(node) {
    let changed = false;
    for (let up = this.plan.nodes[node].parent; up > 0; up = this.plan.nodes[up].parent)
      if (!this.expanded.has(up)) { this.expanded.add(up); changed = true; }
    return changed;
  }

  // Everything above `kind` open, the rest folded; as deep as `most` boxes allow where it is given.
  level(kind, most = Infinity) {
    this.expanded.clear();
    this.expanded.add(0);
    let count = this.plan.nodes[0].children.length;
    const next = [...this.plan.nodes[0].children];
    for (let i = 0; i < next.length; ++i) {
      const n = this.plan.nodes[next[i]];
      if (n.kind >= kind || !n.children.length || count + n.children.length > most) continue;
      this.expanded.add(n.id);
      count += n.children.length;
      for (const child of n.children) next.push(child);
    }
  }
}
