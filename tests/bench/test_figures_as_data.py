from dataclasses import replace

import pytest

from dither.algorithms import ALGORITHMS, specs
from dither_bench.define import figures, published
from dither_bench.define.environments import build
from dither_bench.define.figures import FIGURES
from dither_bench.define.panels import REFERENCES, reference
from dither_bench.keep import asked
from dither_bench.plan import costs

(FP,) = specs("LinFP")
NEURAL = {name for name, figure in FIGURES.items() if figure.each}
PAPER = specs("LinFP", "EpsGreedy", "LinUCB", "LinTS", "LinPHE", "RandLinUCB")  # those of its linear figures


def test_figures_have_the_preset_of_the_paper_but_for_the_one_that_shows_what_a_user_gets():
    presets = {name: {panel.preset for panel in figure.panels} for name, figure in FIGURES.items()}
    assert presets == {name: {"paper"} for name in FIGURES} | {"digits": {"default"}}
    # seen red: a figure of the paper without its preset


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_can_be_built_and_configured(name):
    figure = FIGURES[name]
    assert figure.name == name
    if name not in NEURAL:  # they need data: test_neural_figures.py
        figures.check(figure)
    assert figure.panels[0].algorithms[0] == reference(figure.panels[0])
    assert reference(figure.panels[0]).name in REFERENCES
    for panel in figure.panels:
        assert panel.algorithms == specs(*map(str, panel.algorithms))  # one spelling each
        cost = [costs.seconds(panel, algorithms=panel.algorithms[:n], runs=2) for n in range(3)]
        assert 0 < cost[0] < cost[1] < cost[2]
    assert figures.from_data(figures.to_data(figure)) == figure
    for note in figure.notes:  # a note that names what is not there explains nothing
        assert set(note.algorithms) <= set(figure.algorithms)
        assert set(note.panels) <= {panel.name for panel in figure.panels}


@pytest.mark.parametrize(
    ("name", "dims", "facts"),
    [
        ("fig2b", range(1, 16), dict(arms=50, contexts=1, norm=1, noise=1, rounds=200_000)),
        ("fig3-linear", (10, 20, 40), dict(arms=100, contexts=None, norm=1, noise=1, rounds=20_000)),
        ("h1", (5, 10, 20), dict(arms=100, contexts=1, norm=1, noise=1, rounds=20_000)),
        ("h2", (10, 20, 40), dict(arms=100, contexts=None, norm=2, noise=1, rounds=20_000)),
        ("fig3-logistic", (10, 20, 40), dict(arms=100, contexts=None, norm=4, unit=True, rounds=10_000)),
        ("fig3-logistic-inferred", (10, 20, 40), dict(arms=100, contexts=None, norm=4, unit=True, rounds=10_000)),
        ("h3-inferred", (10, 20, 40), dict(arms=100, contexts=1, norm=1, noise=0.1, rounds=20_000)),
        ("h4", (10, 20, 40), dict(arms=100, contexts=1, norm=1, unit=True, rounds=20_000)),
        ("h5", (5, 10, 20), dict(arms=100, contexts=1, norm=4, unit=True, rounds=10_000)),
        ("poisson", (10, 20), dict(arms=100, contexts=None, norm=1, unit=True, rounds=10_000)),
    ],
)
def test_the_settings_are_the_papers(name, dims, facts):
    panels = FIGURES[name].panels
    assert [build(panel.env).dim for panel in panels] == list(dims)
    for panel in panels:
        env = build(panel.env)
        assert {key: getattr(env, key, panel.rounds) for key in facts} == facts


def test_h3_tells_sigma_to_those_that_take_it():
    figure = FIGURES["h3"]
    assert {build(panel.env).S for panel in figure.panels} == {1, 2}
    for spec in figure.algorithms:
        assert (dict(spec.settings).get("sigma") == 0.1) == ALGORITHMS[spec.name].knows("sigma")


def test_the_published_curves_are_found_for_the_papers_algorithms_alone():
    figure = FIGURES["fig3-linear"]
    for panel in figure.panels:
        for name in PAPER:
            curve = published.curve(figure, panel, algorithm=name)
            assert curve["round"].to_list() == [1 + k * 500 for k in range(40)] + [20_000]
            assert curve["se"].null_count() == 0
        for spec in specs("Greedy", "LinFP:c=0.3"):
            assert published.curve(figure, panel, algorithm=spec).is_empty()
    short = figures.select(figure, rounds=2001)  # a round of the published curve, but not its horizon
    assert published.last(short, short.panels[0], algorithm=FP) is None
    assert published.curve(short, short.panels[0], algorithm=FP).is_empty()
    end = published.last(figure, figure.panels[0], algorithm=FP)
    assert (end.round, end.bound) == (20_000, False)
    assert end.mean == pytest.approx(306, abs=1)  # read off by eye, apart from the table
    assert end.se == pytest.approx(10.6, abs=0.1)
    of_2b = FIGURES["fig2b"]
    found = [published.last(of_2b, p, algorithm=a) for p in of_2b.panels for a in p.algorithms]
    assert [end.round for end in found] == [200_000] * 30
    # seen red: `_is_the_papers` without the rounds, without the algorithms


def test_the_logistic_curves_end_where_the_paper_cuts_them():
    figure = FIGURES["fig3-logistic"]
    assert figure.compares == "order"
    theirs = [name for name in figure.algorithms if name not in figure.extra]
    for panel, t in zip(figure.panels, (500, 3000, 10_000), strict=True):
        found = {name: published.last(figure, panel, algorithm=name) for name in theirs}
        assert {end.round for end in found.values()} == {t}
        assert published.ends(figure, panel) == sorted({t, 10_000})
        assert published.marks(panel) == {t, 10_000}
        assert published.marks(replace(panel, name="compare, d=10", algorithms=specs("LogTS"))) == {t, 10_000}
        assert published.marks(replace(panel, rounds=9000)) == set()
        cut = [name for name, end in found.items() if end.bound]
        assert cut == list(specs("LogEpsGreedy" if t < 10_000 else "OFUGLB-e"))  # as drawn: the curve leaves the panel
        for name in theirs:
            curve = published.curve(figure, panel, algorithm=name)
            assert curve["bound"].to_list() == [False] * (len(curve) - 1) + [name in cut]
    fp, ucb = (published.last(figure, figure.panels[0], algorithm=spec).mean for spec in specs("GLMFP", "RandUCBLog"))
    assert (fp, ucb) == (pytest.approx(2.4, abs=0.1), pytest.approx(4.9, abs=0.1))  # by eye, apart from the table
    # seen red: curves without their label; `marks` of the figure's own name


@pytest.mark.parametrize(
    ("name", "theirs", "end"), [("fig3-logistic-inferred", "fig3-logistic", 2.4), ("h3-inferred", "h3", 17.4)]
)
def test_an_inferred_figure_says_so_and_has_the_published_curves(name, theirs, end):
    figure, paper = FIGURES[name], FIGURES[theirs]
    assert "inferred, not stated" in figure.notes[0].text
    assert "inferred" in figure.title
    drawn = [spec.name for spec in figure.algorithms if spec not in figure.extra]
    assert drawn == list(dict.fromkeys(drawn))
    assert set(drawn) == {spec.name for spec in paper.algorithms if spec not in paper.extra}
    for panel in figure.panels:
        of_paper = next(p for p in paper.panels if (p.drawn or p.name) == panel.name)
        same = {spec.name: spec for spec in of_paper.algorithms}
        for spec in figure.algorithms:
            curve = published.curve(figure, panel, algorithm=spec)
            assert curve.equals(published.curve(paper, of_paper, algorithm=same.get(spec.name, spec)))
            assert curve.is_empty() == (spec in figure.extra)
    fp = published.last(figure, figure.panels[0], algorithm=figure.algorithms[0])
    assert fp.mean == pytest.approx(end, abs=0.1)  # by eye, apart from the table
    # seen red: `published.curve` with the figure's own name; OFUGLB-e left out of the figure


def test_selecting():
    figure = figures.select(FIGURES["fig3-linear"], panels=["d=20"], algorithms=["LinTS", "LinFP: c=0.50"], rounds=7)
    (panel,) = figure.panels
    assert (panel.name, panel.rounds, panel.algorithms) == ("d=20", 7, specs("LinTS", "LinFP:c=0.5"))
    assert str(reference(panel)) == "LinFP:c=0.5"


def test_requests_add_up(tmp_path):
    whole = FIGURES["fig3-linear"]

    def ask(seed=0, **part):
        asked.record(tmp_path, figures.select(whole, **part), seed=seed)

    ask(panels=["d=40"])
    ask(panels=["d=10"], algorithms=["LinTS:c=0.5", "LinTS"])
    ask(panels=["d=10"], algorithms=["LinFP"])
    (request,) = asked.figures(tmp_path)
    assert request.seed == 0
    assert [(p.name, p.algorithms) for p in request.figure.panels] == [
        ("d=10", specs("LinFP", "LinTS", "LinTS:c=0.5")),
        ("d=40", whole.algorithms),
    ]
    ask(panels=["d=40"], rounds=50)
    (request,) = asked.figures(tmp_path)
    assert [p.rounds for p in request.figure.panels] == [20_000, 50]
    ask(panels=["d=20"], seed=3)  # another seed: nothing of the earlier ones
    (request,) = asked.figures(tmp_path)
    assert ([p.name for p in request.figure.panels], request.seed) == (["d=20"], 3)
    asked.record(tmp_path, replace(whole, name="another"), seed=0)
    assert [known.figure.name for known in asked.figures(tmp_path)] == ["fig3-linear", "another"]
