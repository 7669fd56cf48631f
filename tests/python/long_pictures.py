# long_pictures.py - pictures of docs/ that take longer to make: the commands of docs/pictures.md still make them.
# seconds: 200
#
# Two of them show times that were measured, and screenshots follow the fonts of the machine: these have to be there and
# are not compared. The same bytes come from the same processor; another one may round in another way while it trains, so
# pixels may differ a little more than in test_pictures.py.
import tempfile
import unittest

from test_pictures import SECTIONS, compare, make, sections_of, tool

NOT_COMPARED = {"budget", "page", "recovery", "report"}


class Made(unittest.TestCase):
    def test_slow_sections(self):
        for name in sections_of("long_pictures.py"):
            with self.subTest(section=name), tempfile.TemporaryDirectory() as out:
                reason = tool.missing(SECTIONS[name][0])
                if reason:
                    self.skipTest(f"{name}: {reason}")
                make([name], out)
                if name not in NOT_COMPARED:
                    compare(self, name, out)


if __name__ == "__main__":
    unittest.main()
