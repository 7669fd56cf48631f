# test_interrupt.py - Ctrl-C ends a run of Python: real signals to real processes.
# seconds: 12
import os
import signal
import subprocess
import sys
import time
import unittest

HEADER = """
import os, signal, sys, threading, time
import fathom, numpy as np
def hit(after, number=signal.SIGINT):
    threading.Timer(after, os.kill, (os.getpid(), number)).start()
def timed(function):
    t = time.monotonic()
    try:
        function()
        print("it was not interrupted")
    except BaseException as e:
        print(type(e).__name__, e, f"after {time.monotonic() - t:.2f} s", sep="|", flush=True)
"""

# One step of many tiles, some minutes long on one core; the result is one number, or an array.
LONG = """
g = fathom.Graph(memory="1G", threads={threads})
g.axes(i=2_000_000, j=2000)
v = (g.index("i").cast("f32").expand("j") * 1e-9 + g.index("j").cast("f32")).lgamma()
plan = g.plan({what})
"""


def run(program, **options):
    return subprocess.run([sys.executable, "-c", HEADER + program], capture_output=True, text=True,
                          timeout=60, **options)


class Interrupt(unittest.TestCase):
    def ended_soon(self, out, name, limit=5.0):
        self.assertEqual((out.returncode, out.stderr), (0, ""))
        first = out.stdout.splitlines()[0]
        self.assertEqual(first.split("|")[0], name, out.stdout)
        self.assertLess(float(first.split("|")[-1].split()[1]), limit)

    def test_inside_one_step_and_again(self):
        for threads, what in ((1, "v.sum('i j')"), (1, "v.sum('j')"), (2, "v.sum('i j')")):
            out = run(LONG.format(threads=threads, what=what) + """
hit(0.3)
timed(plan.run)
timed(lambda: g.plan(g.index("i").sum("i")).run())
print(g.plan(g.index("i").sum("i")).run())
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
hit(0.3)
timed(plan.run)
""")
            self.ended_soon(out, "KeyboardInterrupt")
            lines = out.stdout.splitlines()
            self.assertEqual(lines[1:4], ["it was not interrupted", "1999999000000", "True"])
            self.assertEqual(lines[4].split("|")[0], "KeyboardInterrupt")

    def test_from_outside_as_a_terminal_does(self):
        program = HEADER + LONG.format(threads=2, what="v.sum('j')") + """
print("ready", flush=True)
try:
    plan.run()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
        p = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        self.assertEqual(p.stdout.readline(), "ready\n")
        time.sleep(0.5)
        begun = time.monotonic()
        os.kill(p.pid, signal.SIGINT)
        self.assertEqual(p.stdout.readline(), "interrupted\n")
        self.assertLess(time.monotonic() - begun, 5.0)
        self.assertEqual(p.wait(30), 0)
        p.stdout.close()

    def test_while_a_source_is_read(self):
        out = run("""
g = fathom.Graph(memory="1G", threads=1)
g.axes(i=1000)
def read(lo, n):
    time.sleep(0.3)
    return np.zeros(n, "f4")
v = [g.input(f"x{k}", fathom.Source((1000,), "f4", read), "i").sum("i") for k in range(40)]
plan = g.plan(v)
hit(0.5)
timed(plan.run)
""")
        self.ended_soon(out, "KeyboardInterrupt", 4.0)

    def test_a_handler_that_raises_something_else(self):
        out = run("""
def handler(number, frame):
    raise TimeoutError("enough")
signal.signal(signal.SIGALRM, handler)
""" + LONG.format(threads=2, what="v.sum('j')") + """
signal.setitimer(signal.ITIMER_REAL, 0.5)
timed(plan.run)
""")
        self.ended_soon(out, "TimeoutError")

    def test_a_handler_that_does_not_raise(self):
        out = run("""
seen = []
signal.signal(signal.SIGUSR1, lambda *a: seen.append(1))
g = fathom.Graph(memory="1G", threads=2)
g.axes(i=20_000_000)
plan = g.plan(g.index("i").cast("f32").lgamma().sum("i"))
hit(0.01, signal.SIGUSR1)
plan.run()
time.sleep(0.1)
print(seen)
""")
        self.assertEqual((out.returncode, out.stdout, out.stderr), (0, "[1]\n", ""))

    def test_files_and_parameters_are_as_before(self):
        out = run(LONG.format(threads=2, what="v.sum('j')") + """
import tempfile
folder = tempfile.mkdtemp()
path = os.path.join(folder, "out.npy")
np.save(path, np.arange(3))
plan = g.plan(v.sum("j"), into={0: path})
hit(0.4)
timed(plan.run)
print(np.load(path), os.listdir(folder))
""")
        self.ended_soon(out, "KeyboardInterrupt")
        self.assertEqual(out.stdout.splitlines()[1], "[0 1 2] ['out.npy']")

    def test_an_image_of_bragg(self):
        out = run("""
hit(0.4)
timed(lambda: fathom.bragg(cell=[70, 80, 90, 75, 85, 95], default_F=100, N=5, lambda_=1.0,
                           distance=100, detpixels=3000, oversample=20, threads=2))
""")
        self.ended_soon(out, "KeyboardInterrupt")

    def test_python_ends_during_a_run_of_a_daemon_thread(self):
        for what in ("p.run()", "g.normal('n', seed=2).show()"):
            for _ in range(3):  # it crashed at most ends
                out = run(f"""
g = fathom.Graph(memory="128M", threads=2)
g.axes(n=3000000)
p = g.plan(g.normal("n", seed=1, dtype="f64").erf().sum(), memory="1M")
threading.Thread(target=lambda: [{what} for _ in range(1000)], daemon=True).start()
time.sleep(0.1)
t = time.monotonic()
import atexit
atexit.register(lambda: print(g.const(2.0).item(), flush=True))  # the thread that ends may still run
""")
                self.assertEqual((out.returncode, out.stdout, out.stderr), (0, "2.0\n", ""), what)


if __name__ == "__main__":
    unittest.main()
