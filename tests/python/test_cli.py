"""The program as its users meet it: exit codes, help, hints and JSON. seconds: 10"""
import gzip
import json
import os
import re
import shutil
import stat
import subprocess
import tarfile
import tempfile
import time
import unittest

PROGRAM = os.environ.get("FATHOM_PROGRAM") or os.path.join(
    os.path.dirname(os.environ.get("FATHOM_LIBRARY", "build/lib/libfathom.so")), "../bin/fathom")
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def run(*words, **environment):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **environment})
    return done.returncode, done.stdout, done.stderr


def commands():
    lines = run("help")[1].splitlines()
    return [found[1] for found in (re.match(r"  ([a-z]+) ", line) for line in lines) if found]


def all_commands():
    """Each as its words; the first word of a group alone is none."""
    for name in commands():
        lines = run(name, "--help")[1].splitlines()
        if " VERB " not in lines[0]:
            yield [name]
            continue
        for found in (re.match(r"  ([a-z]+) ", line) for line in lines):
            if found:
                yield [name, found[1]]


class Usage(unittest.TestCase):
    def test_alone_it_shows_help_and_fails(self):
        code, out, err = run()
        self.assertEqual((code, out), (2, ""))
        self.assertIn("usage: fathom COMMAND", err)

    def test_help_of_every_command(self):
        self.assertLessEqual({"doctor", "help", "sounding", "version"}, set(commands()))
        for words in all_commands():
            code, out, err = run(*words, "--help")
            self.assertEqual((code, err), (0, ""))
            self.assertIn("usage: fathom " + " ".join(words), out)
            self.assertIn("--help", out)
            self.assertLessEqual(max(map(len, out.splitlines())), 80)
            self.assertEqual(run("help", *words)[1], out)
            self.assertEqual(run(*words, "-h")[1], out)
        self.assertEqual(run("--help"), run("help"))

    def test_mistakes_are_named(self):
        for words, text in [(["verison"], "did you mean 'fathom version'?"),
                            (["help", "docter"], "did you mean 'fathom doctor'?"),
                            (["help", "--", "--json"], "is not a command"),
                            (["doctor", "--devise=cpu"], "did you mean --device?"),
                            (["version", "--threads", "2"], "does not take --threads"),
                            (["doctor", "--threads", "x"], "takes a whole number"),
                            (["doctor", "--json=1"], "takes no value"),
                            (["version", "now"], "does not take 'now'")]:
            code, out, err = run(*words)
            self.assertEqual((code, out), (2, ""), words)
            self.assertIn("FTH-USE-004", err)
            self.assertIn(text, err)

    def test_a_link_ends_with_the_code_of_its_program(self):
        with tempfile.TemporaryDirectory() as folder:
            link = os.path.join(folder, "nanoBragg")
            os.symlink(os.path.abspath(PROGRAM), link)
            words = ["-mat", "/no/such.mat", "-hkl", "/no/such.hkl"]
            done = subprocess.run([link, *words], capture_output=True, text=True, cwd=folder)
            self.assertEqual(done.returncode, 9, done.stderr)
            self.assertEqual(run("bragg", *words)[0], 3)

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "help"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 3)
        self.assertIn("standard output", done.stderr)


class Config(unittest.TestCase):
    def test_only_paths_below_are_shortened(self):
        with tempfile.TemporaryDirectory() as top:
            top = os.path.realpath(top)
            for folder, results in (("here", "here/out"), ("heretic", "hereafter")):
                os.mkdir(os.path.join(top, folder))
                with open(os.path.join(top, folder, "a.yaml"), "w") as f:
                    f.write("instrument: sounding\nname: a\nmodel.basis: plane\n"
                            f"output_dir: {top}/{results}\n")
            done = subprocess.run([os.path.abspath(PROGRAM), "config", "check", f"{top}/here/a.yaml",
                                   f"{top}/heretic/a.yaml"], cwd=os.path.join(top, "here"),
                                  capture_output=True, text=True)
            self.assertEqual(done.stdout.splitlines(), [
                "a.yaml: sounding, model plane, to out",
                f"{top}/heretic/a.yaml: sounding, model plane, to {top}/hereafter"], done.stderr)


class Version(unittest.TestCase):
    def test_short_and_long(self):
        with open(os.path.join(ROOT, "include/fathom/base.h")) as header:
            wanted = re.search(r'FTH_VERSION_TEXT "(.*)"', header.read())[1]
        self.assertEqual(run("version"), (0, f"fathom {wanted}\n", ""))
        self.assertEqual(run("--version"), run("version"))
        code, out, _ = run("version", "--verbose")
        self.assertEqual(code, 0)
        self.assertIn("OpenBLAS", out)

    def test_json(self):
        code, out, _ = run("version", "--json")
        page = json.loads(out)
        self.assertEqual(code, 0)
        versions = {row["name"]: row["version"] for row in page["libraries"]}
        for name in ("OpenBLAS", "HDF5", "zlib", "libyaml", "cairo", "xxHash"):
            self.assertRegex(versions[name], r"[0-9]+\.[0-9]+")


    def test_the_kernels_in_use_are_named(self):
        """The engine may choose others than OpenBLAS did; its log says which."""
        used = re.search(r"OpenBLAS for (\w+)", run("doctor", "--log=info")[2])[1]
        versions = {row["name"]: row["version"] for row in json.loads(run("version", "--json")[1])
                    ["libraries"]}
        self.assertIn(f" {used}", versions["OpenBLAS"])
        self.assertIn(f" {used}", run("version", "--verbose")[1])


class Doctor(unittest.TestCase):
    def test_this_machine_can_run(self):
        code, out, err = run("doctor", "--threads", "1")
        self.assertEqual((code, err), (0, ""))
        for part in ("devices", "memory and disk", "libraries", "self-test", "1 worker\n"):
            self.assertIn(part, out)
        self.assertNotIn("\033", out)  # not a terminal

    def test_json(self):
        code, out, _ = run("doctor", "--json", "--ops", "--device=cpu", "--memory=1G")
        page = json.loads(out)
        self.assertEqual(code, 0)
        self.assertEqual(page["device"]["used"], "cpu")
        self.assertEqual(page["memory"]["budget_bytes"], 1 << 30)
        self.assertTrue(all(case["passed"] for case in page["selftest"]))
        rows = {row["name"]: row["dtypes"] for row in page["operations"]}
        self.assertIn("c64", rows["fft"])
        self.assertNotIn("bool", rows["add"])

    def test_a_device_that_is_not_there(self):
        with tempfile.TemporaryDirectory() as folder:
            code, out, err = run("doctor", "--device", "cuda", "--json", "--scratch", folder,
                                 CUDA_VISIBLE_DEVICES="")
            self.assertEqual(os.listdir(folder), [])
        page = json.loads(out)
        if page["cuda"]["usable"]:
            self.skipTest("this machine has CUDA")
        self.assertEqual(code, 5)
        self.assertIn("FTH-DEV-001", err)
        faults = [fault for fault in page["faults"] if fault["about"] == "cuda"]
        self.assertTrue(faults and all(fault["stops"] and fault["remedy"] for fault in faults))

    def test_a_scratch_folder_that_is_not_there(self):
        code, out, _ = run("doctor", "--scratch", "/no/such/folder")
        self.assertEqual(code, 0)
        self.assertIn("The scratch folder /no/such/folder is not there.", out)

    def test_a_path(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "large"), "wb") as file:
                file.write(b"x" * (3 << 20))
            with open(os.path.join(folder, "small"), "wb") as file:
                file.write(b"x")
            code, out, _ = run("doctor", "--json", "--path", folder)
            storage = json.loads(out)["storage"]
            self.assertEqual(code, 0)
            self.assertEqual(storage["file"], os.path.join(folder, "large"))
            self.assertGreater(storage["read_bytes_per_s"], 0)
            self.assertGreater(storage["open_s"], 0)
            self.assertGreater(storage["free_bytes"], 0)
            self.assertEqual(sorted(os.listdir(folder)), ["large", "small"])
            code, out, err = run("doctor", "--path", os.path.join(folder, "none"))
            self.assertEqual(code, 3)
            self.assertIn("No such file or directory", err)
            self.assertIn("fault:", out)

    def test_a_bundle(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.tar")
            code, out, _ = run("doctor", "--bundle", path, SECRET_TOKEN="do-not-tell",
                               OMP_NUM_THREADS="3")
            self.assertEqual(code, 0)
            self.assertIn(path, out)
            self.assertEqual(os.listdir(folder), ["report.tar"])
            with tarfile.open(path, "r:") as tar:
                files = {name: tar.extractfile(name).read() for name in tar.getnames()}
        page = json.loads(files["fathom-doctor/doctor.json"])
        self.assertTrue(page["selftest"])
        self.assertIn(b"OpenBLAS", files["fathom-doctor/version.txt"])
        self.assertIn(b"OMP_NUM_THREADS=3\n", files["fathom-doctor/environment.txt"])
        self.assertIn(b"MemTotal", files["fathom-doctor/proc/meminfo"])
        self.assertIn(b"self-test", files["fathom-doctor/doctor.txt"])
        self.assertFalse(any(b"do-not-tell" in text for text in files.values()))
        code, _, err = run("doctor", "--bundle", "/no/such/folder/report.tar")
        self.assertEqual(code, 3)
        self.assertIn("/no/such/folder/report.tar", err)

    def test_a_bundle_takes_the_place_of_files_only(self):
        with tempfile.TemporaryDirectory() as folder:
            pipe = os.path.join(folder, "pipe")
            os.mkfifo(pipe)
            code, _, err = run("doctor", "--bundle", pipe)
            self.assertEqual(code, 3)
            self.assertIn("no file", err)
            self.assertTrue(stat.S_ISFIFO(os.stat(pipe).st_mode))
            self.assertEqual(os.listdir(folder), ["pipe"])

    def test_log_lines_go_to_standard_error(self):
        self.assertIn("device cpu", run("doctor", "--log=info")[2])


def not_json(text):
    raise ValueError(f"{text} is not JSON")


class Trace(unittest.TestCase):
    def traced(self, *words, name="run.json"):
        """Exit code, and the timeline, read by a parser that takes nothing but JSON."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, name)
            code, _, err = run(*words, "--trace", path)
            self.assertEqual(os.listdir(folder), [name], err)
            with (gzip.open if name.endswith(".gz") else open)(path, "rb") as file:
                page = json.loads(file.read().decode("utf-8", "strict"), parse_constant=not_json)
        self.assertEqual(page["schemaVersion"], 1)
        self.assertAlmostEqual(page["baseTimeNanoseconds"] / 1e9, time.time(), delta=60)
        return code, page["traceEvents"]

    def test_every_command(self):
        for words in (["version", "--verbose"], ["help"], ["doctor", "--threads=1"]):
            code, events = self.traced(*words)
            self.assertEqual(code, 0)
            commands = [e for e in events if e.get("cat") == "command"]
            self.assertEqual([e["name"] for e in commands], [words[0]])
            for e in events:
                self.assertIn(e["ph"], "XiCM")
                if e["ph"] == "X" and e["cat"] == "phase":
                    self.assertLessEqual(e["ts"] + e["dur"], commands[0]["dur"] + 0.001)

    def test_doctor(self):
        code, events = self.traced("doctor", "--json", name="run.json.gz")
        self.assertEqual(code, 0)
        phases = [e["name"] for e in events if e.get("cat") == "phase"]
        self.assertEqual(phases, ["look", "measure", "judge", "self-test", "show"])
        self.assertEqual([e["ph"] for e in events if e["name"] == "no device activity: run on cpu"],
                         ["i"])
        self.assertTrue(any(e.get("cat") == "step" for e in events))  # of the engine

    def test_a_failed_command_is_traced_too(self):
        code, events = self.traced("doctor", "--path", "/no/such/file")
        self.assertEqual(code, 3)
        self.assertTrue(any(e["ph"] == "i" and "opened" in e["name"] for e in events), events)

    def test_kernels_are_part_of_a_timeline(self):
        code, out, err = run("run", "all", "-c", "/no/such.yaml", "--trace-kernels")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("--trace FILE", err)

    def test_places_that_cannot_be_written(self):
        start = time.monotonic()
        code, out, err = run("doctor", "--trace", "/no/such/folder/run.json")
        self.assertEqual((code, out), (3, ""))
        self.assertIn("/no/such/folder/run.json", err)
        self.assertLess(time.monotonic() - start, 5)  # before anything was done
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(run("version", "--trace", folder)[0], 3)
            self.assertEqual(os.listdir(folder), [])


class Colour(unittest.TestCase):
    @unittest.skipUnless(shutil.which("script"), "no program to make a terminal with")
    def test_only_on_a_terminal_and_not_when_unwanted(self):
        def in_terminal(**environment):
            return subprocess.run(["script", "-qec", f"{PROGRAM} doctor", "/dev/null"], text=True,
                                  stdin=subprocess.DEVNULL, capture_output=True,
                                  env={**os.environ, **environment}).stdout
        self.assertIn("\033[1m", in_terminal(NO_COLOR=""))
        self.assertNotIn("\033[", in_terminal(NO_COLOR="1"))


@unittest.skipUnless(shutil.which("bash"), "no bash")
class Completion(unittest.TestCase):
    def complete(self, *words):
        script = os.path.join(ROOT, "docs/completions/fathom.bash")
        quoted = " ".join(f"'{word}'" for word in words)
        text = (f"source '{script}'; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _fathom;"
                ' printf "%s\\n" "${COMPREPLY[@]}"')
        return subprocess.run(["bash", "-c", text], capture_output=True, text=True).stdout.split()

    def test_bash(self):
        self.assertEqual(self.complete("fathom", "ver"), ["version"])
        self.assertEqual(self.complete("fathom", "doctor", "--de"), ["--device"])
        self.assertEqual(self.complete("fathom", "doctor", "--device", "c"), ["cpu", "cuda"])
        self.assertEqual(self.complete("fathom", "help", "do"), ["doctor"])


if __name__ == "__main__":
    unittest.main()
