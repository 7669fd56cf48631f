"""The program as its users meet it: exit codes, help, hints and JSON. seconds: 20"""
import gzip
import json
import os
import pathlib
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

    def test_too_few_addresses(self):
        for name, wanted in (("fathom", 4), ("nanoBragg", 9), ("noisify", 9)):
            program = os.path.join(os.path.dirname(os.path.abspath(PROGRAM)), name)
            done = subprocess.run(["bash", "-c", f"ulimit -v 200000; '{program}' version"], capture_output=True,
                                  text=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "2"})
            self.assertEqual(done.returncode, wanted, done.stderr)
            self.assertIn("ulimit -v", done.stderr)

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
        self.assertIn("The scratch folder /no/such/folder does not exist.", out)

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
            self.assertIn("not a regular file", err)
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


def snapshot(folder):
    """Every file and folder below, with its bytes."""
    out = {}
    for base, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(base, name)
            out[path] = pathlib.Path(path).read_bytes() if os.path.isfile(path) else None
    return out


class EveryCommand(unittest.TestCase):
    """All commands of the table with flags that each of them has to heed."""
    TISSUE = "name: t\ndataset: toy\noutput_dir: {d}/out\npreprocessing: {{path: {d}/toy}}\n" \
             "model: {{n_components: 2, {model}}}\ntraining: {{max_iter: 3}}\n"
    CELL = "-cell 40 40 40 90 90 90 -N 3 -default_F 10 -lambda 1 -distance 60 -detpixels 24 -pixel 0.4"
    STAGES = {"spatial": ["preprocess", "train", "analyze", "figures"], "bragg": ["render", "figures"],
              "sounding": ["survey", "fit", "analyze", "figures"],
              "ptycho": ["data", "figures"], "splat": ["data", "figures"]}

    NETWORK = ["--n_groups=8", "--nepochs=1", "--n_filters_scale=1"]

    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        d = cls.dir = os.path.join(cls.kept.name, "in")
        os.makedirs(d + "/general")
        models = {"svgp": "spatial: true, prior: SVGP, num_inducing: 20", "pnmf": "spatial: false"}
        texts = {f"{m}.yaml": cls.TISSUE.format(d=d, model=text) for m, text in models.items()}
        texts["general/general.yaml"] = f"instrument: spatial\nname: g\ndataset: toy\noutput_dir: {d}/gen\n" \
                                f"preprocessing: {{path: {d}/toy}}\nmodel: {{n_components: 2}}\n"
        texts["grid.yaml"] = f"instrument: bragg\nname: g\noutput_dir: {d}/grid\ncrystal: {{default_F: 1, " \
                             "cell: [40, 40, 40, 90, 90, 90]}\nbeam: {lambda: [1, 1.1]}\n"
        texts["sea.yaml"] = f"instrument: sounding\nname: s\noutput_dir: {d}/sea\nsurvey: {{cells: 300}}\n" \
                            "model: {basis: waves, order: 1}\nfit: {iterations: 3}\nfigures: {dpi: 40}\n"
        texts["seas.yaml"] = f"instrument: sounding\nname: s\noutput_dir: {d}/seas\n"
        texts["shots.yaml"] = f"instrument: bragg\nname: b\noutput_dir: {d}/shots\ncrystal: {{default_F: 10, " \
                              "cell: [40, 40, 40, 90, 90, 90], N: [3, 3, 3]}\nbeam: {lambda: 1}\n" \
                              "detector: {distance: 60, pixels: [16, 16], pixel: 0.6}\nfigures: {dpi: 40}\n"
        texts["plate.yaml"] = f"instrument: focus\nname: p\noutput_dir: {d}/plates\n" \
                              f"input: {{data_root: {d}/plate, exp: 20250101_toy, microscope: YX1}}\n"
        scan = "N: 32\nsize: 96\nn_images: 24\nbuffer: 20\nobject_scale: half\niterations: 2\n"
        texts["beam.yaml"] = f"instrument: ptycho\nname: p\noutput_dir: {d}/beam\nalgorithm: lsqml\n" + scan
        texts["beams.yaml"] = f"instrument: ptycho\nname: p\noutput_dir: {d}/beams\nalgorithms: [lsqml, epie]\n" + scan
        blobs = "iterations: 3\nsh_degree: 0\ntoy: {gaussians: 40, views: 3, width: 24, height: 20}\n"
        texts["blobs.yaml"] = f"instrument: splat\nname: g\noutput_dir: {d}/blobs\nstrategy: mcmc\n" + blobs
        texts["both.yaml"] = f"instrument: splat\nname: g\noutput_dir: {d}/both\n" + blobs
        texts["water.stol"] = "0 2.57\n0.1 3\n0.5 7\n1 4\n"
        for name, text in texts.items():
            with open(os.path.join(d, name), "w") as file:
                file.write(text)
        cls.must("spatial", "toy", "-o", d + "/toy", "--cells=100", "--genes=12", "--factors=2")
        cls.must("focus", "toy", "-o", d + "/plate", "--wells=3", "--times=1", "--planes=3")
        cls.must("focus", "toy", "-o", d + "/seen", "--wells=1", "--times=1", "--planes=2")
        cls.must("focus", "run", "--data-root", d + "/seen", "--exp=20250101_toy", "--microscope=YX1")
        cls.must("run", "preprocess", "train", "analyze", "-c", d + "/svgp.yaml", "-c", d + "/pnmf.yaml")
        cls.must("run", "index", "fuse", "stitch", "-c", d + "/plate.yaml")
        cls.must("run", "survey", "fit", "analyze", "-c", d + "/sea.yaml")
        cls.must("run", "render", "-c", d + "/shots.yaml")
        cls.must("run", "data", "solve", "train", "infer", "evaluate", "-c", d + "/beam.yaml")
        cls.must("run", "data", "train", "eval", "-c", d + "/blobs.yaml")
        cls.must("ptycho", "simulate", "wide.npz", "--n_images=12", "--size=128", "--buffer=40", "--lines=40")
        cls.must("ptycho", "train", "wide.npz", *cls.NETWORK, "--out", "net")
        cls.must("bragg", *cls.CELL.split(), "-floatfile", d + "/spots.bin", "-intfile", d + "/spots.img",
                 "-nonoise", "-nopgm")

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()

    @classmethod
    def must(cls, *words):
        done = subprocess.run([os.path.abspath(PROGRAM), *words], capture_output=True, text=True, cwd=cls.dir)
        assert done.returncode == 0, (words, done.stderr)

    def lines(self):
        """Words of a call that works, for each command; what is not here takes neither flag."""
        d, cell = self.dir, self.CELL.split()
        of = {"spatial": "svgp.yaml", "bragg": "shots.yaml", "sounding": "sea.yaml", "ptycho": "beam.yaml",
              "splat": "blobs.yaml"}
        all_of = {"spatial": "general/general.yaml", "bragg": "grid.yaml", "sounding": "seas.yaml",
                  "ptycho": "beams.yaml", "splat": "both.yaml"}
        scan, recon = d + "/beam/ptycho/scan.npz", d + "/beam/ptycho/reconstruction.npz"
        truth = d + "/toy/ground_truth_factors.npy"
        nd2 = d + "/plate/raw_image_data/YX1/20250101_toy/20250101_toy.nd2"
        plate = ["--data-root", d + "/plate", "--exp=20250101_toy", "--microscope=YX1"]
        gaussians = os.path.join(ROOT, "tests/golden/splat/tiny/splat_8.ply")
        out = {("version",): [], ("doctor",): ["--threads=1"], ("status",): [d], ("plan",): ["-c", d + "/sea.yaml"],
               ("config", "check"): [d + "/sea.yaml"], ("run",): ["survey", "-c", d + "/sea.yaml"],
               ("bragg",): cell, ("bragg", "draw"): cell + ["--only=spots,radial"],
               ("bragg", "refine"): [d + "/spots.img", *cell, "--free=flu", "--no-lattice"],
               ("bragg", "noisify"): ["-bin", d + "/spots.bin", "-detpixels", "24", "-pixel", "0.4",
                                      "-distance", "60", "-lambda", "1"],
               ("bragg", "nonbragg"): ["-stol", d + "/water.stol", *cell[-8:]],
               ("spatial", "toy"): ["--cells=50", "--genes=5", "--factors=2"],
               ("spatial", "info"): [d + "/out"], ("spatial", "export"): ["-c", d + "/svgp.yaml", "-o", "x.h5ad"],
               ("spatial", "genes"): ["-c", d + "/svgp.yaml", "-o", "genes.csv"],
               ("spatial", "page"): ["-c", d + "/svgp.yaml", "-o", "page.html"],
               ("spatial", "project"): ["-m", d + "/out/svgp/model.safetensors", "--data", d + "/out", "-o", "new"],
               ("spatial", "multianalyze"): ["-c", d + "/svgp.yaml", "svgp", "pnmf", "-o", "both"],
               ("spatial", "recovery"): [d + "/out/svgp", "--truth", truth],
               ("spatial", "sweep"): ["-c", d + "/pnmf.yaml", "--over", "model.n_components=1,2", "-o", "grid"],
               ("spatial", "consensus"): ["-c", d + "/pnmf.yaml", "--restarts=2", "--density=2", "-o", "many"],
               ("focus", "toy"): ["--wells=2", "--times=1", "--planes=3"], ("focus", "info"): [nd2],
               ("focus", "sheet"): ["--data-root", d + "/seen", "--exp=20250101_toy", "-o", "sheet.png"],
               ("focus", "init-plate"): ["-o", "plate.xlsx"],
               ("focus", "convert"): ["--data-root", d + "/seen", "--exp=20250101_toy", "-o", "plate.zarr"],
               ("focus", "selftest"): ["--devices=cpu"],
               ("focus", "bench"): ["--z=3", "--height=24", "--width=20", "--iters=1", "--devices=cpu"],
               ("focus", "stack"): [nd2, "-o", "sharp"], ("focus", "run"): plate, ("focus", "plan"): plate,
               ("ptycho", "info"): [scan], ("ptycho", "check"): [scan], ("ptycho", "convert"): [scan, "x.npz"],
               ("ptycho", "simulate"): ["x.npz", "--n_images=9", "--N=32", "--size=96"],
               ("ptycho", "solve"): [scan, "--iterations=1", "--out=o"],
               ("ptycho", "train"): [d + "/wide.npz", *self.NETWORK, "--out=o"],
               ("ptycho", "infer"): [d + "/net/model.safetensors", d + "/wide.npz", "--n_groups=8", "--out=o"],
               ("ptycho", "evaluate"): [recon, scan, "--out=o"], ("ptycho", "compare"): [scan, recon, "--out=o"],
               ("ptycho", "view"): [recon, "--out=o"], ("ptycho", "op"): ["probe", "x.npz", "--N=16"],
               ("ptycho", "study"): ["dose", "--n-train=8", "--n-test=4", "--skip-training", "--out=o"],
               ("splat", "info"): [gaussians], ("splat", "convert"): [gaussians, "x.spz"],
               ("splat", "toy"): ["-o", "made", "--views=2", "--gaussians=50"],
               ("splat", "render"): [gaussians, "-d", os.path.dirname(gaussians), "-o", "o"],
               ("splat", "train"): ["-d", d + "/blobs/toy", "-o", "o", "-i", "2", "--sh-degree=0"],
               ("splat", "densify"): [gaussians, "--iteration=600", "--scene-scale=1", "-o", "x.ply"],
               ("splat", "bench-densify"): ["--n=2000", "--mode=split-all", "--adam=1"],
               ("splat", "eval"): [gaussians, "-d", os.path.dirname(gaussians), "-o", "o"],
               ("sounding", "depth"): [d + "/sea/waves/model.safetensors", "1", "2"]}
        out.update({("focus", stage): ["-c", d + "/plate.yaml"] for stage in ("index", "fuse", "stitch", "figures")})
        for group, stages in self.STAGES.items():
            out.update({(group, stage): ["-c", f"{d}/{of[group]}"] for stage in stages})
            out[group, "plan"] = ["-c", f"{d}/{of[group]}"]
            out[group, "generate"] = ["-c", f"{d}/{all_of[group]}"]
        return out

    def each(self, flag):
        """Every command whose page has the flag, with the words of a call that works."""
        lines = self.lines()
        with open(os.path.join(ROOT, "docs/cli.md")) as file:  # made from the table
            pages = re.split(r"^## fathom ", file.read(), flags=re.M)[1:]
        found = [tuple(page.split("\n")[0].split()) for page in pages
                 if re.search(rf"^\| `(-., )?--{flag}\b", page, re.M)]
        self.assertEqual([words for words in found if words not in lines], [])  # add them to the table
        self.assertGreater(len(found), 15)
        return [(words, lines[words]) for words in found]

    def call(self, folder, *words):
        done = subprocess.run([os.path.abspath(PROGRAM), *words], capture_output=True, text=True, cwd=folder,
                              timeout=60)
        self.assertEqual(done.returncode, 0, (words, done.stderr))
        return done.stdout

    def test_a_plan_writes_nothing_and_says_something(self):
        before = snapshot(self.dir)
        for words, rest in self.each("plan"):
            with tempfile.TemporaryDirectory() as empty, self.subTest(words=words):
                self.assertRegex(self.call(empty, *words, *rest, "--plan"), r"\d [KMG]?i?B\b|cached")
                page = json.loads(self.call(empty, *words, *rest, "--plan", "--json"))
                self.assertRegex(json.dumps(page), "bytes|memory")
                self.assertEqual((os.listdir(empty), snapshot(self.dir) == before), ([], True))

    def test_plans_name_files_and_memory(self):
        with tempfile.TemporaryDirectory() as empty:
            out = self.call(empty, "spatial", "project", *self.lines()["spatial", "project"], "--plan")
            self.assertRegex(out, r"reads  .*/preprocessed/X.npy: f32 100 x 2, 928 B")
            self.assertRegex(out, r"writes new/factors.npy: f32 100 x 2, 928 B")
            self.assertRegex(out, r"\nmemory \d+\.\d+ MiB: planned")
            words = ["spatial", "sweep", *self.lines()["spatial", "sweep"], "--plan"]
            tasks = json.loads(self.call(empty, *words, "--json"))["tasks"]
            self.assertEqual([t["stage"] for t in tasks], ["preprocess"] + 2 * ["train", "analyze"])
            self.assertTrue(all(t["planned_bytes"] > 1 << 20 for t in tasks))
            code, _, err = run("spatial", "info", self.dir, "--plan")
            self.assertEqual((code, "does not take --plan" in err), (2, True))

    def test_the_json_of_every_command_is_one_document(self):
        for words, rest in self.each("json"):
            with tempfile.TemporaryDirectory() as empty, self.subTest(words=words):
                page = json.loads(self.call(empty, *words, *rest, "--json"), parse_constant=not_json)
                for file in page.get("files", []) if isinstance(page, dict) else []:
                    if "use" in file and file["use"] != "reads" and "bytes" in file:
                        self.assertEqual(os.path.getsize(os.path.join(empty, file["path"])), file["bytes"])
        self.assertEqual(run("bragg", "--json")[:2], (2, ""))  # no usage among the answers

    def test_nothing_that_is_read_is_replaced(self):
        cell = self.CELL.split()
        with tempfile.TemporaryDirectory() as d:
            os.mkdir(d + "/s")
            for name in ("x.hkl", "s/y.hkl"):
                pathlib.Path(d, name).write_text("0 0 1 10\n0 1 0 10\n1 0 0 10\n")
            os.link(d + "/x.hkl", d + "/twin")
            os.symlink("x.hkl", d + "/link")
            shutil.copy(self.dir + "/spots.bin", d + "/g.bin")
            shutil.copy(self.dir + "/spots.img", d + "/g.img")
            shutil.copy(self.dir + "/water.stol", d + "/w.stol")
            before = snapshot(d)
            list_of = ["bragg", *cell, "-hkl", "x.hkl"]
            outputs = ["-floatfile", "-intfile", "-noisefile", "-pgmfile", "-dump", "--cbf", "--smv32"]
            noisify = ["bragg", "noisify", "-bin", "g.bin", *cell[-8:], "-header", "g.img"]
            wrong = [list_of + [flag, "x.hkl"] for flag in outputs]
            wrong += [list_of + ["-floatfile", name] for name in ("s/../x.hkl", "./x.hkl", "link", "twin", d + "/x.hkl")]
            wrong += [list_of + ["-floatfile", "z.bin", "-intfile", "./z.bin"],
                      list_of + ["-intfile", "z.img", "-noisefile", "s/../z.img", "--plan"],
                      list_of + ["-img", "g.img", "-intfile", "g.img"], list_of + ["--preview", "x.hkl"],
                      noisify + ["-noisefile", "g.bin"], noisify + ["-intfile", "g.img"],
                      noisify + ["-intfile", "n", "-pgmfile", "./n"],
                      ["bragg", "nonbragg", "-stol", "w.stol", *cell[-8:], "-floatfile", "w.stol"],
                      ["bragg", "nonbragg", "-img", "g.img", *cell[-8:], "-stolout", "g.img"],
                      ["bragg", "refine", "g.img", *cell, "--out", "g.img"]]
            for words in wrong:
                with self.subTest(words=words):
                    done = subprocess.run([os.path.abspath(PROGRAM), *words], capture_output=True, text=True, cwd=d)
                    self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
                    self.assertRegex(done.stderr, "it is read .* would be replaced|two outputs would be written there")
                    self.assertEqual(snapshot(d), before)
            # what is meant, and what nanoBragg's users do: a header is taken and its image replaced
            nowhere = [word for flag in ("-intfile", "-noisefile", "-pgmfile") for word in (flag, "/dev/null")]
            self.call(d, *list_of, *nowhere)
            self.call(d, *list_of, "--compat=c", "-img", "g.img", "-intfile", "g.img")
            self.call(d, *noisify, "--compat=c", "-intfile", "g.img")

    def test_a_config_that_cannot_run_is_found_before_anything_is_made(self):
        for text in ("", "~", "{}", "dataset: anndata\n", "name: x\ndataset: toy\nmodel: {spatial: false}\n"):
            with tempfile.TemporaryDirectory() as d, self.subTest(text=text):
                pathlib.Path(d, "c.yaml").write_text(text)
                for words in (["config", "check", "c.yaml"], ["run", "all", "-c", "c.yaml"]):
                    done = subprocess.run([os.path.abspath(PROGRAM), *words], capture_output=True, text=True, cwd=d)
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertRegex(done.stderr, r"c.yaml:\d+:\d+: .*needs the key preprocessing.path")
                self.assertEqual(os.listdir(d), ["c.yaml"])

    def test_a_job_is_found_by_the_name_that_is_shown(self):
        with tempfile.TemporaryDirectory() as d:
            pathlib.Path(d, "s.yaml").write_text('instrument: sounding\nname: s\noutput_dir: "se\\e[31ma"\n'
                                                 "survey: {cells: 300}\nmodel: {basis: waves, order: 1}\n")
            self.call(d, "run", "survey", "-c", "s.yaml")
            name = self.call(d, "status").splitlines()[-1].split()[0]
            self.assertEqual(name, "se?[31ma")
            text = self.call(d, "logs", name)
            self.assertIn("se\x1b[31ma/survey", text)  # its bytes, as they are
            self.assertEqual(self.call(d, "logs", "se\x1b[31ma/survey"), text)

    def test_an_export_does_not_replace_its_source(self):
        with tempfile.TemporaryDirectory() as d:
            self.call(d, "spatial", "toy", "--cells=60", "--genes=8", "--factors=2", "--h5ad=tissue.h5ad")
            pathlib.Path(d, "a.yaml").write_text(
                "name: a\ndataset: anndata\noutput_dir: out\npreprocessing: {path: tissue.h5ad, coord_key: spatial}\n"
                "model: {n_components: 2, spatial: false}\ntraining: {max_iter: 2}\n")
            self.call(d, "run", "preprocess", "train", "analyze", "-c", "a.yaml")
            before = pathlib.Path(d, "tissue.h5ad").read_bytes()
            for name in ("tissue.h5ad", "out/../tissue.h5ad"):
                done = subprocess.run([os.path.abspath(PROGRAM), "spatial", "export", "-c", "a.yaml", "-o", name],
                                      capture_output=True, text=True, cwd=d)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertIn("it is read (the file of the config), and would be replaced (-o)", done.stderr)
            self.assertEqual(pathlib.Path(d, "tissue.h5ad").read_bytes(), before)
            self.call(d, "spatial", "export", "-c", "a.yaml", "-o", "results.h5ad")

    def test_quiet_verbs_only_say_results(self):
        lines = self.lines()
        for words in (("bragg", "draw"), ("bragg", "noisify"), ("bragg", "nonbragg"), ("spatial", "toy"),
                      ("spatial", "export"), ("spatial", "project")):
            with tempfile.TemporaryDirectory() as empty, self.subTest(words=words):
                self.assertEqual(self.call(empty, *words, *lines[words], "--quiet"), "")
                self.assertNotEqual(os.listdir(empty), [])

    def test_the_monitor_watches_every_command_that_takes_it(self):
        lines, names = self.lines(), ["gpu_monitor.log", "host_monitor.csv"]
        for words in (["spatial", "toy"], ["bragg", "draw"], ["doctor"]):
            with tempfile.TemporaryDirectory() as empty:
                self.call(empty, *words, *lines[tuple(words)], "--monitor=1")
                self.assertIn(names[1], os.listdir(empty), words)
        for seconds in ("0", "86401", "x"):
            code, _, err = run("doctor", "--monitor", seconds)
            self.assertEqual(code, 2)
            self.assertIn(f"--monitor takes whole seconds, from 1 to 86400, not '{seconds}'", err)


if __name__ == "__main__":
    unittest.main()
