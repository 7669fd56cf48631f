"""Every budget from 16 KiB below the smallest that is predicted to 64 KiB above it: all small stages
of all instruments, and images of bragg.
seconds: 1500"""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_budgets import IMAGES, STAGES, Case


class Budgets(Case):
    def test_images(self):
        for name in IMAGES:
            with self.subTest(name):
                self.image(name)

    def test_view(self):
        self.view()


def of(instrument):
    def test(self):
        origin = self.finished(instrument)
        for config, stage in STAGES[instrument]:
            with self.subTest(f"{config} {stage}"):
                self.stage(origin, instrument, config, stage)
    return test


for name in STAGES:
    setattr(Budgets, f"test_{name}", of(name))

if __name__ == "__main__":
    unittest.main()
