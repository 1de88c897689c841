import pytest

from dither.algorithms import ALGORITHMS, specs
from dither_bench.define import figures, published
from dither_bench.define.figures import FIGURES
from dither_bench.define.panels import Figure, Panel
from dither_bench.show import looks


def shown(figure, kind="paper"):
    return list(looks.names_in(figure, kind).values())


@pytest.mark.parametrize("kind", looks.KINDS)
@pytest.mark.parametrize("figure", FIGURES.values(), ids=lambda figure: figure.name)
def test_a_name_stands_for_one_algorithm(figure, kind):
    found = shown(figure, kind)
    assert len(set(found)) == len(found) == len(figure.algorithms)


@pytest.mark.parametrize("figure", FIGURES.values(), ids=lambda figure: figure.name)
def test_every_published_curve_has_its_name_in_the_figure(figure):
    legend = set(published.rows().filter(figure=figure.name)["algorithm"])
    assert legend <= set(shown(figure))
    # seen red: without the labels of the algorithms; "(ours)" kept; settings always written


def test_the_paper_has_names_of_its_own():
    assert shown(FIGURES["fig2b"]) == ["LinFP", "LinTS"]  # its settings are those of the figure
    assert shown(FIGURES["h1"])[-2:] == ["RandLinUCB (as run)", "Greedy"]
    assert shown(FIGURES["fig3-logistic"])[:3] == ["GLM-FP", "ε-Greedy", "OFUGLB-e"]


ASKED = ("LinFP", "LinFP:c=0.3,lam=0.01", "GLMFP:preset=own_paper", "EpsGreedy", "Greedy", "LogGreedy")


def test_settings_are_written_as_mathematics():
    env = {"name": "linear"}
    panel = Panel("p", env, 10, specs(*ASKED))
    figure = Figure("compare", "Comparison", (panel,))
    found = ["LinFP", "LinFP (c = 0.3, λ = 0.01)", "GLM-FP (own paper)", "ε-Greedy", "Greedy", "LogGreedy"]
    assert shown(figure) == found  # the two greedy ones share the paper's name, so they keep the code's
    # seen red: "ε-greedy" in `PAPER`; "Greedy" twice
    assert shown(figure, "code")[1] == "LinFP:c=0.3,lam=0.01"
    one = figures.select(FIGURES["fig3-linear"], algorithms=["LinFP:c=0.3"])
    assert shown(one) == ["GLM-FP (c = 0.3)"]


def test_a_file_is_no_part_of_a_name_in_a_paper(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "from dither.policies import UCB as Mine, Greedy as Other\n"
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(text)
    asked = specs("LinFP", "one.py:Mine", "two.py:Mine", "one.py:Other")
    figure = Figure("compare", "Comparison", (Panel("p", {"name": "linear"}, 10, asked),))
    assert shown(figure) == ["LinFP", "one.py:Mine", "two.py:Mine", "Other"]  # one name may not stand for two
    # seen red: "one.py:Other"


def test_names_of_the_paper_are_names_of_algorithms():
    assert set(looks.PAPER) <= set(ALGORITHMS)
