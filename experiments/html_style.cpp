#include "experiments/html.h"

namespace stitchwork::html {

// Scheme colours tell apart under protan, deutan and tritan vision; the badge's letter says the same without
// colour.
std::string_view style_sheet() {
  return R"css(
:root { color-scheme: light dark; --back: #ffffff; --panel: #f6f7f9; --line: #d9dce1; --text: #1c1f24; --quiet: #5f6672;
  --s0: #2a7f8e; --s1: #9a8a2f; --bad: #a04000; --link: #2456a6; }
@media (prefers-color-scheme: dark) { :root { --back: #15171b; --panel: #1e2126; --line: #353a43; --text: #e6e8ec;
  --quiet: #9aa2af; --s0: #4fb0bf; --s1: #c9b85a; --bad: #f0a05a; --link: #8ab4f8; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 14px/1.45 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 1480px; margin: 0 auto; padding: 24px 28px 64px; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 20px; margin: 44px 0 2px; border-top: 1px solid var(--line); padding-top: 24px; }
h3 { font-size: 15px; margin: 26px 0 8px; } p { margin: 4px 0 10px; max-width: 120ch; }
a { color: var(--link); } code { font: 12.5px ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
.quiet, small { color: var(--quiet); } .bad { color: var(--bad); font-weight: 600; }
.panel { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 12px 16px; margin: 14px 0; }
.panel p:last-child { margin-bottom: 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; margin: 0; } dt { color: var(--quiet); } dd { margin: 0; overflow-wrap: anywhere; }
nav ul { margin: 6px 0; padding-left: 20px; columns: 28em auto; }
.scroll { overflow: auto; max-height: 80vh; border: 1px solid var(--line); border-radius: 8px; }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th, td { padding: 5px 9px; text-align: left; vertical-align: top; }
th { position: sticky; top: 0; z-index: 1; background: var(--panel); font-weight: 600; border-bottom: 1px solid var(--line); vertical-align: bottom; }
th small, td small { display: block; font-size: 11px; font-weight: 400; white-space: nowrap; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; } th.n { white-space: normal; } .share { white-space: nowrap; } td code { white-space: nowrap; }
th small:empty { display: none; }
tbody { border-top: 1px solid var(--line); }
tr.below td { padding-top: 0; padding-bottom: 7px; }
tbody.failed td.n { color: var(--quiet); }
.reason { max-width: 44ch; font-size: 12px; overflow-wrap: anywhere; }
.charts { display: flex; flex-wrap: wrap; gap: 16px; margin: 16px 0; }
figure { margin: 0; padding: 12px 16px; background: var(--panel); border: 1px solid var(--line); border-radius: 8px; flex: 0 1 auto; max-width: 100%; }
figcaption { font-weight: 600; margin-bottom: 10px; } figure svg { display: block; max-width: 100%; height: auto; }
figure:not(.drawn) svg text { font-size: 12px; fill: var(--text); } svg text.group { font-weight: 600; }
svg .s0 { fill: var(--s0); } svg .s1 { fill: var(--s1); } svg.share { vertical-align: middle; margin-right: 6px; } svg.share .all { fill: var(--line); }
figure.drawn { background: #fff; color: #222; width: fit-content; margin: 12px 0; } figure.drawn svg { width: 34em; } figure.wide svg { width: 64em; }
figure.drawn figcaption { font-weight: 400; margin: 8px 0 0; max-width: 80ch; } table.plain { width: auto; } main > ul { margin: 4px 0; }
details.planner { margin: 10px 0; } details.planner > summary { cursor: pointer; padding: 6px 0; }
details.planner > summary b { font-size: 14px; }
td details { display: inline-block; vertical-align: top; } td details[open] { display: block; margin-top: 4px; } td summary { cursor: pointer; color: var(--link); font-size: 12px; }
.op { display: inline-flex; align-items: center; border: 1px solid var(--line); border-radius: 4px; margin: 2px 4px 2px 0; font: 12px ui-monospace, "DejaVu Sans Mono", monospace;
  background: var(--back); padding-right: 6px; overflow-wrap: anywhere; }
.badge { display: inline-block; min-width: 17px; padding: 0 4px; margin-right: 6px; text-align: center; font: 700 12px/18px ui-monospace, "DejaVu Sans Mono", monospace; color: #000; border-radius: 3px 0 0 3px; }
.independent { background: #DDCC77; } .local { background: #88CCEE; } .regional { background: #CC6677; } .resident { background: #44AA99; } .global { background: #332288; color: #fff; } .recomputed { background: #999933; }
.legend { max-width: none; } .legend span.item { display: inline-block; margin: 2px 18px 2px 0; } .legend .badge { border-radius: 3px; }
.counters { display: grid; grid-template-columns: repeat(auto-fill, minmax(250px, 1fr)); gap: 0 22px; margin: 4px 0; font-size: 12px; }
.counters div { display: flex; justify-content: space-between; gap: 12px; border-bottom: 1px dotted var(--line); font-variant-numeric: tabular-nums; }
@media print { .scroll { max-height: none; overflow: visible; } main { max-width: none; padding: 0; } }
)css";
}

}  // namespace stitchwork::html
