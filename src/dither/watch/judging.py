"""What another policy would have earned, asked on the page. `dither.ope` answers, in a thread beside it (`desk`).

What takes longer than `seconds` is given up at its next piece, and the answer says so.
"""

import dataclasses
import time
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from dither.bandit.bandit import Bandit
from dither.base import errors
from dither.live.bandit_changes import DEMANDS, replaced
from dither.log import Ledger, Logged
from dither.log.database import fetching
from dither.ope import evaluate
from dither.ope.candidates import Always, CandidatePolicy, ColumnPolicy, Saved, Uniform
from dither.watch.desk import AnswerDesk

WAIT = 0.4  # seconds for which a page waits
ROWS = (1_000, 10_000, 100_000)  # how many of the latest decisions may be asked about
FEATURED = 10_000  # at most, where the policy needs the features, which fill the memory
DRAWS = 200  # Monte Carlo draws of a row, where a bandit has no exact probabilities
JUDGED, SHADOW = "judged", "shadow"  # columns of the log: the probabilities of the shadow, and which one it was
ARRAYS = ("features", "m", "w")


class Asked(NamedTuple):
    """A question."""

    policy: str  # one of `POLICIES`
    arm: str = ""  # of the policy "arm"
    settings: tuple[tuple[str, float], ...] = ()  # of the policy "settings"
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


POLICIES = {
    "uniform": "every arm alike",
    "arm": "always one arm",
    "greedy": "the best arm, without exploration",
    "now": "the bandit as it is now",
    "settings": "the bandit with other settings",
    "shadow": "the shadow",
}


class PolicyJudge:
    """Answers questions about one ledger."""

    def __init__(self, ledger: Ledger, bandit: Callable[[], Bandit], seconds: float) -> None:
        """bandit : what gives the bandit as it is now; seconds : after which a question has taken too long."""
        self._ledger, self._bandit, self._seconds, self._desk = ledger, bandit, seconds, AnswerDesk("judge")

    def answer(self, asked: Asked, *, wait: float = WAIT) -> JudgedAnswer | None:
        """The answer; None: it is being made. wait : at most so many seconds. Raises `desk.Busy`."""
        return self._desk.answer(asked, lambda: self._answered(asked), wait=wait)

    def close(self) -> None:
        """Let what waits go, and what is being computed stop at its next piece."""
        self._seconds = 0.0
        self._desk.close()

    def _answered(self, asked: Asked) -> JudgedAnswer:
        begun = time.monotonic()

        def told(done: int, rows: int) -> None:
            if time.monotonic() > begun + self._seconds:
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
            outcome = dict(rows=len(logged), evaluation=evaluation)
        except TimeoutError:
            outcome = dict(
                words=f"This took longer than {self._seconds:g} s, and was given up. Ask about fewer decisions."
            )
        except (ValueError, LookupError, TypeError, ImportError, OSError, MemoryError) as reason:
            outcome = dict(words=f"{reason}")
        return JudgedAnswer(datetime.now(UTC), time.monotonic() - begun, **outcome)  # type: ignore[arg-type]

    def _logged(self, asked: Asked) -> Logged:
        featured = asked.policy in ("greedy", "now", "settings")
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
        bandit = self._bandit()
        if asked.policy == "settings":
            name, bandit = _with_settings(bandit, dict(asked.settings))
        return Saved(name, bandit, greedy=asked.policy == "greedy", draws=DRAWS)


def _with_settings(bandit: Bandit, settings: dict[str, float]) -> tuple[str, Bandit]:
    """How it is called, and the bandit which decides by other settings with what was learnt.

    Raises ValueError for what is no setting of the policy, and where the policy does not take it.
    """
    names = [*(one.name for one in dataclasses.fields(bandit.policy)), *DEMANDS]
    other = [name for name in settings if name not in names]
    if other:
        raise ValueError(
            f"{errors.listed(other)}: the policy has {errors.listed(names)}. Settings of the model change what is "
            f"learnt, from the first reward on: `dither tune` compares those"
        )
    return " ".join(f"{name}={value:g}" for name, value in settings.items()), replaced(bandit, settings)[0]


def _interval(logged: Logged, asked: Asked) -> dict[str, Any]:
    """The interval that `evaluate` takes by itself. Where the policy learnt, it needs a range of rewards."""
    if asked.span is not None:
        return {"reward_range": asked.span}
    return {"interval": "normal"} if logged.reward_range is None else {}
