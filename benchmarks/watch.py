"""How long the pages of `dither watch` take over a ledger of a million decisions, each with its reward.

    python benchmarks/watch.py [--rows 1000000] [--browser]

The rows are written to the tables at once, as a learner that has all of them would have left them: the sums by day are
kept. "first" is the first page of an app, "again" the median of five more. With --browser a Chromium that was just
started opens the overview three times: the text, the first chart and all charts are seen so many seconds after the
click. With --home a ledger that is there is taken, or kept there for the next time.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import dither
from asking import Client
from dither import watch
from dither.log.database import days
from watched_ledgers import served

ARMS = [f"article-{k:02d}" for k in range(20)]
D, DAYS = 8, 200
TOLD = b"""
  const times = [], plots = () => [...document.querySelectorAll(".plot")];
  const seen = new MutationObserver(() => {
    const drawn = plots().filter((plot) => plot.querySelector(".main-svg")).length;
    if (times.length < drawn) requestAnimationFrame(() => setTimeout(() => {
      while (times.length < drawn) times.push(performance.now());
      if (times.length < plots().length) return;
      const [page] = performance.getEntriesByType("navigation");
      const [paint] = performance.getEntriesByName("first-contentful-paint");
      const told = [page.responseStart, paint.startTime, times[0], times.at(-1)].map((time) => time / 1000);
      fetch("/told?" + told.join(","));
    }));
  });
  seen.observe(document, { childList: true, subtree: true });
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


def telling(page, times):
    """The page, with a script that tells when the text was seen and when the charts were."""

    async def app(scope, receive, send):
        if scope["type"] != "http" or scope["path"] not in ("/", "/told", "/told.js"):
            await page(scope, receive, send)
        elif scope["path"] == "/":
            sent = []

            async def kept(message):
                sent.append(message)

            await page(scope, receive, kept)
            body = b"".join(message.get("body", b"") for message in sent)
            body = body.replace(b"</title>", b"</title><script src='/told.js'></script>", 1)
            headers = [one for one in sent[0]["headers"] if one[0] != b"content-length"]
            await send(sent[0] | {"headers": headers})
            await send({"type": "http.response.body", "body": body})
        else:
            if scope["path"] == "/told":
                times.append([float(x) for x in scope["query_string"].decode().split(",")])
            await send(
                {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/javascript")]}
            )
            await send({"type": "http.response.body", "body": TOLD if scope["path"] == "/told.js" else b""})

    return app


def in_browser(path, visits=3):
    """Seconds from the click on, in a Chromium that has never seen the page, of a service that was just started.

    It has no driver: for one, V8 looks up the lines of an error that Plotly makes as it starts, which takes 0.4 s.
    """
    times = []
    with (
        served(telling(watch.app(path), times)) as address,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
    ):
        for visit in range(visits):
            before = time.process_time()
            options = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1200,900"]
            command = [shutil.which("chromium"), *options, f"--user-data-dir={profile}", address + "/"]
            with subprocess.Popen(command, stderr=subprocess.DEVNULL) as chromium:
                while len(times) == visit and chromium.poll() is None:
                    time.sleep(0.05)
                of_service, of_page = time.process_time() - before, drawing(chromium.pid)
                chromium.terminate()
            if len(times) == visit:
                raise RuntimeError("Chromium ended before the charts were drawn")
            answer, text, first, last = times[-1]
            print(
                f"visit {visit + 1}: answered {answer:.2f} s, text is seen {text:.2f} s, first chart {first:.2f} s",
                end="",
            )
            print(f", all charts {last:.2f} s; processor: service {of_service:.2f} s, page {of_page:.2f} s", end="")
            print(f"; load {os.getloadavg()[0]:.1f}", flush=True)


def drawing(browser):
    """Seconds of processor that the process of the page has taken: of those that draw below this one, the busiest."""
    parents, seconds = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parts = (folder / "stat").read_text().rpartition(")")[2].split()
            parents[int(folder.name)] = int(parts[1])
            if b"--type=renderer" in (folder / "cmdline").read_bytes():
                seconds[int(folder.name)] = (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")
        except OSError:  # it has ended
            continue

    def below(process):
        while process in parents and process != browser:
            process = parents[process]
        return process == browser

    return max(seconds[process] for process in seconds if below(process))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--browser", action="store_true")
    parser.add_argument("--home", help="a ledger that is there, or where it is made")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(given.home or Path(folder) / "million.db")
        if not path.exists():
            begun = time.perf_counter()
            fill(path, given.rows)
            took, size = time.perf_counter() - begun, path.stat().st_size / 1e6
            print(f"{given.rows:,} rows written in {took:.0f} s, {size:,.0f} MB")
        if given.browser:
            in_browser(path)
        measured(path)


if __name__ == "__main__":
    main()
