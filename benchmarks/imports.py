"""What `import dither` costs beside what it cannot do without: medians of fresh processes, in turn."""

import os
import resource
import statistics
import subprocess
import sys

CASES = {
    "import numpy, scipy.special": "import numpy, scipy.special",
    "import dither": "import dither",
    "import dither, dither.ope, dither.log": "import dither, dither.ope, dither.log",
}
REPEATS = 15
CACHED = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}  # as an installed package is


def seconds(code):
    """Processor time of a fresh process that runs it: the wall clock counts what else the machine does."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, env=CACHED)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    for code in CASES.values():
        seconds(code)  # the first pass fills the caches
    taken = {name: [] for name in CASES}
    for _ in range(REPEATS):
        for name, code in CASES.items():
            taken[name].append(seconds(code))
    medians = {name: statistics.median(values) for name, values in taken.items()}
    plain = medians["import numpy, scipy.special"]
    for name, value in medians.items():
        print(f"{name:45} {value:.3f} s  {value / plain:.2f}")


if __name__ == "__main__":
    main()
