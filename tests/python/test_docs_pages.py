# test_docs_pages.py - every command, config and program of README.md and docs/*.md works.
# seconds: 60
#
# Each page has a folder with what a reader of it would have (the configs of the repository, some
# small data); its blocks run there from top to bottom:
#   sh              each command ends with exit code 0, unless ENDS says otherwise
#   no language     the same where it starts with a command; after `$ command` stands what it prints
#   python          runs; <!-- python in FOLDER --> there, <!-- python with MODULE --> needs a module;
#                   of a tutorial, in one session with those before
#   yaml            passes `fathom config check`
#   json            can be parsed
# <!-- printed by the last command --> is compared with what the command before it printed, numbers
# apart; `...` stands for any lines. Every other block says in the comment before it where it is from (test_docs.py compares), or why
# it is not run: <!-- not run: REASON -->. Commands inside sentences have only names and flags that
# the program has.
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from test_docs import BUILD, PAGES, ROOT, blocks, contains, read, shape

COMMAND = re.compile(r"(\$ )?(fathom|nanoBragg|nanoBraggCUDA|noisify|nonBragg) ")

# What ends otherwise than by itself with exit code 0, by how the command starts.
INTERRUPT = "interrupt"  # goes on until Ctrl+C, and then ends with 0
ENDS = {
    "fathom serve ": INTERRUPT,
    "fathom cancel ": 2,  # nothing runs in the folder
    "fathom task ": 3,  # a runner makes its list
    "fathom doctor --device cuda": (0, 5),  # 5 without a card
}


def edit(file, **keys):
    """Change keys of a config."""
    with open(file) as f:
        text = f.read()
    for key, value in keys.items():
        text, n = re.subn(rf"^(\s*{key}:).*$", rf"\1 {value}", text, flags=re.M)
        assert n, f"{file} has no {key}"
    with open(file, "w") as f:
        f.write(text)


def small_tissue(file):
    """What a reader changes in a copy of configs/spatial/general.yaml, and sizes that fit a toy."""
    edit(file, path="tissue.h5ad", group_column="group", n_components=3, num_inducing=30, K=8,
         max_iter=3, batch_size=100, y_batch_size=10)


# What a reader does by hand after a command.
AFTER = {
    "cp configs/spatial/general.yaml tissue.yaml": lambda folder: small_tissue(os.path.join(folder, "tissue.yaml")),
}


def commands(code):
    """The commands of a block: lines joined at backslashes, without comments."""
    joined = re.sub(r"\\\n\s*", "", code)
    return [re.sub(r"\s+#.*", "", line).strip() for line in joined.splitlines() if line.split("#")[0].strip()]


def anywhere(text):
    """Without what another machine or time would print: the device, the token of `fathom serve`."""
    return re.sub(r"(?m)^(device: ).*$", r"\1", re.sub(r"(token=)\w+(\.\.\.)?", r"\1", text))


def sessions(code):
    """(command, lines that it prints) of a block with `$ command` lines."""
    found = []
    for line in code.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
    return found


def kind(comment, language, code):
    """What is done with a block; None where nothing would be."""
    if comment and re.match(r"not run: \S", comment):
        return "marked"
    if comment and re.match(r"(from|output of) \S+$", comment):
        return "compared"
    if comment == "printed by the last command":
        return "printed"
    if language == "text" and re.search(r" \(\d+(\.\d+)?[a-z]\)$", code, re.M):
        return "equations"  # by tools/check_models
    if language in ("sh", "yaml", "json", "python"):
        return language
    if language == "" and COMMAND.match(code):
        return "session" if code.startswith("$ ") else "sh"
    return None


class Words(unittest.TestCase):
    """What can be seen without running anything."""

    def test_every_block_is_tried_or_marked(self):
        seen = set()
        for page in PAGES:
            text = read(page)
            self.assertEqual(len(re.findall(r"^\s*```", text, re.M)), 2 * len(blocks(text)), f"{page}: a block in a list")
            for comment, language, code in blocks(text):
                seen.add(kind(comment, language, code))
                with self.subTest(page=page, block=code.splitlines()[0]):
                    self.assertIsNotNone(kind(comment, language, code), "neither run, checked nor marked")
        self.assertEqual(seen, {"marked", "compared", "sh", "yaml", "json", "python", "session", "printed", "equations"})

    def test_every_page_is_run(self):
        tried = {page for cls in (Readme, Bragg, Spatial, Tutorial, Cli, Others) for page in cls.pages}
        self.assertEqual(tried, set(PAGES))

    def test_links_lead_somewhere(self):
        n = 0
        for page in PAGES:
            for link in re.findall(r"\]\(([^)\s]+)\)", read(page)):
                if link.startswith("http"):
                    continue
                file, _, part = link.partition("#")
                path = os.path.normpath(os.path.join(os.path.dirname(page), file)) if file else page
                with self.subTest(page=page, link=link):
                    self.assertTrue(os.path.exists(os.path.join(ROOT, path)))
                    titles = re.findall(r"^#+ (.*)$", read(path), re.M) if part else []
                    self.assertIn(part, [""] + [re.sub(r"[^\w\- ]", "", t.lower()).replace(" ", "-") for t in titles])
                n += 1
        self.assertGreater(n, 60)

    def test_the_first_page_names_all_others(self):
        named = set(re.findall(r"\]\((\S+\.md)\)", read("docs", "README.md")))
        self.assertEqual(named, {os.path.basename(p) for p in PAGES} - {"README.md"})

    def test_a_synopsis_names_a_flag_once(self):
        for line in re.findall(r"^`(fathom [^`]*)`: ", read("docs", "cli.md"), re.M):
            flags = re.findall(r"(?<=[ \[])--?[A-Za-z][\w.-]*", line)
            with self.subTest(synopsis=line):
                self.assertEqual(sorted(flags), sorted(set(flags)))

    def test_flags_in_sentences_exist(self):
        table, name = {}, None
        for line in read("docs", "cli.md").splitlines():
            if line.startswith("## fathom "):
                name = line[len("## fathom "):]
                table[name] = set()
            elif name and line.startswith("| `-"):
                table[name].update(re.findall(r"(?<![\w-])--?[A-Za-z][\w.-]*", line.split("|")[1]))
        names = sorted(table, key=len, reverse=True)
        n = 0
        for page in PAGES:
            text = re.sub(r"^```.*?^```$", "", read(page), flags=re.M | re.S)
            for code in re.findall(r"`(fathom [^`]+)`", text):
                code = " ".join(code.split())
                rest = code[len("fathom "):]
                if not re.match(r"[a-z]", rest):  # `fathom COMMAND`
                    continue
                with self.subTest(page=page, command=code):
                    if any(k.startswith(rest + " ") for k in names):  # `fathom spatial`
                        continue
                    name = next((k for k in names if re.match(rf"{k}( |$)", rest)), None)
                    self.assertIsNotNone(name, "no such command")
                    short = set() if name.startswith("bragg") else set(re.findall(r"(?<= )-[a-z]\b", rest))
                    flags = short | set(re.findall(r"(?<= )--[A-Za-z][\w.-]*", rest))
                    self.assertLessEqual(flags, table[name])
                n += 1
        self.assertGreater(n, 50)


class Page:
    """The blocks of pages, run in a folder that `prepare` fills."""
    pages = []
    again = False  # every block starts from what `prepare` left

    @classmethod
    def setUpClass(cls):
        cls.top = tempfile.mkdtemp(prefix="docs-")
        cls.addClassCleanup(shutil.rmtree, cls.top, True)
        cls.dir = os.path.join(cls.top, "here")
        os.mkdir(cls.dir)
        path = os.path.join(BUILD, "bin") + ":" + os.environ["PATH"]
        cls.env = dict(os.environ, PATH=path, HOME=cls.top, NO_COLOR="1", XDG_CACHE_HOME=cls.top)
        cls.prepare()
        if cls.again:
            shutil.copytree(cls.dir, os.path.join(cls.top, "kept"), symlinks=True)

    @classmethod
    def prepare(cls):
        pass

    @classmethod
    def call(cls, command, cwd=None):
        return subprocess.run(command if isinstance(command, list) else ["bash", "-e", "-o", "pipefail", "-c", command],
                              cwd=cwd or cls.dir, env=cls.env, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=120)

    @classmethod
    def made(cls, command):
        r = cls.call(command)
        assert r.returncode == 0, f"{command}\n{r.stdout}{r.stderr}"

    def interrupted(self, command):
        """Ctrl+C after the first line; what was printed."""
        words = shlex.split(re.sub(r" --port \d+", "", command)) + ["--port", "0"]  # 8700 may be taken
        p = subprocess.Popen(words, cwd=self.dir, env=self.env, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        first = p.stdout.readline()
        time.sleep(0.05)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=30)
        self.assertEqual(p.returncode, 0, f"{command}\n{first}{out}{err}")
        return first + out

    def command(self, command):
        ends = next((code for start, code in ENDS.items() if (command + " ").startswith(start)), 0)
        if ends == INTERRUPT:
            return self.interrupted(command)
        r = self.call(command.replace(" /data/", f" {self.top}/data/"))
        self.assertIn(r.returncode, ends if isinstance(ends, tuple) else (ends,), f"{command}\n{r.stdout}{r.stderr}")
        if command in AFTER:
            AFTER[command](self.dir)
        return r.stdout + r.stderr

    def python(self, comment, code):
        folder = re.search(r" in (\S+)", comment or "")
        cwd = os.path.join(self.dir, folder.group(1)) if folder else self.dir
        r = self.call([sys.executable, "-c", code], cwd)
        self.assertEqual(r.returncode, 0, f"{code}{r.stdout}{r.stderr}")

    def printed(self, output, code):
        lines, part = shape(anywhere(output)), []
        for line in shape(anywhere(code)) + ["..."]:
            if line != "...":
                part.append(line)
            elif part:
                self.assertTrue(contains(lines, part), "\n".join(["it prints"] + lines + ["and not"] + part))
                part = []

    def config(self, code):
        with open(os.path.join(self.dir, "block.yaml"), "w") as f:
            f.write(code)
        r = self.call(["fathom", "config", "check", "block.yaml"])
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        os.remove(os.path.join(self.dir, "block.yaml"))

    def all_blocks(self):
        return [(page, *block) for page in self.pages for block in blocks(read(page))]

    def test_blocks(self):
        output = ""
        for page, comment, language, code in self.all_blocks():
            what = kind(comment, language, code)
            with self.subTest(page=page, block=code.splitlines()[0]):
                if self.again and what in ("sh", "session"):
                    shutil.rmtree(self.dir)
                    shutil.copytree(os.path.join(self.top, "kept"), self.dir, symlinks=True)
                if what == "sh":
                    for command in commands(code):
                        output = self.command(command)
                elif what == "session":
                    for command, expected in sessions(code):
                        self.printed(self.command(command), "\n".join(expected))
                elif what == "printed":
                    self.printed(output, code)
                elif what == "python" and " with " not in (comment or ""):
                    self.python(comment, code)
                elif what == "yaml":
                    self.config(code)
                elif what == "json":
                    json.loads(code)

    def test_blocks_that_need_modules(self):
        missing = []
        for page, comment, language, code in self.all_blocks():
            module = re.search(r"^python .*\bwith (\w+)", comment or "")
            if not module:
                continue
            if self.call([sys.executable, "-c", f"import {module.group(1)}"]).returncode:
                missing.append(module.group(1))
                continue
            with self.subTest(page=page, block=code.splitlines()[0]):
                self.python(comment, code)
        if missing:
            self.skipTest(f"there is no {', '.join(missing)}")


def copy_of_the_configs(folder):
    """The configs of the repository with fewer steps, and the data that they name."""
    shutil.copytree(os.path.join(ROOT, "configs"), os.path.join(folder, "configs"))
    edit(os.path.join(folder, "configs/demo/spatial/general.yaml"), max_iter=2, num_inducing=20, batch_size=100)
    edit(os.path.join(folder, "configs/demo/ptycho/general.yaml"), n_groups=16, nepochs=1, iterations=3)
    for name in os.listdir(os.path.join(folder, "configs/demo/splat")):
        edit(os.path.join(folder, "configs/demo/splat", name), iterations=40, eval_steps="[40]", gaussians=300, views=8,
             width=80, height=60)
    os.makedirs(os.path.join(folder, "tests"))
    os.symlink(os.path.join(ROOT, "tests/golden"), os.path.join(folder, "tests/golden"))


class Readme(Page, unittest.TestCase):
    pages = ["README.md"]

    @classmethod
    def prepare(cls):
        copy_of_the_configs(cls.dir)


class Bragg(Page, unittest.TestCase):
    pages = ["docs/bragg.md", "docs/bragg-figures.md", "docs/bragg-flags.md"]

    @classmethod
    def prepare(cls):
        copy_of_the_configs(cls.dir)

    def test_files(self):
        for name in ("first.bin", "noise.img", "outputs/demo/bragg/series/frames.h5"):
            self.assertTrue(os.path.exists(os.path.join(self.dir, name)), name)


class Spatial(Page, unittest.TestCase):
    pages = ["docs/spatial.md"]

    @classmethod
    def prepare(cls):
        copy_of_the_configs(cls.dir)
        cls.made("fathom spatial toy --side 14 --genes 24 --factors 3 -o toy --h5ad tissue.h5ad")


# Blocks of one Python session, each as JSON; one line for each tells what became of it.
SESSION = """
import json, sys, traceback
names, answers = {}, sys.stdout
sys.stdout = sys.stderr
for line in sys.stdin:
    try:
        exec(json.loads(line), names)
        print(json.dumps(""), file=answers, flush=True)
    except BaseException:
        print(json.dumps(traceback.format_exc()), file=answers, flush=True)
"""


class Tutorial(Page, unittest.TestCase):
    """Blocks of Python follow one another in one session, where small_anndata.py stands for anndata."""
    pages = ["docs/spatial-tutorial.md"]

    @classmethod
    def prepare(cls):
        shutil.copy(os.path.join(ROOT, "tests/python/small_anndata.py"), os.path.join(cls.dir, "anndata.py"))
        cls.session = None

    def python(self, comment, code):
        if self.call([sys.executable, "-c", "import h5py"]).returncode:
            self.skipTest("there is no h5py")
        if self.session is None:
            type(self).session = subprocess.Popen([sys.executable, "-c", SESSION], cwd=self.dir, env=self.env, text=True,
                                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            self.addClassCleanup(self.session.communicate)
        self.session.stdin.write(json.dumps(code) + "\n")
        self.session.stdin.flush()
        self.assertEqual(json.loads(self.session.stdout.readline()), "", code)


class Cli(Page, unittest.TestCase):
    """Jobs of one dataset, liver, with one model that was run."""
    pages = ["docs/cli.md"]
    again = True

    @classmethod
    def prepare(cls):
        os.makedirs(os.path.join(cls.top, "data/scans"))
        os.makedirs(os.path.join(cls.dir, "configs/liver"))
        cls.made("fathom spatial toy --side 14 --genes 24 --factors 3 -o toy --h5ad tissue.h5ad")
        shutil.copy(os.path.join(cls.dir, "tissue.h5ad"), os.path.join(cls.top, "data/scans"))
        shutil.copy(os.path.join(ROOT, "configs/demo/bragg/small.hkl"), os.path.join(cls.dir, "P1.hkl"))
        with open(os.path.join(cls.dir, "A.mat"), "w") as f:
            f.write("0.014 0.001 0.000\n-0.001 0.012 0.001\n0.000 0.001 0.011\n")
        general = os.path.join(cls.dir, "configs/liver/general.yaml")
        shutil.copy(os.path.join(ROOT, "configs/spatial/general.yaml"), general)
        small_tissue(general)
        edit(general, name="liver", output_dir="outputs/liver")
        test = os.path.join(cls.dir, "configs/liver/test/general_test.yaml")
        os.mkdir(os.path.dirname(test))
        shutil.copy(general, test)
        edit(test, name="liver_test", output_dir="outputs/liver_test", max_iter=2)
        cls.made("fathom spatial generate -c configs/liver/general.yaml")
        cls.made("fathom run all -c configs/liver/svgp.yaml")


class Others(Page, unittest.TestCase):
    """Pages that say how things are, with few commands."""
    pages = [p for p in PAGES if p not in Readme.pages + Bragg.pages + Spatial.pages + Tutorial.pages + Cli.pages]

    @classmethod
    def prepare(cls):
        with open(os.path.join(cls.dir, "waves.yaml"), "w") as f:
            f.write("instrument: sounding\nname: liver\noutput_dir: outputs/liver\nmodel.basis: waves\n"
                    "survey.cells: 64\nfit.iterations: 4\nanalyze.side: 8\n")
        cls.made("fathom run all -c waves.yaml")


if __name__ == "__main__":
    unittest.main()
