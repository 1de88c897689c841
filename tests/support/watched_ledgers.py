"""Ledgers to look at: one with all that a page can show, with hostile names; and a server for a browser."""

import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import numpy as np
import uvicorn

import dither

SCRIPT = "<i>x</i><script>alert(1)</script>"  # Plotly has some HTML of its own
TURNED = "abc\u202egnp.exe"  # is read as abcexe.png
LONG = "x" * 900
QUOTED = """a"b'c&d{{7*7}}</td>"""
ARMS = ["spring", "new-in", SCRIPT, TURNED, LONG, QUOTED]
AUTHOR = "<b onclick=alert(3)>ops</b>"
NOTE = "<img src=x onerror=alert(2)>"
DAY = timedelta(days=1)
MIDNIGHT = datetime(2026, 11, 30, tzinfo=UTC)
DAYS, EACH = 30, 10  # days without one in the middle, and decisions of each


def rich(home, *, seed=0):
    """A ledger of 29 days with ten decisions each; the last five of them wait. -> ids, in order"""
    rng, ids = np.random.default_rng(seed), []
    live = dither.Live(
        home,
        bandit=dither.LinFP(dim=3, lam=1.0, floor=0.3, seed=seed),
        shadow=dither.Softmax(dim=3, lam=1.0, temperature=0.1),
        probabilities=True,
        budgets={"spring": [dither.Budget(40, "day"), dither.Budget(1000, None)]},
    )
    worth = np.array([0.9, 0.1, 0.3, 0.2, 0.4, 0.5])
    with live:
        for day in range(DAYS):
            if day == 12:
                continue
            X = rng.normal(size=(EACH, len(ARMS), 3)) * 0.3
            X[..., 0] = worth
            time = MIDNIGHT - (DAYS - day) * DAY + timedelta(hours=6)
            shown = live.choose(
                X, ARMS, time=time, extra={"user": [f"u{i}" for i in range(EACH)], "note": [NOTE] * EACH}
            )
            places = [ARMS.index(arm) for arm in shown.arm]
            paid = slice(0, EACH // 2 if day == DAYS - 1 else EACH)
            rewards = np.clip(worth[places] + 0.1 * rng.normal(size=EACH), 0, 1)[paid]
            live.reward(list(shown.id[paid]), rewards, time=time + timedelta(hours=1))
            ids += list(shown.id)
        live.change(horizon=7200)
        live.change(c=0.5, author=AUTHOR)
    return ids


def empty(home):
    """A ledger in which nothing was decided."""
    dither.Live(home, bandit=dither.LinFP(dim=3, floor=0.1)).close()


@contextmanager
def served(app):
    """The address under which a browser finds an app."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            thread.join(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
