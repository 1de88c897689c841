import re

import polars as pl
import pytest

from dither.algorithms import specs
from dither_bench.define.figures import FIGURES
from dither_bench.define.panels import Figure, Panel
from dither_bench.judge import tables
from dither_bench.show import latex

NAMES = ("LinFP", "LinTS", "Greedy", "LinUCB")
LAST = {  # of three runs
    "LinFP": (10.0, 12.0, 14.0),
    "LinTS": (11.0, 11.0, 15.0),  # + 1, - 1, + 1: not told apart
    "Greedy": (20.0, 22.5, 24.0),  # + 10, + 10.5, + 10: above
    "LinUCB": (1500.0, 1500.0, 1500.0),
}


def figure(panels=1, rounds=5, names=NAMES):
    made = tuple(Panel(f"d={i}", {"name": "linear"}, rounds, specs(*names)) for i in range(panels))
    return Figure("compare", "Comparison of 100% & more", made)


def curves(figure, last=LAST):
    rows = [(p.name, a, run, p.rounds, x) for p in figure.panels for a, of in last.items() for run, x in enumerate(of)]
    return pl.DataFrame(rows, schema=["panel", "algorithm", "run", "round", "regret"], orient="row")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("50% of a_b & c#1", r"50\% of a\_b \& c\#1"),
        (r"{\x}", r"\{\textbackslash{}x\}"),
        ("ε-Greedy (λ = 1)", r"$\varepsilon$-Greedy ($\lambda$ = 1)"),
        ("−1 ± 2, ‖θ*‖ ~ x^2 <$>", r"$-$1 $\pm$ 2, $\Vert$$\theta$$\ast$$\Vert$ \textasciitilde{} "
         r"x\textasciicircum{}2 $<$\$$>$"),
        ("Kveton, Szepesvári", "Kveton, Szepesvári"),
    ],
)  # fmt: skip
def test_escape(text, says):
    assert latex.escape(text) == says


def test_every_title_and_note_of_a_figure_is_ascii_or_a_letter():
    for one in FIGURES.values():
        for text in (one.title, *(note.text for note in one.notes)):
            left = re.sub(r"[A-Za-zÀ-ÿ\x00-\x7f]", "", latex.escape(text))
            assert left == "", left
    # seen red: without "√"


def test_the_lowest_is_bold_and_what_is_not_told_apart_has_a_dagger():
    text = latex.table(figure(), curves(figure()))
    rows = re.findall(r"^    (.*) & (.*) \\\\$", text, flags=re.MULTILINE)
    assert rows == [
        ("LinFP", r"\textbf{12.0 $\pm$ 1.15}"),
        ("LinTS", r"12.3 $\pm$ 1.33$^\dagger$"),
        ("Greedy", r"22.2 $\pm$ 1.17"),
        ("LinUCB", r"1,500 $\pm$ 0.00"),
    ]
    assert tables.lowest(curves(figure()), figure().panels[0], 5) == ("LinFP", {"LinTS"})
    # seen red: the differences to LinFP in the wrong direction; the dagger on all


def test_one_run_tells_nothing_apart():
    last = {name: of[:1] for name, of in LAST.items()}
    text = latex.table(figure(), curves(figure(), last))
    assert text.count(latex.DAGGER + r" \\") == 3
    assert r"\textbf{10.0}" in text
    assert "mean over 1 runs" not in text


def test_the_structure_and_the_caption():
    text = latex.table(figure(panels=6), curves(figure(panels=6)), kind="paper")
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 2  # four panels, then two
    assert re.findall(r"\{(lr+)\}", text) == ["lrrrr", "lrr"]
    for row in re.findall(r"^    (.* & .*) \\\\$", text, flags=re.MULTILINE):
        assert row.count("&") in (4, 2)
    for rule in ("toprule", "midrule", "bottomrule"):
        assert text.count("\\" + rule) == 2
    (caption,) = re.findall(r"\\caption\{(.*)\}$", text, flags=re.MULTILINE)
    assert caption.startswith(r"Comparison of 100\% \& more. Cumulative regret of the means after 5 rounds: mean over ")
    assert r"3 runs $\pm$ standard error" in caption
    assert text.count("{") == text.count("}")
    assert text.endswith("\\end{table}\n")
    assert r"\label{tab:compare}" in text


def test_a_panel_without_an_algorithm_has_a_dash_there():
    made = curves(figure(panels=2)).filter(~((pl.col("panel") == "d=1") & (pl.col("algorithm") == "LinTS")))
    (row,) = re.findall(r"^    LinTS & (.*) \\\\$", latex.table(figure(panels=2), made), flags=re.MULTILINE)
    assert row == r"12.3 $\pm$ 1.33$^\dagger$ & --"
    with pytest.raises(ValueError, match="no results of compare at its horizon"):
        latex.table(figure(), made.clear())


def test_the_figure_says_what_its_band_is():
    text = latex.figure(figure(), says="band: ±1 standard error over 3 runs", formats=("svg", "png"), width=3.25)
    assert r"\includegraphics[width=3.25in]{compare.png}" in text
    assert r"mean over the runs; band: $\pm$1 standard error over 3 runs.}" in text
    assert r"\includegraphics[width=\linewidth]{compare.pdf}" in latex.figure(
        figure(), says="", formats=("png", "pdf"), width=None
    )
    assert r"\input{compare.pgf}" in latex.figure(figure(), says="", formats=("pgf",), width=None)
