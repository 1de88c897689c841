"""The data sets: what they are, where they come from, under which licence, and how to see that a copy is whole.

The SHA-256 of a file is that of its content. A .gz is unpacked first, so that a file that was packed again counts as
the same file. `digest` is that of the data themselves (`Dataset.digest`): the order of the rows and the format do not
matter.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Source:
    """One data set as it is published."""

    name: str
    rows: int  # N
    dim: int  # d, columns as published
    arms: int  # K, classes
    files: Mapping[str, str]  # the originals: name -> SHA-256 of the content
    openml: int  # id at openml.org
    url: str  # where the originals are
    licence: str
    citation: str
    digest: str  # SHA-256 of all rows and labels
    encoded: int | None = None  # d after categorical columns have become one-hot
    shape: tuple[int, ...] | None = None  # of an image
    accepts: tuple[tuple[str, ...], ...] = ()  # other names of files with the same data


MISSING = "?"  # in a column of text
_IMAGES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
_OF_IMAGES: dict[str, Any] = dict(rows=70_000, dim=784, arms=10, shape=(28, 28), accepts=(_IMAGES,))
ISOLET = ("isolet1+2+3+4.data", "isolet5.data")  # as published
ISOLET_PACKED = "isolet_all_int16.npz"  # 10,000 X as int16, which is exact: the numbers have four decimals

SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        Source(
            "shuttle",
            rows=58_000,
            dim=9,
            arms=7,
            files={
                "shuttle.trn": "87b24ee9fb5137e1d417659cf905d84d0e15342bbaa60770f1ae83da1a38200a",
                "shuttle.tst": "f776934a628d9b94c482cb058a76ddaa63823e0f74aec065813c9dff3b89d661",
            },
            openml=40685,
            url="https://archive.ics.uci.edu/dataset/148/statlog+shuttle",
            licence="CC BY 4.0",
            citation="Statlog (Shuttle). UCI Machine Learning Repository. doi:10.24432/C5WS31",
            digest="28847f5058f8e89cd9857a3b4914a4b51f058a9876c65c957d3fbc3422a976d0",
        ),
        Source(
            "isolet",
            rows=7797,
            dim=617,
            arms=26,
            files={ISOLET_PACKED: "98a88af1324f3cb413275882b922adec903e5c7bf1788707b7bdf2d54818add9"},
            openml=300,
            url="https://archive.ics.uci.edu/dataset/54/isolet",
            licence="CC BY 4.0",
            citation="R. Cole and M. Fanty (1991), ISOLET. UCI Machine Learning Repository. doi:10.24432/C51G69",
            digest="64eb6f7cfff7e9463ba3f13388327804184c152b492d1811202de1750d6ef7d8",
            accepts=(ISOLET,),
        ),
        Source(
            "mushroom",
            rows=8124,
            dim=22,
            arms=2,
            files={"agaricus-lepiota.data": "e65d082030501a3ebcbcd7c9f7c71aa9d28fdfff463bf4cf4716a3fe13ac360e"},
            openml=24,
            url="https://archive.ics.uci.edu/dataset/73/mushroom",
            licence="CC BY 4.0",
            citation="Mushroom (1981). UCI Machine Learning Repository. doi:10.24432/C5959T",
            digest="e69727a02a51a36ff7509d6223baaa0c995be2bf453a0478bb6307e1acd443f1",
            encoded=116,
        ),
        Source(
            "mnist",
            files={
                f"{_IMAGES[0]}.gz": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                f"{_IMAGES[1]}.gz": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                f"{_IMAGES[2]}.gz": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
                f"{_IMAGES[3]}.gz": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            },
            openml=554,
            url="http://yann.lecun.com/exdb/mnist/",
            licence="CC BY-SA 3.0",
            citation="Y. LeCun, L. Bottou, Y. Bengio and P. Haffner (1998), Gradient-based learning applied to "
            "document recognition, Proceedings of the IEEE 86(11), 2278-2324",
            digest="0f13ea29bb3abc55e2be40c111d8d6d17aa11292f2483d3903d30f4cd6871243",
            **_OF_IMAGES,
        ),
        Source(
            "fashion-mnist",
            files={
                f"{_IMAGES[0]}.gz": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
                f"{_IMAGES[1]}.gz": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
                f"{_IMAGES[2]}.gz": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
                f"{_IMAGES[3]}.gz": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
            },
            openml=40996,
            url="https://github.com/zalandoresearch/fashion-mnist",
            licence="MIT",
            citation="H. Xiao, K. Rasul and R. Vollgraf (2017), Fashion-MNIST, arXiv:1708.07747",
            digest="a40c13170c9a98e33859e5b94a52fbfa6f689703794270036d3076ed6aaaa18c",
            **_OF_IMAGES,
        ),
    )
}

MUSHROOM_COLUMNS = (
    *("cap-shape", "cap-surface", "cap-color", "bruises", "odor", "gill-attachment", "gill-spacing", "gill-size"),
    *("gill-color", "stalk-shape", "stalk-root", "stalk-surface-above-ring", "stalk-surface-below-ring"),
    *("stalk-color-above-ring", "stalk-color-below-ring", "veil-type", "veil-color", "ring-number", "ring-type"),
    *("spore-print-color", "population", "habitat"),
)


def columns(source: Source) -> tuple[str, ...]:
    """The names of the d columns."""
    if source.name == "mushroom":
        return MUSHROOM_COLUMNS
    stem = {"shuttle": "A", "isolet": "f"}.get(source.name, "pixel")
    return tuple(f"{stem}{i}" for i in range(1, source.dim + 1))
