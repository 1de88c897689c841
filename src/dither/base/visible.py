"""Texts of others as a page or a terminal may show them: what no eye sees is written as its number."""

import unicodedata

JOINERS = "\u200c\u200d"  # which scripts and pictures are made of
UNSEEN = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}  # categories of characters that no eye sees


def visible(text: str) -> str:
    """A text on one line, without what moves a cursor or turns the direction of writing."""
    return text if text.isascii() and text.isprintable() else "".join(map(_seen, text))


def _seen(c: str) -> str:
    return f"\\u{ord(c):04x}" if c not in JOINERS and unicodedata.category(c) in UNSEEN else c
