"""A headless Chromium driven through its DevTools protocol over a pipe: nothing but Python's library is needed."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find():
    """The program, or None: $CHROMIUM, else the first there is of the usual names."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    def __init__(self, program, width=1500, height=950):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self.write_end = os.pipe()
        self.read_end, to_write = os.pipe()
        options = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--force-prefers-reduced-motion", "--hide-scrollbars", "--remote-debugging-pipe",
                   f"--user-data-dir={self.profile.name}", f"--window-size={width},{height}", "about:blank"]
        quoted = f'exec "$@" 3<&{to_read} 4>&{to_write} >/dev/null 2>&1'
        self.process = subprocess.Popen(["bash", "-c", quoted, "bash", *options], pass_fds=(to_read, to_write))
        os.close(to_read)
        os.close(to_write)
        self.buffer, self.number, self.session, self.problems = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def close(self):
        try:
            self.session = None
            self.call("Browser.close", patience=5)
        except (OSError, TimeoutError):
            pass
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.read_end)
        os.close(self.write_end)
        self.profile.cleanup()

    def message(self, until):
        while b"\0" not in self.buffer:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.read_end], [], [], left)[0]:
                raise TimeoutError("the browser did not answer")
            piece = os.read(self.read_end, 1 << 20)
            if not piece:
                raise OSError("the browser is gone")
            self.buffer += piece
        line, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(line)

    def notice(self, said):
        """Keeps what a page complains of."""
        method, given = said.get("method"), said.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = given["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning", "assert"):
            self.problems.append(" ".join(str(a.get("value", a.get("description"))) for a in given["args"]))
        elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            self.problems.append(given["entry"]["text"])

    def call(self, method, patience=30, **parameters):
        self.number += 1
        asked = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            asked["sessionId"] = self.session
        os.write(self.write_end, json.dumps(asked).encode() + b"\0")
        until = time.monotonic() + patience
        while True:
            said = self.message(until)
            if said.get("id") == self.number:
                if "error" in said:
                    raise RuntimeError(f"{method}: {said['error']['message']}")
                return said["result"]
            self.notice(said)

    def evaluate(self, expression):
        """The value of an expression of JavaScript; promises are awaited."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description") or details["text"])
        return result["result"].get("value")

    def wait(self, expression, patience=20):
        until = time.monotonic() + patience
        while True:
            value = self.evaluate(expression)
            if value:
                return value
            if time.monotonic() > until:
                raise TimeoutError(f"never true: {expression}; the page complains: {self.problems}")
            time.sleep(0.02)

    def open(self, address):
        # Another address of the same file only moves within it: the blank page between makes it load.
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=address)
        self.ready()

    def reload(self):
        self.evaluate("delete document.documentElement.dataset.ready")
        self.call("Page.reload")
        self.ready()

    def ready(self):
        self.wait("document.documentElement && document.documentElement.dataset.ready === 'yes'")

    def settle(self):
        """Waits for two frames: what was asked for is drawn."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def click(self, x, y, times=1):
        for count in range(1, times + 1):
            for what in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=what, x=x, y=y, button="left", clickCount=count)
        self.settle()

    def click_on(self, selector):
        """In the middle of the first element that matches, which is scrolled to."""
        at = self.evaluate(f"""(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e) return null;
            e.scrollIntoView({{block: "nearest", inline: "nearest"}}); const r = e.getBoundingClientRect();
            return [r.x + Math.min(r.width / 2, 60), r.y + r.height / 2]; }})()""")
        if at is None:
            raise AssertionError(f"nothing matches {selector}")
        self.click(*at)

    def key(self, key, text=None):
        given = {"key": key, "text": text if text is not None else key if len(key) == 1 else ""}
        if not given["text"]:
            del given["text"]
        if key == "Enter":
            given["text"] = "\r"
        self.call("Input.dispatchKeyEvent", type="keyDown", **given)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.settle()

    def screenshot(self, file):
        with open(file, "wb") as out:
            out.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
