"""docs/tables.md is made from the package's tables."""

from pathlib import Path

from dither.base import errors
from dither_bench.commands import tables_page


def test_the_page_is_what_the_tables_say():
    page = (Path(__file__).parents[2] / "docs" / "tables.md").read_text(encoding="utf-8")
    assert page == tables_page.page(), "run `make tables`"
    # seen red: an algorithm that was left out of the page


def test_names_in_a_sentence():
    assert errors.either(["a"]) == "a"
    assert errors.either(["a", "b", "c"]) == "a, b or c"
