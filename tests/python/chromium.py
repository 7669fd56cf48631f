"""A headless Chromium, driven through its debugging socket with the standard library alone.

    with Chromium() as browser:
        page = browser.page(width=360, height=800, dark=True)
        page.go("file:///tmp/report.html")
        page.eval("document.title")
"""
import base64
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")


class Socket:
    """A client of RFC 6455 that sends and receives whole texts."""

    def __init__(self, url):
        host, _, path = url.removeprefix("ws://").partition("/")
        name, _, port = host.partition(":")
        self.sock = socket.create_connection((name, int(port)), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.sock.sendall((f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\n"
                           f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
                           "Sec-WebSocket-Version: 13\r\n\r\n").encode())
        self.file = self.sock.makefile("rb")
        if b"101" not in self.file.readline():
            raise OSError("Chromium refuses the socket")
        while self.file.readline().strip():
            pass

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        n = len(data)
        head = struct.pack("!BB", 0x81, 0x80 | n) if n < 126 else \
            struct.pack("!BBH", 0x81, 0x80 | 126, n) if n < 65536 else \
            struct.pack("!BBQ", 0x81, 0x80 | 127, n)
        stream = (mask * (n // 4 + 1))[:n]
        masked = (int.from_bytes(data, "big") ^ int.from_bytes(stream, "big")).to_bytes(n, "big")
        self.sock.sendall(head + mask + masked)

    def receive(self):
        text = b""
        while True:
            first, second = self.file.read(2)
            n = second & 127
            if n > 125:
                n = int.from_bytes(self.file.read(2 if n == 126 else 8), "big")
            text += self.file.read(n)
            if first & 0x80 and first & 15 < 8:
                return text.decode()


class Page:
    def __init__(self, url):
        self.socket, self.number = Socket(url), 0
        self.complaints = []  # of the console and of scripts
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def _event(self, message):
        method, p = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(p["exceptionDetails"])[:500])
        elif method == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(p["args"])[:500])
        elif method == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
            self.complaints.append(p["entry"]["text"] + " " + p["entry"].get("url", ""))

    def call(self, method, **params):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self._event(message)

    def eval(self, expression):
        """Value of an expression; promises are waited for."""
        got = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                        awaitPromise=True)
        if "exceptionDetails" in got:
            raise RuntimeError(f"{expression}: {got['exceptionDetails']}")
        return got["result"].get("value")

    def wait(self, expression, seconds=30):
        """Until the expression is true; the seconds it took."""
        start = time.monotonic()
        while not self.eval(expression):
            if time.monotonic() - start > seconds:
                raise TimeoutError(f"never true: {expression}")
            time.sleep(0.02)
        return time.monotonic() - start

    def shape(self, width, height, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def go(self, url):
        """Load a page; the seconds until it says that it is drawn."""
        start = time.monotonic()
        self.call("Page.navigate", url=url)
        self.wait("document.documentElement?.dataset.ready === 'yes'", 60)
        self.eval("new Promise((f) => requestAnimationFrame(() => setTimeout(f)))")
        return time.monotonic() - start

    def close(self):
        self.socket.file.close()
        self.socket.sock.close()

    def screenshot(self, path, clip=None):
        more = {"clip": dict(clip, scale=1), "captureBeyondViewport": True} if clip else {}
        data = self.call("Page.captureScreenshot", format="png", **more)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))


class Chromium:
    def __enter__(self):
        self.pages = []
        self.folder = tempfile.mkdtemp(prefix="fathom-chromium-")
        self.process = subprocess.Popen(
            [PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--remote-debugging-port=0",
             "--remote-allow-origins=*", f"--user-data-dir={self.folder}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port, start = pathlib.Path(self.folder, "DevToolsActivePort"), time.monotonic()
        while not (port.exists() and port.read_text().count("\n")):
            if self.process.poll() is not None or time.monotonic() - start > 60:
                raise OSError("Chromium does not start")
            time.sleep(0.05)
        self.port = int(port.read_text().split()[0])
        return self

    def __exit__(self, *_):
        for page in self.pages:
            page.close()
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def page(self, width=1200, height=900, dark=False):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/json/new", method="PUT")
        with urllib.request.urlopen(request, timeout=60) as answer:
            page = Page(json.load(answer)["webSocketDebuggerUrl"])
        self.pages.append(page)
        page.shape(width, height, dark)
        return page
