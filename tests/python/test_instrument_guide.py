"""Follow docs/instruments.md to the letter: the instrument it builds is taken out of the page, compiled and run.

A copy of the sources with the guide's files is configured, so that CMake has to find them; only what they change is
compiled there, and linked with the objects of this build.
seconds: 30
"""
import math
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/instruments.md"
BLOCK = re.compile(r"^<!-- not run: the guide's test (writes|appends) it to (\S+) -->\n```\w+\n(.*?)^```$",
                   re.MULTILINE | re.DOTALL)
OBJECT = "CMakeFiles/fathom_instruments.dir/instruments/%s.o"


def call(*words, **kw):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kw)
    if done.returncode != 0:
        raise AssertionError("%s ended with %d:\n%s" % (" ".join(map(str, words)), done.returncode, done.stdout))
    return done.stdout


class Kit(unittest.TestCase):
    """The table of the kit: each function of a row is used in the file of the practice instrument that it names."""

    ROW = re.compile(r"^\| ([^|]+) \| ((?:`\w+` ?)+)\| `([\w./]+)` \|$", re.MULTILINE)

    def test_every_part_is_at_work_where_the_page_says(self):
        page = PAGE.read_text()
        table = page[page.index("| part of the kit | functions | in |"):]
        table = table[:table.index("\n\n")]
        rows = self.ROW.findall(table)
        self.assertEqual(len(rows), table.count("\n") - 1, "a row has another form")
        for part, functions, name in rows:
            code = re.sub(r"/\*.*?\*/", "", (ROOT / "instruments/sounding" / name).read_text(), flags=re.DOTALL)
            for function in re.findall(r"\w+", functions):
                with self.subTest(part=part, function=function):
                    self.assertRegex(code, r"\b%s\b" % function)

    def test_no_function_of_the_table_is_gone(self):
        headers = "".join(p.read_text() for p in (ROOT / "include/fathom").iterdir())
        for _, functions, _ in self.ROW.findall(PAGE.read_text()):
            for function in re.findall(r"\w+", functions):
                self.assertRegex(headers, r"\b%s\b" % function)


class Guide(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        program = os.environ.get("FATHOM_PROGRAM")
        cls.build = pathlib.Path(program).parents[1] if program else ROOT / "build"
        if not (cls.build / "build.ninja").exists():
            raise unittest.SkipTest("the program was not built here with ninja")
        cls.holder = tempfile.TemporaryDirectory()
        cls.tree = pathlib.Path(cls.holder.name) / "tree"
        cls.copy_sources()
        cls.files = []
        for how, name, text in BLOCK.findall(PAGE.read_text()):
            path = cls.tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "a" if how == "appends" else "x") as f:
                f.write(text)
            cls.files.append(name)
        call("cmake", "-S", cls.tree, "-B", cls.tree / "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
             "-DCMAKE_C_COMPILER=gcc", "-DFTH_TESTS=OFF")
        cls.link()

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    @classmethod
    def copy_sources(cls):
        cls.tree.mkdir()
        for name in ("CMakeLists.txt", "cmake", "include", "src", "instruments", "cli", "tools", ".clang-format"):
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, cls.tree / name)
            else:
                shutil.copy(ROOT / name, cls.tree / name)

    @classmethod
    def link(cls):
        """The instruments of this build with the objects of the guide, as a library for its program."""
        build = cls.tree / "build"
        known = call("ninja", "-C", build, "-t", "targets", "all")
        made = [line.split(":")[0] for line in known.splitlines() if "/instruments/tide/" in line and ".c.o:" in line]
        cls.objects = made
        list_object = OBJECT % "list.c"
        call("ninja", "-C", build, *made, list_object)
        library = next((cls.build / "lib").glob("libfathom_instruments.so.*.*.*")).name
        command = call("ninja", "-C", cls.build, "-t", "commands", "lib/" + library).splitlines()[-1]
        words = next(part for part in command.split(" && ") if " -o lib/" in part).split()
        words[words.index("lib/" + library)] = str(cls.tree / library.rpartition(".")[0])
        words[words.index(list_object)] = str(build / list_object)
        call(*words, *(str(build / name) for name in made), cwd=cls.build)

    def fathom(self, *words, folder):
        env = dict(os.environ, LD_LIBRARY_PATH="%s:%s" % (self.tree, self.build / "lib"))
        return call(self.build / "bin/fathom", *words, cwd=folder, env=env)

    def test_the_page_has_every_file_it_names(self):
        self.assertEqual(len(self.files), 10)
        for ending in ("ops/dry.c", "ops/dry_kernels.c", "ops/dry.cu", "figures/figures.c", "harbour.yaml"):
            self.assertTrue(any(name.endswith(ending) for name in self.files), ending)

    def test_cmake_finds_the_sources(self):
        for name in self.files:
            sets = 3 if name.endswith("_kernels.c") and os.uname().machine == "x86_64" else 1
            if name.endswith(".c"):
                self.assertEqual(sum(o.endswith(name + ".o") for o in self.objects), sets, name)

    def test_layers_and_format(self):
        call(self.tree / "tools/check_layers", self.tree)
        sources = [self.tree / name for name in self.files if name.endswith((".c", ".h", ".cu")) and "list" not in name]
        call("clang-format", "--dry-run", "--Werror", *sources)

    def test_the_kernel_for_gpus_compiles(self):
        known = call("ninja", "-C", self.tree / "build", "-t", "targets", "all")
        made = [line.split(":")[0] for line in known.splitlines() if "/dry.cu.o:" in line]
        if not made:
            self.skipTest("no nvcc was found")
        call("ninja", "-C", self.tree / "build", *made)

    def test_the_demo_job_runs(self):
        hours, floor = 720, -1.2
        t = numpy.arange(hours, dtype=numpy.float64)
        heights = sum(metres * numpy.cos(2 * math.pi / period * t) for period, metres in
                      ((12.4206, 1.0), (12.0, 0.35), (23.9345, 0.2), (25.8193, 0.15)))
        wanted = numpy.maximum(heights.astype(numpy.float32), numpy.float32(floor))
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(self.tree / "configs", pathlib.Path(folder) / "configs")
            shown = self.fathom("tide", "predict", "-c", "configs/demo/tide/harbour.yaml", "--plan", folder=folder)
            self.assertIn("tide_dry", shown)
            self.assertFalse((pathlib.Path(folder) / "outputs").exists())
            self.fathom("run", "all", "-c", "configs/demo/tide", folder=folder)
            out = pathlib.Path(folder) / "outputs/demo/tide/tide"
            found = numpy.load(out / "heights.npy")
            self.assertEqual(found.dtype, numpy.float32)
            self.assertTrue((found == numpy.float32(floor)).any())
            numpy.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)
            self.assertEqual((out / "heights.png").read_bytes()[:4], b"\x89PNG")
            first = (out / "heights.npy").read_bytes()
            self.fathom("tide", "predict", "-c", "configs/demo/tide/harbour.yaml", "--force", "--threads", "1",
                        "--memory", "64M", folder=folder)
            self.assertEqual((out / "heights.npy").read_bytes(), first)


if __name__ == "__main__":
    unittest.main()
