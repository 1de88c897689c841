"""What runs beside the bandit: a shadow that is judged."""

from typing import NamedTuple

from dither.live.taught import ShadowFacts, shadow_of
from dither.log import Ledger
from dither.ope.verdicts import Verdict
from dither.watch.desk import Busy
from dither.watch.judging import Asked, PolicyJudge


class ShadowRow(NamedTuple):
    """The shadow of a ledger, and what it would have earned."""

    facts: ShadowFacts
    verdict: Verdict | None  # None: it is being computed
    words: str = ""  # why there is no verdict


def shadow(ledger: Ledger, judge: PolicyJudge) -> ShadowRow | None:
    """The shadow, judged beside the page; None: the ledger has none."""
    with ledger.database.reading() as connection:
        facts = shadow_of(connection)
    if facts.first is None:
        return None
    try:
        answer = judge.answer(Asked("shadow"), wait=0)
    except Busy:
        return ShadowRow(facts, None)
    if answer is None:
        return ShadowRow(facts, None)
    if answer.evaluation is None:
        return ShadowRow(facts, None, answer.words)
    return ShadowRow(facts, answer.evaluation.verdicts()[0])
