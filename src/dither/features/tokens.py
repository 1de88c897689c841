"""The words of a text, in any script. The rule has a number, since what was learnt by one rule is wrong by another.

    1   runs of letters and digits, in lower case: what files have that were written before there were numbers
    2   the text in Unicode's form NFC, in lower case (casefold), without what only changes its looks (soft hyphens,
        marks of direction, selectors of variants), and then

        words       letters, digits and _, with the marks on them (vowel signs, points, accents) and joiners between;
                    at the end of a word +, ++ and # belong to it: c, c++ and c# are three words
        symbols     beyond ASCII each is a word: an emoji with its modifiers, a sequence that is joined, a flag, €
        no spaces   Chinese, Japanese, Thai, Lao, Khmer, Burmese and more are written without them: a run becomes its
                    pairs of neighbouring characters, each with its marks, and one alone stays. So no dictionary is
                    needed, and the rule is the same everywhere

Each character has a class, a letter of ASCII (`_Classes`), and the rule is a pattern of these letters.
"""

import itertools
import re
import unicodedata

VERSION = 2
FIRST = 1
_OF_FIRST = re.compile(r"\w+")
_OF_ASCII = re.compile(r"\w+(?:\+\+(?!\+)|[+#](?![\w+#]))?", re.ASCII)
_OF_CLASSES = re.compile(
    r"(?P<run>u[mjn]*(?:u[mjn]*)+)|u[mjn]*"
    r"|w(?:[wm]|[jn]+(?=w))*(?:\+\+(?!\+)|[+#](?![wu+#m]))?"
    r"|rr|[sr][mk]*(?:j[sr][mk]*)*|k|[#*]m+"
)
_CHARACTER = re.compile(r"u[mjn]*")
_JOINERS = "\u200c\u200d"
_SELF = {0x200D: "j", 0x200C: "n", 0x2B: "+", 0x23: "#", 0x2A: "*", 0x5F: "w"}
_PICTURES = (0x203C, 0x2049, 0x3030)  # emoji that Unicode counts as punctuation
_MODIFIERS = (range(0x1F3FB, 0x1F400), range(0xE0020, 0xE0080))  # skin tones; the letters of flags of regions
_REGIONS = range(0x1F1E6, 0x1F200)  # two of them are a flag
_LOOKS = re.compile(  # what only changes the looks of a text
    "[\u00ad\u061c\u180b-\u180f\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef]"
)
_UNSPACED = (  # blocks of scripts that have no spaces between words: Thai to New Tai Lue, Tai Tham to Tai Viet,
    *(range(0x0E00, 0x0F00), range(0x1000, 0x10A0), range(0x1780, 0x1800), range(0x1950, 0x19E0)),
    *(range(0x1A20, 0x1AB0), range(0x1B00, 0x1B80), range(0xA980, 0xAA00), range(0xAA60, 0xAAE0)),
    *(range(0x3005, 0x3008), range(0x3021, 0x3030), range(0x3031, 0x3130), range(0x31A0, 0x31C0)),  # Japanese
    *(range(0x31F0, 0x3200), range(0x3400, 0x4DC0), range(0x4E00, 0xA000), range(0xF900, 0xFB00)),  # Chinese
    *(range(0xFF66, 0xFFA0), range(0x1AFF0, 0x1B170), range(0x20000, 0x40000)),
)


def nfc(text: str) -> str:
    """The text in Unicode's form NFC: a letter with an accent is the same text, however it was typed."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def words(text: str, version: int) -> list[str]:
    """The words of a text, in their order, by the rule of this number."""
    if version == FIRST:
        return _OF_FIRST.findall(text.casefold())
    if text.isascii():
        return _OF_ASCII.findall(text.lower())
    text = nfc(_LOOKS.sub("", unicodedata.normalize("NFD", text).casefold()))
    classes = text.translate(_CLASSES)
    cut: list[str] = []
    for match in _OF_CLASSES.finditer(classes):
        if match["run"] is None:
            cut.append(text[match.start() : match.end()])
            continue
        characters = (text[one.start() : one.end()] for one in _CHARACTER.finditer(classes, *match.span()))
        cut += map("".join, itertools.pairwise(characters))
    return [word.rstrip(_JOINERS) for word in cut]


class _Classes(dict[int, str]):
    """Character -> its class: w letter or digit, u one of a script without spaces, m mark, s symbol, and so on."""

    def __missing__(self, code: int) -> str:
        self[code] = self._of(code)
        return self[code]

    def _of(self, code: int) -> str:
        if code in _SELF:
            return _SELF[code]
        if code in _REGIONS:
            return "r"
        if any(code in block for block in _MODIFIERS):
            return "k"
        category = unicodedata.category(chr(code))
        if category[0] == "M":
            return "m"
        if category[0] == "L" or code in (0x3007, *range(0x3021, 0x302A)):  # digits of Chinese that are read as letters
            return "u" if any(code in block for block in _UNSPACED) else "w"
        if category[0] == "N":
            return "w"
        return "s" if code in _PICTURES or (code > 0x7F and category in ("So", "Sc", "Sm")) else " "


_CLASSES = _Classes()
