"""A headless Chromium, for tests that look at pages."""

import fcntl
import json
import os
import shutil
import subprocess
import time
from contextlib import contextmanager

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)

needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no Chromium here: pages are only read by a parser"
)


class Browser:
    """A headless Chromium, driven by its own protocol through two pipes."""

    def __init__(self, profile):
        read, self.write = os.pipe()
        self.read, write = os.pipe()
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (read, write)]
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--window-size=1000,900"]
        self.process = subprocess.Popen(
            [CHROMIUM, *flags, f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=lambda: [os.dup2(fd, k) for fd, k in zip(ends, (3, 4), strict=True)],  # reads 3, writes 4
            pass_fds=(3, 4),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for fd in (read, write, *ends):
            os.close(fd)
        self.rest, self.count, self.events, self.session = b"", 0, [], None
        targets = self.ask("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method, **params):
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        message |= {} if self.session is None else {"sessionId": self.session}
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.next_message()
            if answer.get("id") == self.count:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def next_message(self):
        while b"\0" not in self.rest:
            block = os.read(self.read, 1 << 16)
            assert block, "the browser ended"
            self.rest += block
        text, _, self.rest = self.rest.partition(b"\0")
        return json.loads(text)

    def value(self, expression):
        return self.ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def wait(self, expression, seconds=60.0):
        end = time.monotonic() + seconds
        while not self.value(expression):
            assert time.monotonic() < end, expression
            time.sleep(0.1)

    def show(self, url, until="true"):
        """Open a page, and wait until it is there and the expression is true."""
        self.events.clear()
        self.ask("Page.navigate", url=url)
        self.wait(f"document.readyState === 'complete' && ({until})")

    def look(self, width=1000, mode="light", mobile=False, media="screen"):
        """Show the page so wide, in light or dark, on a screen or as it is printed."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=mobile)
        features = [{"name": "prefers-color-scheme", "value": mode}]
        self.ask("Emulation.setEmulatedMedia", media=media, features=features)
        time.sleep(0.5)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.read)
        os.close(self.write)


@contextmanager
def started(profile):
    """A browser, closed in the end."""
    browser = Browser(profile)
    try:
        yield browser
    finally:
        browser.close()


def faults(events):
    """Errors on the console, and requests for anything but the page itself."""
    out = []
    for event in events:
        method, params = event.get("method"), event.get("params", {})
        if method in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
            out.append(params)
        if method == "Network.requestWillBeSent" and params["type"] != "Document":
            out.append(params["request"]["url"])
    return out
