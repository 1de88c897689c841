"""What users say of a picture beside its curves: title, caption, labels, limits and scales. All pictures take it here.

The page of a report has the same words and limits (`interactive`).
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dither.algorithms import Spec
from dither.base import errors
from dither_bench.define.panels import Figure
from dither_bench.show.looks import names_in

SCALES = ("linear", "log")
Limits = tuple[float | None, float | None]


@dataclass(frozen=True, kw_only=True)
class PictureFrame:
    """The words around a picture, and its axes.

    title : a text; True: the title of the figure; False: none, nor what its band is, which belong into the caption then
    caption : a text below the picture
    labels : name of an algorithm -> what the legend calls it
    xlabel, ylabel : of the axes; None: what they show
    xlim, ylim : (low, high) of the axes, of which either may be None; None: as the curves need
    xscale, yscale : "linear" or "log"; None: as `log` says, or as the values need
    """

    title: bool | str = True
    caption: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    xlabel: str | None = None
    ylabel: str | None = None
    xlim: Limits | None = None
    ylim: Limits | None = None
    xscale: str | None = None
    yscale: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.title, (bool, str)):
            raise TypeError(f"title is a text, True or False; got {self.title!r}")
        if not isinstance(self.labels, Mapping):
            raise TypeError(f"labels is algorithm -> label, as in {{'LinFP': 'ours'}}; got {self.labels!r}")
        for name in ("caption", "xlabel", "ylabel"):
            text = getattr(self, name)
            if text is not None and not isinstance(text, str):
                raise TypeError(f"{name} is a text; got {text!r}")
        for name, label in self.labels.items():
            if not isinstance(label, str) or not label.strip():
                raise ValueError(f"the label of {name} is a text; got {label!r}")
        for axis in "xy":
            scale, ends = getattr(self, f"{axis}scale"), getattr(self, f"{axis}lim")
            if scale is not None:
                errors.among(f"{axis}scale", scale, SCALES)
            if ends is not None:
                check_limits(f"{axis}lim", ends, scale)

    def heading(self, usual: str) -> str:
        """The title, where `usual` is that of the figure; "": there is none."""
        return self.title if isinstance(self.title, str) else usual * self.title

    def known_in(self, figure: Figure) -> dict[str, str]:
        """The labels of algorithms that this figure has."""
        names = _by_name(figure, "code")
        return {name: label for name, label in self.labels.items() if name in names}

    def called(self, figure: Figure, kind: str) -> dict[Spec, str]:
        """Algorithm -> its label in this figure. kind : as `looks.names_in` takes it

        An algorithm is named as tables name it, as the figure does, or without settings where no other has its name.
        A search has many settings of an algorithm under one name, so it may pass over a label.

        Raises LookupError for a label of no algorithm, and ValueError where two have the same.
        """
        names, by_name = names_in(figure, kind), _by_name(figure, kind)
        for name, label in self.labels.items():
            if name in by_name:
                names[by_name[name]] = label
            elif figure.x != "setting":
                raise errors.unknown("algorithm of the picture, for a label,", name, names=list(by_name))
        twice = [label for label in self.labels.values() if list(names.values()).count(label) > 1]
        if twice:
            raise ValueError(f"two algorithms of the picture would be called {twice[0]!r}: give each its own label")
        return names


def _by_name(figure: Figure, kind: str) -> dict[str, Spec]:
    """What an algorithm may be called by whoever labels it -> the algorithm."""
    names, count = names_in(figure, kind), Counter(spec.name for spec in figure.algorithms)
    by_name = {spec.name: spec for spec in names if count[spec.name] == 1}
    return by_name | {text: spec for spec, name in names.items() for text in (name, str(spec))}


def check_limits(name: str, ends: Sequence[float | None], scale: str | None) -> None:
    """Raise ValueError or TypeError for what is no pair of limits of an axis with this scale."""
    if isinstance(ends, str) or not isinstance(ends, Sequence) or len(ends) != 2:
        raise TypeError(f"{name} is a pair (low, high), of which either may be None; got {ends!r}")
    numbers = [end for end in ends if end is not None]
    if any(isinstance(end, bool) or not isinstance(end, (int, float)) or not math.isfinite(end) for end in numbers):
        raise ValueError(f"the ends of {name} are finite numbers or None; got {ends!r}")
    low, high = ends
    if low is not None and high is not None and low >= high:
        raise ValueError(f"{name} goes from a number to a larger one; got {ends!r}")
    if scale == "log" and any(end <= 0 for end in numbers):
        raise ValueError(f"a logarithmic axis has positive numbers alone: {name} must lie above 0; got {ends!r}")


def limits(text: str) -> Limits:
    """(1.0, None) of "1,". Raises ValueError for what is no pair."""
    low, comma, high = text.partition(",")
    try:
        if not comma:
            raise ValueError
        return float(low) if low.strip() else None, float(high) if high.strip() else None
    except ValueError:
        raise ValueError(f"limits are written LOW,HIGH, or one of them, as 0,500 or 0,; got {text!r}") from None


def labels(texts: Sequence[str]) -> dict[str, str]:
    """{"LinFP:c=0.3": "ours"} of "LinFP:c=0.3=ours": what follows the last = is the label."""
    of: dict[str, str] = {}
    for text in texts:
        name, equals, label = text.rpartition("=")
        if not (name.strip() and equals and label.strip()):
            raise ValueError(f"a label is written ALGORITHM=LABEL, as LinFP=ours; got {text!r}")
        of[name.strip()] = label.strip()
    return of
