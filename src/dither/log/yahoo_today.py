"""Yahoo's Today module: R6A (ydata-fp-td-clicks-v1_0) and R6B (v2_0), one line an article that was shown.

1241160900 109513 0 |user 2:0.000012 3:0 6:0.999958 1:1 |109498 2:0.306008 1:1 |109513 2:0.3 1:1     R6A
1317513291 id-560620 0 |user 1 9 11 13 23 |id-552077 |id-555224 |id-560620                           R6B

time (seconds since 1970), the article shown, whether it was clicked, the features of the user, and the articles that
could be shown, with their features in R6A. The article was drawn uniformly from those of its line (Li et al. 2010,
2011), so the propensity is 1/K.
"""

from collections.abc import Sequence
from typing import Any

from dither.log import lines
from dither.log.logged import Logged

USER = "user"


def yahoo(
    path: Any,
    *,
    features: bool = False,
    cross: bool = False,
    names: Sequence[str] | None = None,
    most: int = 1000,
    malformed: str = "error",
) -> Logged:
    """A log of Yahoo's Today module, R6A or R6B: the ids of the articles are the arms, a click is the reward 1.

    path : a file, packed (gzip, bzip2, xz, zstd) or not, or an iterable of lines
    features, cross, names, most, malformed : as for `dsjson`. Features are user^NUMBER and article^NUMBER. In R6B an
        article has none, and cross=True crosses the user with the id of the article

    Some lines of R6A are damaged: their article is not among those on offer, or a feature has no value. They are
    malformed, and so is the last line of a file that has no line end there: it may lack articles. Raises as `dsjson`
    does.
    """
    lines.choice("malformed", malformed, "error", "leave out")
    columns = lines.FeatureNames(features=features, most=most, names=names, cross=cross)

    def row(line: str) -> dict[str, Any]:
        return _of_line(line, columns if features else None)

    return lines.log_of(lines.opened(path), lines.singly, row, columns, malformed, where=lines.named(path))


def _of_line(line: str, names: lines.FeatureNames | None) -> dict[str, Any]:
    lines.whole_line(line)
    head, *parts = line.split("|")
    tokens, named = head.split(), [part.split() for part in parts]
    if len(tokens) != 3:
        raise lines.Malformed(f"a line begins with time, article and click, got {head.strip()!r}")
    if not all(named) or not named or named[0][0] != USER:
        raise lines.Malformed(
            f"after the click come |{USER} and its features, then a | and an article for each on offer"
        )
    time, shown, click = lines.real(tokens[0], "the time"), tokens[1], tokens[2]
    if click not in ("0", "1"):
        raise lines.Malformed(f"the click must be 0 or 1, got {click!r}")
    (_, *user), *articles = named
    ids = [id for id, *_ in articles]
    if len(set(ids)) < len(ids):
        raise lines.Malformed("an article is on offer twice")
    if USER in ids:
        raise lines.Malformed(f"|{USER} stands there twice, as where two lines were joined: put a line end between")
    if shown not in ids:
        raise lines.Malformed(f"the article shown, {shown}, is not among the {len(ids)} on offer")
    arms = [lines.summed(_feature("article", word) for word in words) for _, *words in articles]
    shared = lines.summed(_feature(USER, word) for word in user)
    noted = None if names is None else names.arms(shared, arms, ids)
    K = len(ids)
    more = {"time": lines.moment(time), "probabilities": [1 / K] * K}
    return lines.decision(ids, noted, ids.index(shown), 1 / K, -float(click), **more)


def _feature(space: str, word: str) -> tuple[str, float]:
    """The name and the value of a feature; a number alone has the value 1."""
    name, colon, value = word.partition(":")
    if not name or (colon and not value):
        raise lines.Malformed(f"a feature is a number, or number:value; got {word!r}")
    return f"{space}^{name}", lines.real(value, f"feature {name}") if colon else 1.0
