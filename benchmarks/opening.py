"""How long a report takes to open: 9 panels with 8 algorithms each, in a Chromium that was just started.

    python benchmarks/opening.py [--repeats 5]

The numbers in the report are random walks, since only their number matters here. Needs chromium and chromedriver.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import browsing
from dither_bench.commands import report
from dither_bench.define import figures
from dither_bench.define.figures import FIGURES
from stored import fabricated

ALGORITHMS = ["LinFP", "LinTS", "LinPHE", "RandLinUCB", "LinUCB", "EpsGreedy", "Greedy", "LinFP:c=0.3"]
WHAT = ("text is seen", "loaded", "processor: loaded, first panels drawn", "processor: all 9 panels drawn")
TIMES = """
    const [page] = performance.getEntriesByType("navigation");
    const paint = performance.getEntriesByName("first-contentful-paint")[0];
    return [paint.startTime, page.loadEventEnd].map((time) => time / 1000);
"""


def write(folder):
    """The report: three figures of three panels."""
    for name in ("fig3-linear", "h1", "h2"):
        figure = figures.select(FIGURES[name], algorithms=ALGORITHMS)
        fabricated(replace(figure, panels=figure.panels[:3]), out=folder, runs=3)
    return report.write(folder, folder / "report.html")


def opened(path):
    """Seconds until text is seen, until the page has loaded, and until all 9 panels are drawn, one after another.

    The last two are seconds of the processor, in the thread of the page: what the wall clock would show where no other
    process runs.
    """
    browser = browsing.start(shutil.which("chromedriver"))
    try:
        browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        page = browsing.Page(browser, path)
        page.until("return performance.getEntriesByName('first-contentful-paint').length")
        page.until("return document.querySelectorAll('.plot .main-svg').length")
        seen, loaded = page.run(TIMES)
        work = processor(page)
        assert len(page.plots()) == 9
        return seen, loaded, work, processor(page)
    finally:
        browser.quit()


def processor(page):
    """Seconds that the thread of the page has worked since it was opened."""
    return next(m["value"] for m in page.command("Performance.getMetrics")["metrics"] if m["name"] == "ThreadTime")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder))
        print(f"size: {path.stat().st_size / 1e6:.2f} MB")
        found = list(zip(*(opened(path) for _ in range(repeats)), strict=True))
    for name, times in zip(WHAT, found, strict=True):
        print(f"{name}: best {min(times):.2f} s, median {statistics.median(times):.2f} s")
    print(f"load of the machine: {os.getloadavg()[0]:.1f} processes on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
