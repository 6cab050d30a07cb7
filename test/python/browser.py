"""A headless Chromium that tests open pages in, over its DevTools pipe: JSON
messages that end in a zero byte, so that no library is needed."""
import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

CHROMIUM = shutil.which("chromium")
SECONDS = 120  # of one answer: machines are busy


class Browser:
    """One process; with it as a context, `page` opens pages."""

    def __init__(self):
        self.home = tempfile.mkdtemp(prefix="accel-chromium-")
        in_read, self.to = os.pipe()
        self.back, out_write = os.pipe()
        # Chromium reads descriptor 3 and writes descriptor 4; it reaches no
        # network, so that a page that needs one fails.
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{in_read} 4>&{out_write} ',
             "chromium", CHROMIUM, "--headless=new", "--no-sandbox",
             "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--force-color-profile=srgb", "--font-render-hinting=none",
             "--disable-lcd-text", "--no-first-run", "--proxy-server=127.0.0.1:1",
             f"--user-data-dir={self.home}", "--remote-debugging-pipe",
             "about:blank"],
            pass_fds=(in_read, out_write), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(in_read)
        os.close(out_write)
        self.pending, self.number, self.events = b"", 0, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.to)  # ends it
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.back)
        shutil.rmtree(self.home, ignore_errors=True)

    def message(self):
        """The next one that Chromium sends."""
        end = time.monotonic() + SECONDS
        while b"\0" not in self.pending:
            ready, _, _ = select.select([self.back], [], [],
                                        max(0, end - time.monotonic()))
            chunk = os.read(self.back, 1 << 20) if ready else b""
            if not chunk:
                raise RuntimeError("chromium ended or does not answer")
            self.pending += chunk
        text, _, self.pending = self.pending.partition(b"\0")
        return json.loads(text)

    def call(self, method, session=None, **parameters):
        """The result of a method of the protocol; events are kept."""
        self.number += 1
        sent = {"id": self.number, "method": method, "params": parameters}
        if session:
            sent["sessionId"] = session
        rest = json.dumps(sent).encode() + b"\0"
        while rest:
            rest = rest[os.write(self.to, rest):]
        while True:
            got = self.message()
            if got.get("id") == self.number:
                if "error" in got:
                    raise RuntimeError(f"{method}: {got['error']['message']}")
                return got["result"]
            self.events.append(got)

    @contextlib.contextmanager
    def page(self, path, width=800, height=600, dark=False):
        """The page of a file, drawn."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target,
                            flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log"):
            page.call(f"{domain}.enable")
        page.call("Emulation.setDeviceMetricsOverride", width=width,
                  height=height, deviceScaleFactor=1, mobile=False)
        page.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"}])
        page.call("Page.navigate", url="file://" + os.path.abspath(path))
        page.run("document.readyState === 'complete' || "
                 "new Promise(r => addEventListener('load', r))")
        page.frame()
        yield page
        self.call("Target.closeTarget", targetId=target)


class Page:
    def __init__(self, browser, session):
        self.browser, self.session = browser, session

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def run(self, script):
        """The value of an expression, or of the promise that it is."""
        got = self.call("Runtime.evaluate", expression=script,
                        returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in got:
            raise RuntimeError(got["exceptionDetails"])
        return got["result"].get("value")

    def frame(self):
        """Waits until what was done is drawn."""
        self.run("new Promise(r => requestAnimationFrame("
                 "() => requestAnimationFrame(r)))")

    def press(self, key, code=None, text=None):
        """A key as a person presses it; `code` is Windows' number of it."""
        number = code or {"Tab": 9, "Enter": 13, " ": 32, "ArrowRight": 39,
                          "ArrowDown": 40, "End": 35, "Home": 36}[key]
        text = {"Enter": "\r", " ": " "}.get(key, text)
        extra = {"text": text} if text else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=key,
                  windowsVirtualKeyCode=number, **extra)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key,
                  windowsVirtualKeyCode=number)
        self.frame()

    def picture(self, width, height):
        """PNG bytes of the page's top left corner."""
        got = self.call("Page.captureScreenshot", format="png",
                        captureBeyondViewport=True,
                        clip={"x": 0, "y": 0, "width": width, "height": height,
                              "scale": 1})
        return base64.b64decode(got["data"])

    def messages(self):
        """What the page wrote to the console or threw, until now."""
        self.run("0")
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            if event["method"] == "Runtime.exceptionThrown":
                found.append(event["params"]["exceptionDetails"]["text"])
            elif event["method"] == "Runtime.consoleAPICalled":
                found.append(str(event["params"]["args"]))
            elif event["method"] == "Log.entryAdded":
                found.append(event["params"]["entry"]["text"])
        return found
