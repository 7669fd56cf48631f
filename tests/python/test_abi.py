# test_abi.py - the structs and numbers of fathom.py against the headers, by a C compiler; each header alone.
# seconds: 10
#
# One C program is made from what fathom.py declares: it prints the size of every struct, the
# offset of every field and the value of every enumerator. Nothing is written down twice.
import ctypes as C
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import fathom

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def structs():
    found = [c for c in vars(fathom).values()
             if isinstance(c, type) and issubclass(c, C.Structure) and hasattr(c, "_c_name_")]
    return sorted(found, key=lambda c: c._c_name_)


def enumerators():
    for name, number in fathom.EW.items():
        yield f"FTH_EW_{name.upper()}", number
    yield "FTH_EW_COUNT", len(fathom.EW)
    for name, number in fathom.RED.items():
        yield f"FTH_RED_{name.upper()}", number
    yield "FTH_RED_COUNT_", len(fathom.RED)
    for name, number in fathom.TRIANGLE.items():
        yield f"FTH_{name.upper()}", number
    for name, number in fathom.FFT.items():
        yield f"FTH_FFT_{name.upper()}", number
    for name, number in fathom.RANDOM.items():
        yield f"FTH_RANDOM_{name.upper()}", number
    for name, number in fathom.SCHEDULE.items():
        yield f"FTH_SCHEDULE_{name.upper()}", number
    yield "FTH_SCHEDULE_COUNT", len(fathom.SCHEDULE)
    for name, number in fathom.OPTIM.items():
        yield f"FTH_OPTIM_{name.upper()}", number
    yield "FTH_OPTIM_COUNT", len(fathom.OPTIM)
    for name, (number, _, _) in fathom.DTYPES.items():
        yield f"FTH_{name.upper()}", number
    yield "FTH_DTYPE_COUNT", len(fathom.DTYPES)
    for name, row in fathom._STATUS.items():
        yield f"FTH_E_{name}", row[0]
    yield "FTH_STATUS_COUNT", len(fathom._STATUS) + 1
    yield "FTH_MAX_AXES", fathom.MAX_AXES
    yield "FTH_MAX_IN", fathom.MAX_IN
    yield "FTH_MAX_OUT", fathom.MAX_OUT


def program():
    lines = ["#include <fathom/fathom.h>", "int main(void) {"]
    for c in structs():
        name = c._c_name_
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for field, *_ in c._fields_:
            lines.append(f'printf("{name}.{field} %zu %zu\\n", offsetof({name}, {field}), '
                         f"sizeof((({name} *)0)->{field}));")
    for name, _ in enumerators():
        lines.append(f'printf("{name} %d\\n", (int){name});')
    return "\n".join(lines + ["return 0; }"])


def ask_compiler():
    compiler = os.environ.get("CC") or shutil.which("cc")
    if not compiler:
        raise unittest.SkipTest("no C compiler")
    with tempfile.TemporaryDirectory() as folder:
        source, exe = os.path.join(folder, "abi.c"), os.path.join(folder, "abi")
        with open(source, "w") as f:
            f.write(program())
        subprocess.run([compiler, "-std=c11", "-I", os.path.join(ROOT, "include"), source, "-o",
                        exe], check=True)
        text = subprocess.run([exe], check=True, capture_output=True, text=True).stdout
    return {line.split()[0]: [int(n) for n in line.split()[1:]] for line in text.splitlines()}


def compile_alone(compiler, standard, headers, *flags):
    """The messages of a strict compiler about files that include one header each, and nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        sources = [os.path.join(folder, h + (".c" if standard == "c11" else ".cpp")) for h in headers]
        for source, header in zip(sources, headers):
            with open(source, "w") as f:
                f.write(f"#include <fathom/{header}>\n")
        done = subprocess.run([compiler, f"-std={standard}", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                               "-I", os.path.join(ROOT, "include"), *flags, *sources], capture_output=True, text=True)
    return done.stderr if done.returncode else ""


class Headers(unittest.TestCase):
    """Each public header compiles by itself, as C11 and as C++17, without a warning."""
    # Kernels of the CUDA backend are C++; vectors are an extension of C, and in C++ single numbers (level 0).
    CUDA = {"cuda.h", "cuda_sort.h"}
    VECTORS = {"vector.h", "vector_wide.h"}

    def setUp(self):
        self.headers = {h for h in os.listdir(os.path.join(ROOT, "include/fathom")) if h.endswith(".h")}
        self.assertGreaterEqual(self.headers, self.CUDA | self.VECTORS)

    def compiler(self, variable, name):
        found = os.environ.get(variable) or shutil.which(name)
        return found or self.skipTest(f"no {name}")

    def test_c11(self):
        cc = self.compiler("CC", "cc")
        self.assertEqual(compile_alone(cc, "c11", sorted(self.headers - self.CUDA)), "")

    def test_cxx17(self):
        cxx = self.compiler("CXX", "c++")
        self.assertEqual(compile_alone(cxx, "c++17", sorted(self.headers - self.CUDA - self.VECTORS)), "")
        self.assertEqual(compile_alone(cxx, "c++17", ["vector.h"], "-DFTH_ISA_LEVEL=0"), "")
        emulated = ("-Wno-unknown-pragmas", "-isystem", os.path.join(ROOT, "tests/emulate"))
        self.assertEqual(compile_alone(cxx, "c++17", sorted(self.CUDA), *emulated), "")

    def test_mistakes_are_found(self):
        cc = self.compiler("CC", "cc")
        self.assertIn("cuda.h", compile_alone(cc, "c11", ["cuda.h"], "-isystem", os.path.join(ROOT, "tests/emulate")))


class Abi(unittest.TestCase):
    def test_layouts_and_numbers(self):
        truth = ask_compiler()
        for c in structs():
            with self.subTest(struct=c._c_name_):
                self.assertEqual([C.sizeof(c)], truth[c._c_name_])
                for field, *_ in c._fields_:
                    d = getattr(c, field)
                    self.assertEqual([d.offset, d.size], truth[f"{c._c_name_}.{field}"], field)
        for name, number in enumerators():
            with self.subTest(name=name):
                self.assertEqual(truth[name], [number])

    def test_every_function_is_exported(self):
        for name in fathom._FUNCTIONS:
            with self.subTest(function=name):
                getattr(fathom._lib._dll, name)

    def test_every_builder_has_a_binding(self):
        text = ""
        for header in ("graph.h", "ops.h", "optim.h", "plan.h"):
            with open(os.path.join(ROOT, "include/fathom", header)) as f:
                text += f.read()
        builders = set(re.findall(r"\b(fth_\w+_)\(", text)) - {"fth_map_"}
        self.assertGreater(len(builders), 40)
        self.assertEqual(builders - set(fathom._FUNCTIONS), set())

    def test_every_row_of_the_table_has_a_function(self):
        with open(os.path.join(ROOT, "include/fathom/ops.def")) as f:
            names = re.findall(r"^FTH_OP(?:|_BUILDER|_ALSO)\((\w+),", f.read(), re.MULTILINE)
        self.assertGreater(len(names), 50)
        other = {"rmin": "min", "rmax": "max"}
        for name in names:
            with self.subTest(builder=name):
                self.assertTrue(any(hasattr(o, other.get(name, name))
                                    for o in (fathom, fathom.Value, fathom.Graph)))

    def test_every_elementwise_row_has_a_builder(self):
        texts = {}
        for name in ("elementwise.def", "ops.h"):
            with open(os.path.join(ROOT, "include/fathom", name)) as f:
                texts[name] = f.read()
        rows = re.findall(r'^FTH_EW\((\w+),\s*"(\w+)"', texts["elementwise.def"], re.MULTILINE)
        self.assertEqual([text for _, text in rows], list(fathom.EW))
        for name, text in rows:
            with self.subTest(row=text):
                self.assertRegex(texts["ops.h"],
                                 rf"#define fth_{text}\([^)]*\)\s*(\\\s*)?fth_map\d\(FTH_EW_{name},")


if __name__ == "__main__":
    unittest.main()
