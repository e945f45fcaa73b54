"""How long a page takes: measure.py PAGE.html [--shots FOLDER]: to the first picture, and for each kind of interaction until it is
next picture, in ms: of the page's thread, which other programs on the machine lengthen less, and beside it by the clock."""
import argparse
import json
import pathlib
import statistics

import browser

# Each an expression that does what a click or key does.
INTERACTIONS = {
    "select a kernel": "stitchwork.key({key: ']', target: document.body, preventDefault() {}})",
    "select an op": "stitchwork.selectOp(stitchwork.plan.parts[0].ops.name[stitchwork.plan.plan.kernels.length > 3 ? stitchwork.plan.parts[0].byName.get(stitchwork.plan.plan.kernels[3].outputs[0]) : 0], stitchwork.plan, {from: 'link'})",
    "fold to layers": "stitchwork.level(0)",
    "fold to kernels": "stitchwork.level(1)",
    "fold to groups": "stitchwork.level(2)",
    "fold to ops": "stitchwork.level(3)",
    "pan, all ops, fitted": "0",
    "zoom in, all ops": "stitchwork.views[0].scaleBy(4)",
    "search op:add": "(() => { document.getElementById('query').value = 'op:add'; stitchwork.search(); })()",
    "next hit": "stitchwork.nextHit(1)",
    "end of search": "(() => { document.getElementById('query').value = ''; stitchwork.search(); })()",
    "sort by name": "stitchwork.pane.sortBy(1, false)",
    "timeline": "stitchwork.showTab('timeline')",
    "roofline": "stitchwork.showTab('roofline')",
    "memory": "stitchwork.showTab('memory')",
    "decisions": "stitchwork.showTab('decided')",
    "colour by time": "stitchwork.setColour('us')",
    "beside": "stitchwork.plans.length > 1 && stitchwork.showBeside(stitchwork.plans[1])",
}
# Ends when the frame that the interaction asks for has been made: the graph is drawn once, before it.
TO_NEXT_FRAME = "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page")
    parser.add_argument("--shots", help="folder for pictures, light and dark")
    asked = parser.parse_args()
    page = pathlib.Path(asked.page).resolve()
    chromium = browser.Browser(browser.find())
    try:
        chromium.call("Performance.enable", timeDomain="threadTicks")

        def busy():
            return 1000 * next(m["value"] for m in chromium.call("Performance.getMetrics")["metrics"] if m["name"] == "TaskDuration")

        firsts, threads = [], []
        for _ in range(3):
            chromium.call("Page.navigate", url="about:blank")
            before = busy()
            chromium.open(page.as_uri())
            firsts.append(chromium.evaluate("stitchwork.painted"))
            threads.append(busy() - before)
        result = {"page_bytes": page.stat().st_size, "first picture": [round(statistics.median(threads)), round(statistics.median(firsts))]}
        for name, action in INTERACTIONS.items():
            if asked.shots and name in ("fold to layers", "timeline", "beside"):
                chromium.screenshot(f"{asked.shots}/before-{name.split()[-1]}.png")
            before = busy()
            clock = chromium.evaluate(f"(async () => {{ const t = performance.now(); {action}; await {TO_NEXT_FRAME}; return performance.now() - t; }})()")
            result[name] = [round(busy() - before, 1), round(clock, 1)]
            chromium.settle()
        chromium.settle()
        if asked.shots:
            chromium.screenshot(f"{asked.shots}/beside.png")
            chromium.evaluate("stitchwork.toggleTheme()")
            chromium.settle()
            chromium.screenshot(f"{asked.shots}/dark.png")
        result["problems"] = chromium.problems
        print(json.dumps(result, indent=2, ensure_ascii=False))
    finally:
        chromium.close()


if __name__ == "__main__":
    main()
