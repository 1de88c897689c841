"""What a bake-off says, in sentences."""

from collections.abc import Iterator

from dither.base import errors
from dither_bench.judge import duels, words
from dither_bench.judge.set_losses import SetLosses


def sentences(losses: SetLosses, base: str) -> Iterator[str]:
    """Who is better, worse or not told apart from the reference; then what the tests are."""
    kinds: dict[str, list[str]] = {"better": [], "worse": [], "both": [], "neither": []}
    for name in losses.algorithms:
        if name != base:
            duel = duels.duel(losses, name, base)
            kind = ("neither", "worse", "better", "both")[2 * (duel.wins > 0) + (duel.losses > 0)]
            kinds[kind].append(f"{name} ({duel.wins}–{duel.losses})" if kind != "neither" else name)
    heads = {
        "better": f"Better than {base} on some sets, and worse on none",
        "worse": f"Worse than {base} on some sets, and better on none",
        "both": f"Better than {base} on some sets, and worse on others",
        "neither": f"Not told apart from {base} on any set",
    }
    for kind, names in kinds.items():
        if names:
            yield f"{heads[kind]}: {errors.listed(names)}."
    yield (
        f"Better and worse: the approximate Z test of Bietti, Agarwal and Langford (2021) at "
        f"{100 * duels.SIGNIFICANT:.0f} %, over the rounds of one pass, with Holm's correction over the sets."
    )
    if losses.shuffles == 1:
        yield words.ONE_RUN
        return
    yield (
        f"Lower and higher: the paired 95 % t-interval over {losses.shuffles} shuffles of the same rows, one set at a "
        "time; the median is of the relative differences of the losses."
    )
