"""The server of the report: what it shows, and all that it must not.

seconds: 15
"""
import gzip
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("FATHOM_PROGRAM") or str(ROOT / "build/bin/fathom")
MAKE = os.environ.get("FATHOM_MAKE_REPORT") or str(ROOT / "build/tests/testing/make_report")


class Server:
    """A running `fathom serve`; ends with SIGINT and must then exit with 0."""

    def __init__(self, folder, *flags):
        self.process = subprocess.Popen([PROGRAM, "serve", str(folder), "--port", "0", *flags],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            raise OSError(self.process.stderr.read())
        self.address = urllib.parse.urlsplit(self.url)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.code = self.process.wait(20)
        self.process.stdout.close()
        self.process.stderr.close()

    def ask(self, target, method="GET", body=None, host="127.0.0.1", source=None, **headers):
        link = http.client.HTTPConnection(host, self.address.port, timeout=20,
                                          source_address=source and (source, 0))
        link.request(method, target, body=body,
                     headers={k.replace("_", "-"): v for k, v in headers.items()})
        answer = link.getresponse()
        answer.body = answer.read()
        link.close()
        return answer


def quoted(path):
    return urllib.parse.quote(str(path), safe="")


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.top = pathlib.Path(cls.holder.name).resolve()
        cls.folder = cls.top / "results"
        cls.folder.mkdir()
        (cls.top / "secret.txt").write_text("secret")
        subprocess.run([MAKE, cls.folder, "8", "1", "ledgers"], check=True, capture_output=True)
        cls.server = Server(cls.folder, "--no-token").__enter__()
        cls.data = json.loads(cls.server.ask("/data.json").body)
        cls.figures = [f["path"] for f in cls.data["files"] if f["kind"] == "figure"]

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()
        code = cls.server.code
        cls.holder.cleanup()
        assert code == 0, f"exit code {code} after SIGINT"

    def status(self, target, **more):
        return self.server.ask(target, **more).status


class Shows(Case):
    def test_page_and_data(self):
        page = self.server.ask("/")
        self.assertEqual(page.status, 200)
        self.assertIn(b"<!doctype html>", page.body)
        self.assertIn(b'"live":true', page.body)
        self.assertEqual(len(self.data["tasks"]), 24)
        self.assertEqual(self.server.ask("/data.json").headers["Content-Type"], "application/json")

    def test_headers(self):
        for target in ("/", "/data.json", "/nothing", "/file?path=" + quoted(self.figures[0])):
            head = self.server.ask(target).headers
            self.assertEqual(head["X-Content-Type-Options"], "nosniff")
            self.assertEqual(head["X-Frame-Options"], "DENY")
            self.assertEqual(head["Cache-Control"], "no-store")
            if target == "/":  # the page has a policy of its own
                self.assertEqual(head["Content-Security-Policy"], "frame-ancestors 'none'")
            else:
                self.assertIn("default-src 'none'", head["Content-Security-Policy"])
                self.assertIn("sandbox", head["Content-Security-Policy"])
            self.assertIsNone(head["Access-Control-Allow-Origin"])

    def test_figures_are_the_files(self):
        for path in self.figures:
            got = self.server.ask("/file?path=" + quoted(path))
            self.assertEqual(got.status, 200)
            self.assertEqual(got.headers["Content-Type"], "image/png")
            self.assertEqual(got.body, pathlib.Path(path).read_bytes())

    def test_head_has_no_body(self):
        got = self.server.ask("/file?path=" + quoted(self.figures[0]), method="HEAD")
        self.assertEqual((got.status, got.body), (200, b""))
        self.assertEqual(int(got.headers["Content-Length"]), os.path.getsize(self.figures[0]))

    def test_parts_of_a_log(self):
        path = self.data["tasks"][0]["log_path"]
        text, target = pathlib.Path(path).read_bytes(), "/log?path=" + quoted(path)
        size = len(text)
        self.assertEqual(self.server.ask(target).body, text)
        for part, want in (("0-9", text[:10]), ("10-", text[10:]), ("-7", text[-7:]),
                           (f"5-{size * 9}", text[5:]), (f"-{size * 9}", text)):
            got = self.server.ask(target, Range="bytes=" + part)
            self.assertEqual((got.status, got.body), (206, want), part)
            first = size - len(want) if part[0] == "-" else int(part.split("-")[0])
            self.assertEqual(got.headers["Content-Range"],
                             f"bytes {first}-{first + len(want) - 1}/{size}")
        for part in (f"{size}-", f"{size + 5}-{size + 9}", "-0"):
            got = self.server.ask(target, Range="bytes=" + part)
            self.assertEqual((got.status, got.body), (416, b""), part)
            self.assertEqual(got.headers["Content-Range"], f"bytes */{size}")
        for part in ("bytes=9-3", "bytes=a-b", "bytes=0-1,4-5", "lines=1-2", "bytes=-", "bytes=+1-2",
                     "bytes=1-2x", "bytes=99999999999999999999-"):
            self.assertEqual(self.status(target, Range=part), 200, part)


class Packed(Case):
    def test_gzip_where_it_is_taken(self):
        for target in ("/", "/data.json"):
            plain = self.server.ask(target)
            self.assertIsNone(plain.headers["Content-Encoding"])
            for given in ("gzip", "br, gzip;q=0.5", "GZIP, deflate", "deflate,gzip"):
                got = self.server.ask(target, Accept_Encoding=given)
                self.assertEqual(got.headers["Content-Encoding"], "gzip", given)
                self.assertEqual(got.headers["Vary"], "Accept-Encoding")
                self.assertLess(len(got.body), len(plain.body) / 3)
                self.assertIn(b'"tasks": [', gzip.decompress(got.body))
            for given in ("br", "gzip;q=0", "x-gzip", "gzipped", "", "br;q=1, gzip;q=0.0"):
                got = self.server.ask(target, Accept_Encoding=given)
                self.assertIsNone(got.headers["Content-Encoding"], given)

    def test_what_is_known_is_not_sent_again(self):
        tag = self.server.ask("/data.json").headers["ETag"]
        time.sleep(1.1)  # the view is read again, and its clock has moved on
        for given in (tag, tag[2:], '"0", ' + tag, "*"):
            got = self.server.ask("/data.json", If_None_Match=given)
            self.assertEqual((got.status, got.body), (304, b""), given)
            self.assertEqual(got.headers["ETag"], tag)
        self.assertEqual(self.status("/data.json", If_None_Match='W/"0"'), 200)
        config = pathlib.Path(self.data["tasks"][0]["output_dir"]) / ".fathom"
        (config / "ledger.sqlite").rename(config / "away.sqlite")
        time.sleep(1.1)
        try:
            got = self.server.ask("/data.json", If_None_Match=tag)
            self.assertEqual(got.status, 200)
            self.assertNotEqual(got.headers["ETag"], tag)
        finally:
            (config / "away.sqlite").rename(config / "ledger.sqlite")

    def test_three_hundred_jobs_are_small(self):
        room = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # ledgers are synced
        with tempfile.TemporaryDirectory(dir=room) as folder:
            subprocess.run([MAKE, folder, "300", "0", "ledgers"], check=True, capture_output=True)
            with Server(folder, "--no-token") as server:
                got = server.ask("/data.json", Accept_Encoding="gzip")
            self.assertEqual(len(json.loads(gzip.decompress(got.body))["tasks"]), 900)
            self.assertLess(len(got.body), 200_000)


class Patience(Case):
    def test_one_address_cannot_take_all_connections(self):
        held = []
        try:
            for _ in range(160):
                s = socket.socket()
                s.settimeout(5)
                s.bind(("127.0.0.9", 0))
                s.connect(("127.0.0.1", self.server.address.port))
                held.append(s)
            begun = time.monotonic()
            self.assertEqual(self.status("/data.json"), 200)
            self.assertLess(time.monotonic() - begun, 4)
        finally:
            for s in held:
                s.close()


class Refuses(Case):
    def test_methods(self):
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
            got = self.server.ask("/", method=method, body=b"x" * 1000)
            self.assertEqual(got.status, 405, method)
            self.assertEqual(got.headers["Allow"], "GET, HEAD")

    def test_paths_that_are_not_listed(self):
        figure = self.figures[0]
        name, folder = os.path.basename(figure), os.path.dirname(figure)
        wrong = ["/etc/passwd", self.top / "secret.txt", self.folder / "report.html", self.folder,
                 self.data["tasks"][0]["config_path"], "", ".", "..",
                 f"{folder}/../../secret.txt", f"{folder}/./{name}", f"{folder}//{name}",
                 f"{folder}/../figures/{name}", figure + "\0.png", figure + "/", " " + figure,
                 self.data["tasks"][0]["log_path"], "file://" + figure,
                 self.data["tasks"][0]["output_dir"] + "/.fathom/ledger.sqlite"]
        wrong += [f["path"] for f in self.data["files"] if f["kind"] != "figure"]
        for path in wrong:
            self.assertEqual(self.status("/file?path=" + quoted(path)), 404, path)
        for target in ("/file", "/log", "/../secret.txt", "/%2e%2e/secret.txt", "/figures/" + name,
                       "//etc/passwd", "/file/" + quoted(figure), "/data.json/", "/favicon.ico",
                       "/log?path=" + quoted(figure)):
            self.assertEqual(self.status(target), 404, target)

    def test_links_that_lead_away(self):
        figure = pathlib.Path(self.figures[-1])
        kept = figure.read_bytes()
        beside = self.top / "results2"  # starts as the folder does, and is not below it
        beside.mkdir()
        (beside / "secret.png").write_bytes(kept)
        for goal in (self.top / "secret.txt", "/etc/passwd", "/dev/zero", beside / "secret.png",
                     "../../results2/secret.png"):
            figure.unlink()
            figure.symlink_to(goal)
            self.assertEqual(self.status("/file?path=" + quoted(figure)), 404, goal)
        figure.unlink()
        os.mkfifo(figure)  # would block whoever opens it
        self.assertEqual(self.status("/file?path=" + quoted(figure)), 404)
        figure.unlink()
        self.assertEqual(self.status("/file?path=" + quoted(figure)), 404)
        figure.write_bytes(kept)
        self.assertEqual(self.status("/file?path=" + quoted(figure)), 200)

    def test_names_of_others_for_this_machine(self):
        for host in ("evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.x", ""):
            self.assertEqual(self.status("/", Host=host), 403, host)
        for host in ("128.0.0.1", "127.0.0", "127.0.0.256", "[::2]", "[::1", "127.0.0.1x", "[::1]x"):
            self.assertEqual(self.status("/", Host=host), 403, host)
        for host in ("localhost", "LOCALHOST:99", "127.0.0.1", "[::1]:8700", "127.0.0.2:80"):
            self.assertEqual(self.status("/", Host=host), 200, host)

    def test_noise(self):
        for noise in (b"\0" * 500, b"GET / HTTP/9.9\r\n\r\n", b"GET " + b"/" * 100000 + b"\r\n\r\n",
                      b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 20000 + b"\r\n"):
            with socket.create_connection(("127.0.0.1", self.server.address.port), 20) as s:
                try:
                    s.sendall(noise)
                    s.shutdown(socket.SHUT_WR)
                    while s.recv(65536):
                        pass
                except OSError:
                    pass
        self.assertEqual(self.status("/data.json"), 200)


class Tokens(Case):
    def check_token(self, server):
        token = urllib.parse.parse_qs(server.address.query)["token"][0]
        name = f"fathom_{server.address.port}="
        self.assertRegex(token, r"^[0-9a-f]{32}$")
        for target in ("/", "/data.json", "/?token=", "/?token=" + token[:-1],
                       "/?token=" + token + "0", "/?token=" + token.upper().replace("0", "O")):
            self.assertEqual(server.ask(target).status, 401, target)
        for cookie in (name, name + "0" * 32, "other=" + token, "fathom_1=" + token):
            self.assertEqual(server.ask("/", Cookie=cookie).status, 401)
        self.assertNotIn(token.encode(), server.ask("/").body)
        got = server.ask("/?token=" + token)
        self.assertEqual((got.status, got.headers["Location"]), (303, "/"))
        cookie = got.headers["Set-Cookie"]
        self.assertTrue(cookie.startswith(name))
        self.assertIn("HttpOnly", cookie)
        self.assertIn("SameSite=Strict", cookie)
        self.assertEqual(server.ask("/data.json", Cookie=cookie.split(";")[0]).status, 200)
        self.assertEqual(server.ask("/", Authorization="Bearer " + token).status, 200)
        return token

    def test_a_token_is_needed(self):
        """On the loopback too, which every user of the machine reaches."""
        with Server(self.folder) as server:
            token = self.check_token(server)
        self.assertEqual(server.code, 0)
        with Server(self.folder) as server:
            self.assertNotIn(token, server.url)  # a new one each time

    def test_all_addresses_are_printed_as_they_can_be_opened(self):
        with Server(self.folder, "--bind", "0.0.0.0") as server:
            self.assertEqual(server.address.hostname, "127.0.0.1")
            self.check_token(server)
            own = socket.gethostbyname(socket.gethostname())
            server.process.send_signal(signal.SIGINT)
            rest = server.process.stdout.read().split()
        self.assertNotIn("0.0.0.0", server.url + "".join(rest))
        for line in rest:
            self.assertEqual(urllib.parse.urlsplit(line).port, server.address.port)
            self.assertEqual(urllib.parse.urlsplit(line).query, server.address.query)
        if not own.startswith("127."):
            self.assertIn(own, [urllib.parse.urlsplit(line).hostname for line in rest])

    def test_another_address_of_the_loopback(self):
        with Server(self.folder, "--bind", "127.0.0.2", "--no-token") as server:
            self.assertEqual(server.address.hostname, "127.0.0.2")
            self.assertEqual(server.ask("/data.json", host="127.0.0.2").status, 200)

    def test_a_token_of_ones_own(self):
        with Server(self.folder, "--token", "correct-horse") as server:
            self.assertTrue(server.url.endswith("/?token=correct-horse"))
            self.assertEqual(server.ask("/").status, 401)
            self.assertEqual(server.ask("/", Authorization="Bearer correct-horse").status, 200)

    def fails(self, code, text, *words):
        done = subprocess.run([PROGRAM, "serve", *map(str, words)], capture_output=True, text=True,
                              timeout=30)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(text, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_mistakes_end_at_once(self):
        self.fails(2, f"port {self.server.address.port} of 127.0.0.1 is in use", self.folder,
                   "--port", self.server.address.port)
        self.fails(2, "at most 65535", self.folder, "--port", 65536)
        self.fails(2, "expected an address", self.folder, "--bind", "no.such.host")
        self.fails(2, "cannot be opened", self.folder, "--port", 0, "--bind", "192.0.2.1")
        self.fails(2, "exclude each other", self.folder, "--token", "long-enough", "--no-token")
        self.fails(2, "a token is needed", self.folder, "--bind", "0.0.0.0", "--no-token")
        self.fails(2, "8 to 256", self.folder, "--token", "short")
        self.fails(2, "8 to 256", self.folder, "--token", "with; Path=/ and more")

    def test_only_the_loopback_is_bound(self):
        self.assertEqual(self.server.address.hostname, "127.0.0.1")
        listening = pathlib.Path("/proc/net/tcp").read_text()
        port = f"{self.server.address.port:04X}"
        self.assertEqual(set(re.findall(rf"([0-9A-F]{{8}}):{port} 00000000:0000 0A", listening)),
                         {"0100007F"})

    def test_sigterm_ends_it_too(self):
        server = Server(self.folder)
        server.process.terminate()
        self.assertEqual(server.process.wait(20), 0)
        server.process.stdout.close()
        server.process.stderr.close()


class Report(Case):
    def run_report(self, *words):
        return subprocess.run([PROGRAM, "report", *map(str, words)], capture_output=True, text=True,
                              cwd=self.folder, timeout=60)

    def test_report(self):
        done = self.run_report()
        self.assertEqual((done.returncode, done.stdout), (0, "./report.html\n"), done.stderr)
        page = (self.folder / "report.html").read_text()
        self.assertIn("figures/", page)
        elsewhere = self.top / "page.html"
        done = self.run_report(self.folder, "-o", elsewhere, "--embed")
        self.assertEqual((done.returncode, done.stdout), (0, f"{elsewhere}\n"), done.stderr)
        page = elsewhere.read_text()
        self.assertIn('"results/figures/', page)
        self.assertEqual(page.count(">data:image/png;base64,"), len(self.figures))

    def test_mistakes(self):
        empty = self.top / "empty"
        empty.mkdir()
        done = self.run_report(empty)
        self.assertEqual(done.returncode, 2)
        self.assertIn("hold no jobs", done.stderr)
        done = self.run_report(self.folder, "-o", "/no/such/folder/page.html")
        self.assertEqual(done.returncode, 3)
        self.assertIn("/no/such/folder", done.stderr)
        self.assertEqual(list(empty.iterdir()), [])


class Waiting(unittest.TestCase):
    """Runs beside the other tests, and is looked at last: a request has ten seconds."""
    @classmethod
    def start(cls):
        cls.holder = tempfile.TemporaryDirectory()
        subprocess.run([MAKE, cls.holder.name, "1", "0", "ledgers"], check=True, capture_output=True)
        cls.server = Server(cls.holder.name, "--no-token")
        cls.ended = None
        cls.thread = threading.Thread(target=cls.send_slowly)
        cls.thread.start()

    @classmethod
    def send_slowly(cls):
        """A byte now and then, never enough."""
        begun = time.monotonic()
        with socket.create_connection(("127.0.0.1", cls.server.address.port), 20) as slow:
            slow.sendall(b"GET /data.json HTTP/1.1\r\nHost: localhost\r\n")
            slow.settimeout(0.4)
            while cls.ended is None and time.monotonic() - begun < 16:
                try:
                    slow.sendall(b"X")
                    if slow.recv(1) == b"":
                        cls.ended = time.monotonic() - begun
                except TimeoutError:
                    pass
                except OSError:
                    cls.ended = time.monotonic() - begun

    def test_a_request_has_an_end(self):
        self.thread.join()
        self.assertIsNotNone(self.ended, "it still lives after 16 s")
        self.assertGreater(self.ended, 8)
        self.assertEqual(self.server.ask("/data.json").status, 200)


def setUpModule():
    Waiting.start()


def tearDownModule():
    Waiting.thread.join()
    Waiting.server.__exit__()
    Waiting.holder.cleanup()


if __name__ == "__main__":
    unittest.main()
