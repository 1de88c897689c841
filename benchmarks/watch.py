"""How long the pages of `dither watch` take over a ledger of a million decisions, each with its reward.

    python benchmarks/watch.py [--rows 1000000] [--browser]

The rows are written to the tables at once, as a learner that has all of them would have left them: the sums by day are
kept. "first" is the first page of an app, "again" the median of five more. With --browser a Chromium that was just
started opens the overview.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import browsing
import dither
from asking import Client
from dither import watch
from dither.log.database import days
from watched_ledgers import served

ARMS = [f"article-{k:02d}" for k in range(20)]
D, DAYS = 8, 200
TIMES = """
    const [page] = performance.getEntriesByType("navigation");
    const paint = performance.getEntriesByName("first-contentful-paint")[0];
    return [page.responseStart, paint.startTime, page.loadEventEnd].map((time) => time / 1000);
"""
PLACES = ("/", "/?days=all", "/arms", "/decisions", "/events", "/judge", "/judge?policy=uniform&rows=100000")


def fill(path, rows):
    """A ledger of so many decisions in 200 days, each with its reward."""
    with dither.Live(path, bandit=dither.LinFP(dim=D, floor=0.1)):
        pass
    rng, K = np.random.default_rng(0), len(ARMS)
    end = datetime.now(UTC)
    first, length = int((end - timedelta(days=DAYS)).timestamp() * 1e6), int(DAYS * 86_400e6)
    times = np.sort(rng.integers(first, first + length, rows)).tolist()
    P = rng.dirichlet(np.full(K, 0.3), size=64) * 0.9 + 0.1 / K
    arms, listed = rng.integers(0, 64, rows), '["' + '", "'.join(ARMS) + '"]'
    features = rng.normal(size=(64, K, D))
    columns = "id, time, arms, K, features, arm, propensity, propensity_kind, floor, z, z_law, probabilities, "
    columns += "policy, preset, version, width, x, batch, closed"
    with dither.log.Ledger(path) as ledger:
        with ledger.holding() as connection:
            driver = ledger.database.driver(connection)
            blobs = [(features[i].tobytes(), P[i].tobytes()) for i in range(64)]

            def decisions():
                shown = [int(a) for a in (rng.random(rows)[:, None] > np.cumsum(P, axis=1)[arms][:, :-1]).sum(axis=1)]
                for n, (i, arm, time) in enumerate(zip(arms.tolist(), shown, times, strict=True)):
                    data, p = blobs[i]
                    about = ("exact", 0.1, 0.0, "continuous", p, "FeaturePerturbation on Ridge", None, "0.1.0")
                    yield (f"{n:032x}", time, listed, K, data, arm, P[i][arm], *about, D, data[: 8 * D], 0, False)

            driver.executemany(f"INSERT INTO dither_decisions ({columns}) VALUES ({', '.join('?' * 19)})", decisions())
            paid = rng.normal(0.4, 0.2, rows).tolist()
            pairs = ((n + 1, "", paid[n], times[n] + 60_000_000, "counted", 0) for n in range(rows))
            driver.executemany(
                "INSERT INTO dither_rewards (decision, part, reward, time, standing, batch) VALUES (?, ?, ?, ?, ?, ?)",
                pairs,
            )
        more = True
        while more:
            with ledger.holding() as connection:
                more = days.keep(connection, ledger.database, most=50_000)


def measured(path):
    """Seconds of each page: the first of a process, and the median of five more."""
    for place in PLACES:
        page, seconds = Client(watch.app(path)), []
        for _ in range(6):
            begun = time.perf_counter()
            text = page.get(place).text
            seconds.append(time.perf_counter() - begun)
        waits = ", which is being computed" if "Being computed" in text else ""
        again = statistics.median(seconds[1:])
        print(f"{place:40} first {seconds[0]:.3f} s, again {again:.3f} s, {len(text) / 1000:.0f} kB{waits}")


def in_browser(path):
    """Seconds from the click on, in a Chromium that was just started, of a service that was just started."""
    with served(watch.app(path)) as address:
        browser = browsing.start(shutil.which("chromedriver"))
        try:
            begun = time.perf_counter()
            page = browsing.Page(browser, address + "/")
            page.until("return performance.getEntriesByName('first-contentful-paint').length")
            answer, seen, loaded = page.run(TIMES)
            page.plots()
            drawn = time.perf_counter() - begun
            print(f"in Chromium: answered {answer:.2f} s, text is seen {seen:.2f} s, loaded {loaded:.2f} s", end="")
            print(f", all charts were scrolled to and drawn {drawn:.2f} s")
        finally:
            browser.quit()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--browser", action="store_true")
    parser.add_argument("--home", help="a ledger that is there; else one is made")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(given.home or Path(folder) / "million.db")
        if not path.exists():
            begun = time.perf_counter()
            fill(path, given.rows)
            took, size = time.perf_counter() - begun, path.stat().st_size / 1e6
            print(f"{given.rows:,} rows written in {took:.0f} s, {size:,.0f} MB")
        measured(path)
        if given.browser:
            in_browser(path)


if __name__ == "__main__":
    main()
