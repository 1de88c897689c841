"""What another policy would have earned, asked on the page. `dither.ope` answers, in one thread beside the pages.

A question is answered once and the answer is kept for `KEPT` seconds, however often the page is opened. No page waits
for it longer than a moment. After `seconds` the page says that it took too long; the computation stops at its next
piece. While one is computed, `MOST` others may wait.
"""

import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from dither.bandit.bandit import Bandit
from dither.log import Ledger, Logged
from dither.log.database import fetching
from dither.ope import evaluate
from dither.ope.candidates import Always, CandidatePolicy, ColumnPolicy, Saved, Uniform

KEPT = 60.0  # seconds
MOST = 4
ROWS = (1_000, 10_000, 100_000)  # how many of the latest decisions may be asked about
FEATURED = 10_000  # at most, where the policy needs the features, which fill the memory
DRAWS = 200  # Monte Carlo draws of a row, where a bandit has no exact probabilities
JUDGED, SHADOW = "judged", "shadow"  # columns of the log: the probabilities of the shadow, and which one it was
ARRAYS = ("features", "m", "w")


class Asked(NamedTuple):
    """A question."""

    policy: str  # one of `POLICIES`
    arm: str = ""  # of the policy "arm"
    rows: int = ROWS[1]  # of the latest decisions
    missing: float | None = None  # what a decision without a reward counts; None: it is left out
    span: tuple[float, float] | None = None  # the least and the largest reward that there can be; None: not known


class JudgedAnswer(NamedTuple):
    """What was found, or why nothing was."""

    at: datetime
    seconds: float
    rows: int = 0  # read
    evaluation: Any = None  # of `dither.ope`; None: see `words`
    words: str = ""


class Busy(Exception):
    """Too many questions wait."""


POLICIES = {
    "uniform": "every arm alike",
    "arm": "always one arm",
    "greedy": "the best arm, without exploration",
    "now": "the bandit as it is now",
    "shadow": "the shadow",
}


@dataclass
class _Job:
    future: "Future[JudgedAnswer]"
    begun: float  # by time.monotonic()


class Desk:
    """Answers questions, one after another."""

    def __init__(self, ledger: Ledger, bandit: Callable[[], Bandit], seconds: float) -> None:
        """bandit : what gives the bandit as it is now; seconds : after which a question has taken too long."""
        self._ledger, self._bandit, self.seconds = ledger, bandit, seconds
        self._lock, self._jobs = threading.Lock(), dict[Asked, _Job]()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="dither-judge")

    def close(self) -> None:
        """Let what waits go, and what is being computed stop at its next piece."""
        self.seconds = 0.0
        self._thread.shutdown(wait=True, cancel_futures=True)

    def answer(self, asked: Asked, *, wait: float = 0.4) -> JudgedAnswer | None:
        """The answer; None: it is being made. wait : at most so many seconds. Raises Busy."""
        job = self._job(asked)
        try:
            return job.future.result(timeout=wait)
        except TimeoutError:
            return None

    def _job(self, asked: Asked) -> _Job:
        now = time.monotonic()
        with self._lock:
            done = [one for one, job in self._jobs.items() if job.future.done() and now > job.begun + KEPT]
            for one in done:
                del self._jobs[one]
            if asked not in self._jobs:
                if sum(not job.future.done() for job in self._jobs.values()) > MOST:
                    raise Busy
                self._jobs[asked] = _Job(self._thread.submit(self._answered, asked), now)
            return self._jobs[asked]

    def _answered(self, asked: Asked) -> JudgedAnswer:
        begun = time.monotonic()

        def told(done: int, rows: int) -> None:
            if time.monotonic() > begun + self.seconds:
                raise TimeoutError

        try:
            logged = self._logged(asked)
            told(0, len(logged))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the notes say what was wrong
                evaluation = evaluate(
                    logged,
                    [self._policy(asked)],
                    missing="leave out" if asked.missing is None else asked.missing,
                    invalid="leave out",
                    **_interval(logged, asked),
                    on_progress=told,
                )
            found = dict(rows=len(logged), evaluation=evaluation)
        except TimeoutError:
            found = dict(
                words=f"This took longer than {self.seconds:g} s, and was given up. Ask about fewer decisions."
            )
        except (ValueError, LookupError, TypeError, ImportError, OSError, MemoryError) as reason:
            found = dict(words=f"{reason}")
        return JudgedAnswer(datetime.now(UTC), time.monotonic() - begun, **found)  # type: ignore[arg-type]

    def _logged(self, asked: Asked) -> Logged:
        featured = asked.policy in ("greedy", "now")
        with self._ledger.database.reading() as connection:
            numbers = fetching.latest(connection, min(asked.rows, FEATURED) if featured else asked.rows)
        if not numbers:
            raise ValueError("the ledger has no decisions yet")
        logged = self._ledger.logged(fetching.since(numbers[-1]), leave=() if featured else ARRAYS)
        if asked.policy == "shadow":
            if SHADOW not in logged.frame.columns:
                raise ValueError("no shadow was judged in these decisions")
            numbers_of = logged.frame[SHADOW]
            logged = logged.filter((numbers_of == numbers_of.max()).fill_null(False).to_numpy())
        return logged

    def _policy(self, asked: Asked) -> CandidatePolicy:
        name = POLICIES[asked.policy]
        if asked.policy == "uniform":
            return Uniform(name)
        if asked.policy == "arm":
            return Always(f"always {asked.arm}", asked.arm)
        if asked.policy == "shadow":
            return ColumnPolicy(name, JUDGED)
        return Saved(name, self._bandit(), greedy=asked.policy == "greedy", draws=DRAWS)


def _interval(logged: Logged, asked: Asked) -> dict[str, Any]:
    """The interval that `evaluate` takes by itself. Where the policy learnt, it needs a range of rewards."""
    if asked.span is not None:
        return {"reward_range": asked.span}
    return {"interval": "normal"} if logged.reward_range is None else {}
