"""A stage that writes a gigabyte to its log. seconds: 120"""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_runner import Case


class Logs(Case):
    def test_a_long_log_keeps_its_end(self):
        """1 GB of text: 256 MiB of it are kept, and the last 64 KiB are among them."""
        self.config(model="plane", **{"drill.stage": "survey", "drill.kind": "chatter",
                                      "drill.bytes": "1G"})
        self.run_all("run", "survey", "-c", self.configs, "--skip-general", timeout=900)
        path = self.out("a", "logs", "survey.log")
        self.assertLess(os.path.getsize(path), (256 << 20) + 4096)
        with open(path, "rb") as f:
            f.seek(-(70 << 10), os.SEEK_END)
            end = f.read().decode()
        self.assertIn("bytes are left out here", end)
        self.assertIn(f"drill {(1 << 30) // 80:10}:", end)
        self.assertIn("ended: exit 0", end)


if __name__ == "__main__":
    unittest.main()
