"""What doctor says of graphics cards, with a driver of ours in the place of NVIDIA's. seconds: 30"""
import glob
import json
import os
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["FATHOM_PROGRAM"]
FAKES = os.environ["FATHOM_FAKES"]
# Variables that would reach the program from outside.
CLEAN = {k: v for k, v in os.environ.items()
         if k not in ("CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "FAKE_CUDA")}
# Libraries of ours with a backend beside them that is made for tests, and with none.
HOMES = tempfile.TemporaryDirectory()
BESIDE, ALONE = (os.path.join(HOMES.name, name) for name in ("beside", "alone"))
for home in BESIDE, ALONE:
    os.mkdir(home)
    for library in glob.glob(os.path.join(os.path.dirname(os.environ["FATHOM_LIBRARY"]),
                                          "libfathom.so*")):
        os.symlink(os.path.realpath(library), os.path.join(home, os.path.basename(library)))
os.symlink(os.path.join(FAKES, "backend", "libfathom_cuda.so"),
           os.path.join(BESIDE, "libfathom_cuda.so"))


def environment_of(fake, home=BESIDE, folder=FAKES, **more):
    return {**CLEAN, "LD_LIBRARY_PATH": f"{home}:{folder}", "FAKE_CUDA": fake, **more}


def doctor(fake="", *words, **environment):
    """Exit code, JSON and standard error."""
    done = subprocess.run(
        [PROGRAM, "doctor", "--json", "--threads", "1", *words], capture_output=True, text=True,
        timeout=60, env=environment_of(fake, **environment))
    return done.returncode, json.loads(done.stdout), done.stderr


class Faults(unittest.TestCase):
    def fault(self, text, remedy, fake="", about="cuda", **options):
        """Who asks for CUDA is stopped, by a sentence with these words."""
        code, page, err = doctor(fake, "--device=cuda", **options)
        self.assertEqual(code, 5, err)
        self.assertIn("FTH-DEV-001", err)
        found = [f for f in page["faults"] if text in f["text"]]
        self.assertEqual(len(found), 1, page["faults"])
        self.assertIn(remedy, found[0]["remedy"])
        self.assertEqual((found[0]["about"], found[0]["stops"]), (about, about == "cuda"))
        return page

    def test_who_does_not_ask_is_not_stopped(self):
        for fake, text in [("init=999", "does not start"), ("capability=75", "newer"),
                           ("processes=1", "is used by 1 other process:")]:
            code, page, err = doctor(fake)
            self.assertEqual((code, err), (0, ""))
            self.assertFalse(any(f["stops"] for f in page["faults"]))
            self.assertTrue(any(text in f["text"] + f["remedy"] for f in page["faults"]))

    def test_the_driver_cannot_be_opened(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
                with open(os.path.join(folder, name), "w"):
                    pass
            page = self.fault("file too short", "driver", folder=folder)
        self.assertEqual(page["cuda"]["cards"], [])
        self.assertIsNone(page["cuda"]["init"])

    def test_the_driver_does_not_start(self):
        self.fault("does not start: CUDA_ERROR_UNKNOWN (999)", "modprobe nvidia_uvm", "init=999")
        self.fault("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)", "restart", "init=803")

    def test_no_card(self):
        self.fault("no card can be reached", "--gpus", "init=100 seen=0 cards=0")
        self.fault("no card can be reached", "--gpus", "seen=0 cards=0")

    def test_hidden_cards(self):
        for value in ("", "-1"):
            self.fault(f"CUDA_VISIBLE_DEVICES is '{value}', which hides every card", "unset it",
                       "init=100 cards=2", CUDA_VISIBLE_DEVICES=value)
        self.fault("there is no card '5', and the list ends there, so 0 can be seen",
                   "nvidia-smi -L", "init=100 cards=2", CUDA_VISIBLE_DEVICES="5,0")
        self.fault("there is no card '5', and the list ends there, so 1 can be seen",
                   "nvidia-smi -L", "cards=2 seen=1", about="gpu", CUDA_VISIBLE_DEVICES="0,5,1")
        self.fault("there is no card 'GPU-9'", "nvidia-smi -L", "init=100",
                   CUDA_VISIBLE_DEVICES="GPU-9")

    def test_a_driver_too_old(self):
        page = self.fault("driver 550.54.14 supports CUDA 11.2, and this build needs 13.0",
                          "update the driver", "version=11020")
        self.assertEqual(page["cuda"]["driver_supports"], 11020)

    def test_cards_that_do_not_fit(self):
        page = self.fault("GPU 0 (Fake Card) has compute capability 7.5", "newer card",
                          "capability=75")
        self.assertEqual(page["cuda"]["cards"][0]["capability"], 7.5)
        self.fault("GPU 0 (Fake Card) does not allow computations", "-c DEFAULT", "mode=2")
        self.fault("takes one process at a time", "-c DEFAULT", "mode=3", about="gpu")
        self.fault("exclusive mode) and held by 1 other process: pid 1000000 with 1.00 GiB",
                   "wait for it", "mode=3 processes=1")

    def test_a_busy_card(self):
        self.fault("GPU 0 (Fake Card) is used by 2 other processes: pid 1000000 with 1.00 GiB, "
                   "pid 1000001 with 2.00 GiB.", "--device cuda:N", "processes=2", about="gpu")
        self.fault("used by 100 other processes", "--device cuda:N", "processes=100", about="gpu")
        self.fault("has only 1.00 GiB of its 80.00 GiB free", "another card", "free=1",
                   about="gpu")

    def test_instances(self):
        self.fault("is in MIG mode and has no instances", "nvidia-smi mig",
                   "init=100 mig=1")
        _, page, _ = doctor("mig=1 instances=2")
        self.assertFalse(any("MIG" in f["text"] for f in page["faults"]))

    def test_no_management_library(self):
        self.fault("unknown: the NVIDIA driver does not answer: Driver/library version mismatch",
                   "libnvidia-ml.so.1", "nvml=18", about="gpu")

    def test_the_backend_is_missing(self):
        page = self.fault("The CUDA backend is missing: no CUDA backend: ", "nvcc", "cards=2",
                          home=ALONE)
        self.assertIsNone(page["cuda"]["backend"])
        self.assertEqual(page["cuda"]["backend_error"],
                         f"no CUDA backend: libfathom_cuda.so is neither in {ALONE} nor where "
                         "the system looks")
        self.assertEqual(len(page["cuda"]["cards"]), 2)
        cards = page["cuda"]["cards"]  # matched by bus, not by number
        self.assertEqual([card["uuid"] for card in cards], ["GPU-0000-1", "GPU-0000-0"])
        self.assertEqual(cards[0]["free_bytes"], 79 << 30)

    def test_a_backend_that_is_no_library(self):
        with tempfile.TemporaryDirectory() as home:
            for name in os.listdir(ALONE):
                os.symlink(os.path.realpath(os.path.join(ALONE, name)), os.path.join(home, name))
            with open(os.path.join(home, "libfathom_cuda.so"), "w"):
                pass
            page = self.fault("libfathom_cuda.so: file too short", "nvcc", home=home)
            self.assertIn(f"{home}/libfathom_cuda.so: file too short",
                          page["cuda"]["backend_error"])

    def test_a_backend_that_does_not_fit(self):
        self.fault("the backend speaks version 99 and", "nvcc", "abi=99")
        self.fault("the backend is of Fathom 7.8.9 and this is", "nvcc", "release=7.8.9")

    def test_a_card_that_cannot_be_opened(self):
        page = self.fault("The engine refuses: device 'cuda' was asked for: the fake card 0 is "
                          "locked", "--device cpu")
        self.assertEqual(page["cuda"]["backend"], os.path.join(BESIDE, "libfathom_cuda.so"))
        self.assertEqual(page["cuda"]["backend_error"], "the fake card 0 is locked")
        self.assertNotIn("opened", page["cuda"])

    def test_a_card_that_is_opened(self):
        code, page, err = doctor("open=1", "--device=cpu")
        self.assertEqual((code, err), (0, ""))
        self.assertTrue(page["cuda"]["usable"])
        card = page["cuda"]["opened"]
        self.assertEqual((card["index"], card["name"], card["context_bytes"], card["compiler"]),
                         (0, "Fake Card", 321 << 20, "NVRTC 13.0"))
        self.assertIn("is not there", card["products"])
        self.assertEqual(card["factors"], "cuSOLVER 12.0.4")

    def test_what_auto_takes(self):
        for fake, home, reason in [("", BESIDE, "auto: the fake card 0 is locked"),
                                   ("abi=1", BESIDE, "auto: the backend speaks version 1"),
                                   ("", ALONE, "auto: no CUDA backend: ")]:
            _, page, _ = doctor(fake, home=home)
            self.assertEqual(page["device"]["used"], "cpu")
            self.assertIn(reason, page["device"]["reason"])

    def test_the_support_table(self):
        rows = {row["name"]: row for row in doctor("", "--ops")[1]["operations"]}
        self.assertIn("f64", rows["add"]["dtypes"])
        self.assertTrue(rows["add"]["cuda_kernel"] and rows["gather"]["cuda_kernel"])
        self.assertFalse(rows["sort"]["cuda_kernel"])
        _, page, _ = doctor("open=1", "--ops", "--device=cpu")  # planned: it finds none
        rows = {row["name"]: row["cuda_dtypes"] for row in page["operations"]}
        self.assertEqual((rows["gather"], rows["sort"]), ([], []))
        self.assertIn("c128", rows["rename"])  # other names of the same bytes need no kernel
        rows = doctor("", "--ops", home=ALONE)[1]["operations"]
        self.assertFalse(any("cuda" in key for row in rows for key in row))
        done = subprocess.run([PROGRAM, "doctor", "--ops", "--threads=1"], capture_output=True,
                              text=True, env=environment_of(""))
        self.assertIn("operations on cpu\n", done.stdout)
        self.assertIn("operations on cuda, as far as can be told without a card\n  kernels for",
                      done.stdout)
        self.assertRegex(done.stdout, r"no kernels for [^,]* sort\b")

    def test_a_card_beyond_the_last(self):
        code, page, _ = doctor("cards=2", "--device=cuda:2")
        self.assertEqual(code, 5)
        self.assertTrue(any("cuda:2 was requested, and 2 cards" in f["text"]
                            for f in page["faults"]))

    def test_for_people(self):
        done = subprocess.run([PROGRAM, "doctor", "--threads=1"], capture_output=True, text=True,
                              env=environment_of("cards=1"))
        self.assertEqual(done.returncode, 0)
        self.assertIn("cuda:0       Fake Card, 9.0, 80.00 GiB, 79.00 GiB free", done.stdout)
        self.assertIn("driver 550.54.14 supports CUDA 13.0", done.stdout)
        self.assertIn("libfathom_cuda.so, for drivers of CUDA 13.0 and cards of 9.0 or later\n"
                      "               the fake card 0 is locked", done.stdout)
        done = subprocess.run([PROGRAM, "doctor", "--threads=1", "--device=cpu"],
                              capture_output=True, text=True, env=environment_of("open=1"))
        self.assertIn("321.00 MiB for itself on cuda:0, pages of a reserved range\n"
                      "               NVRTC 13.0; libcublasLt.so.13 or .12 is not there; cuSOLVER "
                      "12.0.4\n", done.stdout)


class Monitor(unittest.TestCase):
    def watched(self, fake, *words):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([os.path.abspath(PROGRAM), "doctor", "--monitor=1", *words],
                                  capture_output=True, text=True, timeout=60, cwd=folder,
                                  env=environment_of(fake))
            files = {}
            for name in os.listdir(folder):
                with open(os.path.join(folder, name)) as file:
                    files[name] = file.read().splitlines()
        self.assertEqual(done.returncode, 0, done.stderr)
        return files, done.stderr

    def test_with_cards(self):
        files, err = self.watched("cards=2 busy=42", "--json")
        self.assertEqual(sorted(files), ["gpu_monitor.log", "host_monitor.csv"])
        table = files["gpu_monitor.log"]
        self.assertEqual(table[0].split(), "# gpu pwr gtemp mtemp sm mem enc dec jpg ofa mclk pclk "
                                           "pviol tviol fb bar1 ccpm rxpci txpci".split())
        self.assertEqual(len({len(line) for line in table}), 1)  # columns stand below each other
        self.assertEqual([line.split()[0] for line in table[2:4]], ["0", "1"])
        self.assertIn("monitor: gpu 0 busy 42 % (at most 42 %)", err)
        rows = [line.split(",") for line in files["host_monitor.csv"]]
        self.assertEqual(rows[0], ["time", "rss", "read_bytes", "write_bytes", "cpu%"])
        self.assertTrue(all(len(row) == 5 and int(row[1]) > 1 << 20 for row in rows[1:]))

    def test_without_cards(self):
        files, err = self.watched("cards=0")
        self.assertEqual(list(files), ["host_monitor.csv"])
        self.assertIn("monitor: no gpu (the NVIDIA driver knows no card); process busy ", err)

    def test_no_seconds(self):
        done = subprocess.run([PROGRAM, "doctor", "--monitor=0"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--monitor takes whole seconds, from 1 to 86400", done.stderr)



class Entry(unittest.TestCase):
    """The block that a run begins with under --log debug has the reasons of doctor, in its order."""

    def block(self, fake="", home=BESIDE, folder=FAKES, **environment):
        done = subprocess.run([PROGRAM, "focus", "info", "tests/golden/focus/synth_Z5C2.nd2", "--log", "debug"],
                              capture_output=True, text=True, timeout=60,
                              env=environment_of(fake, home, folder, **environment))
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stderr.splitlines()
        first = lines.index("DEVICE DIAGNOSTICS - focus")
        return "\n".join(lines[first:lines.index("=" * 60, first)])

    def test_a_reason_for_each_fault(self):
        with tempfile.TemporaryDirectory() as empty:
            self.assertRegex(self.block(folder=empty), "(?s)CUDA available: no.*libcuda.so.1.*device count: 0")
        for fake, text in (("init=999", "does not start: CUDA_ERROR_UNKNOWN"), ("seen=0 cards=0", "no card can be reached"),
                           ("version=11020", "supports CUDA 11.2"), ("capability=75", "compute capability 7.5"),
                           ("mode=2", "prohibited")):
            self.assertRegex(self.block(fake), f"(?s)CUDA available: no.*{text}.*To do: ", fake)
        self.assertRegex(self.block("init=100 cards=2", CUDA_VISIBLE_DEVICES=""), "(?s)CUDA available: no.*CUDA_VISIBLE_DEVICES: empty")
        self.assertRegex(self.block("cards=2", home=ALONE), "(?s)CUDA available: no.*CUDA backend is missing")


if __name__ == "__main__":
    unittest.main()
