"""More of test_kills.py: several seeds, more kills, and the bytes of a run that nobody killed.
seconds: 300"""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_kills


class LongKills(unittest.TestCase):
    def test_seeds(self):
        seed = test_kills.seed_of_today()
        for i in range(4):
            test_kills.fight(self, seed + 1000 * i, 67, 40, compare=True)


if __name__ == "__main__":
    unittest.main()
