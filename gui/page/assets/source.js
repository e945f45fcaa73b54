// The CUDA of the selected kernel, its ops as links, and the HLO around the selected op.
const CUDA_WORDS = new RegExp("(//[^\\n]*|/\\*[\\s\\S]*?\\*/)|\\b(__global__|__shared__|__device__|__restrict__|__launch_bounds__|const|void|float|int|unsigned|bool|double|half|__half|char|long|short|for|if|else|while|return|extern|constexpr|auto|struct|true|false|do|break|continue|static)\\b|(\"[^\"\\n]*\")|(\\b\\d[\\w.]*\\b)", "g");

function cudaHtml(source, name) {
  if (source.problem) return `<p class="quiet">No CUDA: ${escapeHtml(source.problem)}</p>`;
  // Colours first, over the text as a whole; then the links, which lie in it.
  let html = "";
  for (const piece of source.pieces) {
    if (piece.op !== undefined) html += `<a href="#" data-op="${escapeHtml(piece.op)}"${piece.op === name ? ' class="here"' : ""}>${escapeHtml(piece.text)}</a>`;
    else html += escapeHtml(piece.text).replace(CUDA_WORDS, (all, comment, word, string, number) =>
      `<i class="${comment ? "c" : word ? "w" : string ? "q" : "n"}">${all}</i>`);
  }
  return inPieces(html.split("\n").map((line, i) => `<span class="line" data-n="${i + 1}">${line || " "}</span>`));
}

// Lines that are not seen are not laid out: so many together, as each piece is watched for itself.
const LINES_OF_PIECE = 32;
function inPieces(lines) {
  let html = "";
  for (let i = 0; i < lines.length; i += LINES_OF_PIECE) {
    const piece = lines.slice(i, i + LINES_OF_PIECE);
    html += `<div class="piece" style="--lines:${piece.length}">${piece.join("")}</div>`;
  }
  return html;
}

const HLO_AROUND = 60;
function hloHtml(plan, s) {
  const part = plan.parts[(s.body ?? -1) + 1], ops = part.ops;
  let chosen = s.op >= 0 ? [s.op] : [];
  if (s.op < 0 && s.step >= 0) {
    const kernel = plan.kernel(s.step), at = plan.part(s.step);
    const names = kernel ? kernel.ops : plan.planStep(s.step).ops || [];
    chosen = names.map((name) => at.byName.get(name));
    return inPieces(chosen.map((op) => hloLine(at.ops, op, false)));
  }
  const middle = chosen.length ? chosen[0] : 0;
  const from = Math.max(0, middle - HLO_AROUND), to = Math.min(ops.name.length, middle + HLO_AROUND);
  const lines = [];
  for (let op = from; op < to; ++op) lines.push(hloLine(ops, op, chosen.includes(op)));
  return inPieces(lines);
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
      if (event.target.dataset.copy) navigator.clipboard?.writeText(this.text.innerText);
    });
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
    if (this.kind === "hlo") this.text.innerHTML = `<code>${hloHtml(plan, s || { op: -1, step: -1, body: -1 })}</code>`;
    else if (kernel) {
      const key = plan.index + ":" + step;
      if (this.key !== key || this.shown !== "cuda") this.text.innerHTML = `<code>${cudaHtml(plan.source(step), name)}</code>`;
      else for (const a of this.text.querySelectorAll("a")) a.classList.toggle("here", a.dataset.op === name);
      this.key = key;
      this.last = { plan, step };
    } else this.text.innerHTML = `<p class="quiet">${s && step >= 0 ? "A library or the device does this step: there is no source of a kernel." : `Select a kernel or an op: its ${plan.plan.peer ? "PTX" : "generated CUDA"} appears here.`}</p>`;
    if (!kernel || this.kind === "hlo") this.key = null;
    this.shown = this.kind;
    const here = this.text.querySelector(".here");
    if (here) beforeFrame(() => { this.text.scrollTop = Math.max(0, here.offsetTop - this.viewport.height / 3); });
    else if (this.kind === "cuda") this.viewport.scrollTo(0);
  }
}
