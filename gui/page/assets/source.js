// The CUDA of the selected kernel, its ops as links, and the HLO around the selected op.
const CUDA_WORDS = new RegExp("(//[^\\n]*|/\\*[\\s\\S]*?\\*/)|\\b(__global__|__shared__|__device__|__restrict__|__launch_bounds__|const|void|float|int|unsigned|bool|double|half|__half|char|long|short|for|if|else|while|return|extern|constexpr|auto|struct|true|false|do|break|continue|static)\\b|(\"[^\"\\n]*\")|(\\b\\d[\\w.]*\\b)", "g");

function cudaLines(source) {
  // Colours first, over the text as a whole; then the links, which lie in it.
  let html = "";
  for (const piece of source.pieces) {
    if (piece.op !== undefined) html += `<a href="#" data-op="${escapeHtml(piece.op)}">${escapeHtml(piece.text)}</a>`;
    else html += escapeHtml(piece.text).replace(CUDA_WORDS, (all, comment, word, string, number) =>
      `<i class="${comment ? "c" : word ? "w" : string ? "q" : "n"}">${all}</i>`);
  }
  return html.split("\n").map((line, i) => `<span class="line" data-n="${i + 1}">${line || " "}</span>`);
}

// A text in pieces. Those at hand are there at once, the others when the browser has nothing else to do: a kernel's
// source may have thousands of lines. What is not seen is not laid out.
const LINES_OF_PIECE = 32, PIECES_AT_ONCE = 8;
class Pieces {
  // `here`: of the line to begin around, what it holds. `filled(element)` is told of each piece.
  constructor(host, lines, here, filled) {
    const starts = [];
    for (let i = 0; i < lines.length; i += LINES_OF_PIECE) starts.push(i);
    host.innerHTML = `<code>${starts.map((i) => `<div class="piece" style="--lines:${Math.min(LINES_OF_PIECE, lines.length - i)}"></div>`).join("")}</code>`;
    this.elements = [...host.firstChild.children];
    this.lines = lines;
    this.filled = filled;
    this.missing = new Set(starts.keys());
    this.around(here);
    this.later();
  }
  around(here) {
    const line = here ? this.lines.findIndex((each) => each.includes(here)) : 0;
    const middle = Math.floor(Math.max(0, line) / LINES_OF_PIECE), first = Math.max(0, middle - PIECES_AT_ONCE / 2);
    for (let k = first; k < first + PIECES_AT_ONCE; ++k) this.fill(k);
  }
  fill(k) {
    if (!this.missing.delete(k)) return;
    this.elements[k].innerHTML = this.lines.slice(k * LINES_OF_PIECE, (k + 1) * LINES_OF_PIECE).join("");
    this.filled(this.elements[k]);
  }
  all() { for (const k of this.missing) this.fill(k); }
  later() {
    if (!this.missing.size || this.gone) return;
    const idle = window.requestIdleCallback || ((run) => setTimeout(() => run({ timeRemaining: () => 0 })));
    idle((time) => {
      if (this.gone) return;
      do this.fill(this.missing.values().next().value); while (this.missing.size && time.timeRemaining() > 4);
      this.later();
    });
  }
}

const HLO_AROUND = 60;
function hloLines(plan, s) {
  const part = plan.parts[(s.body ?? -1) + 1], ops = part.ops;
  let chosen = s.op >= 0 ? [s.op] : [];
  if (s.op < 0 && s.step >= 0) {
    const kernel = plan.kernel(s.step), at = plan.part(s.step);
    const names = kernel ? kernel.ops : plan.planStep(s.step).ops || [];
    chosen = names.map((name) => at.byName.get(name));
    return chosen.map((op) => hloLine(at.ops, op, false));
  }
  const middle = chosen.length ? chosen[0] : 0;
  const from = Math.max(0, middle - HLO_AROUND), to = Math.min(ops.name.length, middle + HLO_AROUND);
  const lines = [];
  for (let op = from; op < to; ++op) lines.push(hloLine(ops, op, chosen.includes(op)));
  return lines;
}
const hloLine = (ops, op, here) =>
  `<span class="line${here ? " here" : ""}" data-n="${ops.line[op] || ""}"><a href="#" data-op="${escapeHtml(ops.name[op])}">${escapeHtml(ops.text[op].trim())}</a></span>`;

class Source {
  constructor(app) {
    this.app = app;
    this.bar = document.getElementById("codebar");
    this.text = document.getElementById("codetext");
    this.viewport = new Viewport(this.text);
    this.kind = "cuda";
    this.bar.addEventListener("click", (event) => {
      if (event.target.dataset.kind) { this.kind = event.target.dataset.kind; this.show(); }
      if (!event.target.dataset.copy) return;
      this.pieces?.all();
      navigator.clipboard?.writeText(this.text.innerText);
    });
    addEventListener("beforeprint", () => this.pieces?.all());
  }
  show() {
    const s = this.app.selection, plan = s ? s.plan : this.app.plan;
    let step = s ? s.step : -1;
    // An input of the kernel that is looked at: its source stays.
    if (s && s.op >= 0 && (step < 0 || !plan.kernel(step)) && this.last && this.last.plan === plan) step = this.last.step;
    const kernel = step >= 0 ? plan.kernel(step) : null;
    const tab = (kind, title) => `<button data-kind="${kind}" aria-pressed="${this.kind === kind}">${title}</button>`;
    this.bar.innerHTML = `<div class="group">${tab("cuda", plan.plan.peer ? "PTX" : "CUDA")}${tab("hlo", "HLO")}</div><span>${kernel ? escapeHtml(kernel.id + " " + kernel.name) : ""}</span><button data-copy="1" title="Copy the text">copy</button>`;
    const name = s && s.op >= 0 ? plan.parts[s.body + 1].ops.name[s.op] : "";
    this.name = name;
    if (this.kind === "hlo") this.fill(hloLines(plan, s || { op: -1, step: -1, body: -1 }), 'class="line here"', () => {});
    else if (kernel) {
      const key = plan.index + ":" + step;
      const source = plan.source(step), of_name = name && `data-op="${escapeHtml(name)}"`;
      if (source.problem) this.say(`No CUDA: ${escapeHtml(source.problem)}`);
      else if (this.key !== key || this.shown !== "cuda") this.fill(cudaLines(source), of_name, (piece) => this.mark(piece));
      else {
        this.pieces.around(of_name);
        this.mark(this.text);
      }
      this.key = key;
      this.last = { plan, step };
    } else this.say(s && step >= 0 ? "A library or the device does this step: there is no source of a kernel." : `Select a kernel or an op: its ${plan.plan.peer ? "PTX" : "generated CUDA"} appears here.`);
    if (!kernel || this.kind === "hlo") this.key = null;
    this.shown = this.kind;
    const here = this.text.querySelector(".here");
    if (here) beforeFrame(() => { this.text.scrollTop = Math.max(0, here.offsetTop - this.viewport.height / 3); });
    else if (this.kind === "cuda") this.viewport.scrollTo(0);
  }
  fill(lines, here, filled) {
    this.stop();
    this.pieces = new Pieces(this.text, lines, here, filled);
  }
  say(text) {
    this.stop();
    this.text.innerHTML = `<p class="quiet">${text}</p>`;
  }
  stop() {
    if (this.pieces) this.pieces.gone = true;
    this.pieces = null;
  }
  // The selected op's places.
  mark(element) {
    for (const a of element.querySelectorAll("a")) a.classList.toggle("here", a.dataset.op === this.name);
  }
}
