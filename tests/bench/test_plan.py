"""Several figures at once: the plan, what it costs, who computes which part."""

import itertools
from dataclasses import replace

import pytest

from dither.base.workers import Workers
from dither_bench.commands import overall
from dither_bench.define import figures
from dither_bench.define.environments import outline
from dither_bench.keep.store import STORE
from dither_bench.plan import calibration, costs, plan
from dither_bench.plan.plan import Shard
from dither_bench.run import computing, run

SMALL = ["--rounds", "60", "--algorithm", "LinFP", "--algorithm", "Greedy", "--panel", "d=10"]


def small(name, *, rounds=60):
    return figures.select(figures.find(name), panels=["d=10"], algorithms=["LinFP", "Greedy"], rounds=rounds)


def stored(out):
    return {path.relative_to(out): path.stat().st_mtime_ns for path in (out / STORE).rglob("*.parquet")}


def test_all_are_all_figures_but_those_left_out():
    found = overall.named(["all"], without=["fig2b", "fig1"])
    assert set(found) == {"fig2a", *figures.FIGURES} - {"fig2b"}
    assert overall.named(["h1", "all", "h1"], without=()).count("h1") == 1
    assert overall.named(["h2", "h1"], without=()) == ["h2", "h1"]  # seen red: the order of the table
    with pytest.raises(LookupError, match="fig2b"):
        overall.named(["all"], without=["fig2c"])
    with pytest.raises(ValueError, match="no figure is left"):
        overall.named(["h1"], without=["h1"])


def test_a_plan_counts_what_is_there_and_writes_nothing(dither, tmp_path):
    out = tmp_path / "out"
    code, shown, _ = dither("reproduce", "fig3-linear", "h1", *SMALL, "--runs", 3, "--out", out, "--plan")
    assert code == 0
    assert not out.exists()  # seen red: `record` in `of_figures`
    lines = {line.split()[0]: line.split() for line in shown.splitlines() if line.strip()}
    assert lines["fig3-linear"][1:4] == lines["h1"][1:4] == ["1", "0", "6"]
    assert lines["all"][3:6] == ["2", "0", "12"]
    run.reproduce(small("h1"), out=out, runs=1)
    _, shown, _ = dither("reproduce", "fig3-linear", "h1", *SMALL, "--runs", 3, "--out", out, "--plan")
    lines = {line.split()[0]: line.split() for line in shown.splitlines() if line.strip()}
    assert lines["h1"][1:4] == ["1", "2", "4"]
    assert lines["fig3-linear"][1:4] == ["1", "0", "6"]
    # seen red: `there` as what is missing


def test_an_interrupted_command_over_figures_goes_on(dither, tmp_path, monkeypatch):
    calls, real = [], computing.simulate

    def until(last):
        def simulate(env, specs, *, runs, **more):
            calls.append((env.contexts, list(runs)))
            if len(calls) == last:
                raise KeyboardInterrupt
            return real(env, specs, runs=runs, **more)

        return simulate

    command = ("reproduce", "fig3-linear", "h1", *SMALL, "--runs", 4, "--block", 2, "--out", tmp_path)
    monkeypatch.setattr(computing, "simulate", until(4))
    code, said, _ = dither(*command)
    assert code == 130
    assert "results are kept in" in " ".join(said.split())
    before = stored(tmp_path)
    assert len(before) == 6  # three blocks of two algorithms
    calls.clear()
    monkeypatch.setattr(computing, "simulate", until(None))
    code, said, _ = dither(*command)
    assert code == 0
    assert calls == [(1, [2, 3])]  # the block in which it was interrupted
    assert {path: when for path, when in stored(tmp_path).items() if path in before} == before
    assert {f"{name}.{kind}" for name in ("h1", "fig3-linear") for kind in ("png", "csv")} <= {
        path.name for path in tmp_path.iterdir()
    }
    # seen red: all blocks kept at the end; `show` computing with other settings


def test_what_cannot_run_here_is_left_out_of_all_and_not_of_its_name(dither, tmp_path, monkeypatch):
    monkeypatch.setenv("DITHER_DATA", str(tmp_path / "nowhere"))
    kept = overall.possible([small("h1"), figures.find("fig3-neural")])
    assert [figure.name for figure in kept] == ["h1"]
    code, _, said = dither("reproduce", "fig3-neural", "h1", "--runs", 1, "--out", tmp_path, "--plan")
    assert code == 2
    assert "nowhere" in said  # seen red: `possible` for names too


class Clock:
    """Processor time that passes as `costs` says, times a ratio for the algorithm."""

    def __init__(self, ratios, drawing):
        self.now, self.ratios, self.drawing = 0.0, ratios, drawing

    def process_time(self):
        return self.now

    def draw(self, env, runs, seed):
        return self.drawing

    def simulate(self, env, specs, *, runs, rounds, seed, on_progress):
        (spec,) = set(specs.values())  # copies, of which each takes its time
        self.now += 100.0  # loading and setting up
        for done in range(200, rounds + 1, 200):
            more = costs.microseconds(self.outline, spec, rounds=done)
            more -= costs.microseconds(self.outline, spec, rounds=done - 200) if done > 200 else 0.0
            self.now += 1e-6 * runs * (self.ratios[spec.name] * len(specs) * more + self.drawing * 200)
            on_progress(done * runs, rounds * runs)


def test_a_short_run_sets_the_estimate_right(tmp_path, monkeypatch):
    """A machine on which the estimates are off by known ratios: the plan finds its times, for other d and runs too."""
    ratios = {"LinFP": 3.0, "GLMFP": 0.25, "LinTS": 7.0}
    clock = Clock(ratios, drawing=40.0)
    monkeypatch.setattr(calibration, "time", clock)
    monkeypatch.setattr(calibration, "_draw", clock.draw)
    monkeypatch.setattr(calibration, "simulate", clock.simulate)
    figure = figures.select(figures.find("fig3-logistic"), algorithms=["LinFP", "GLMFP", "LinTS"], rounds=10_000)
    (part,) = plan.of_figures([figure], out=tmp_path, runs=40)
    clock.outline = outline(figure.panels[0].env)  # the least d
    speeds = calibration.measure(part.blocks, Workers(), tell=lambda done, total: None)
    share = 40.0 / costs.drawing(clock.outline, rounds=1)
    for block in part.blocks:
        env, n = outline(block.panel.env), 1e-6 * len(block.runs)
        specs = [cell.algorithm for cell in block.cells.values()]
        own = [ratios[spec.name] * costs.microseconds(env, spec, rounds=10_000) for spec in specs]
        assert speeds.seconds(block) == pytest.approx(n * (sum(own) + share * costs.drawing(env, rounds=10_000)))
    assert clock.now < 3 * (100 + 2 * calibration.MOST)  # it stopped early: all of it takes thousands of seconds
    # seen red: the drawing not taken off; time counted from before the first round; all rounds run


def test_kinds_are_few_and_only_those_that_are_worth_it(tmp_path):
    figure = figures.select(figures.find("h2"), algorithms=["LinFP", "LinFP:c=0.3", "LinPHE", "LinPHE:preset=as_run"])
    (part,) = plan.of_figures([figure], out=tmp_path, runs=30)
    probes = list(calibration._probes(part.blocks))
    assert [probe.cell.env["dim"] for probe in probes] == [10, 10, 10]  # seen red: a kind for each c; the most features
    (part,) = plan.of_figures([replace(figure, panels=figure.panels[:1])], out=tmp_path, runs=1)
    assert list(calibration._probes(part.blocks)) == []  # seen red: without WORTH
    assert calibration.Speeds().seconds(part.blocks[0]) == pytest.approx(plan.seconds(part.blocks[0]))


def test_a_kind_is_measured_beside_as_many_as_share_its_model(tmp_path):
    names = ["GLMFP", "LogTS", "LogGreedy:lam=1", "LinFP"]
    (part,) = plan.of_figures([figures.select(figures.find("fig3-logistic"), algorithms=names)], out=tmp_path, runs=5)
    found = {probe.cell.algorithm.name: probe.copies for probe in calibration._probes(part.blocks)}
    assert found == {"GLMFP": 2, "LogTS": 2, "LogGreedy": 1, "LinFP": 1}


def test_a_real_look_ends_and_measures(tmp_path):
    (part,) = plan.of_figures([figures.select(figures.find("h1"), algorithms=["LinFP"])], out=tmp_path, runs=10)
    speeds = calibration.measure(part.blocks, Workers(), tell=lambda done, total: None)
    assert set(speeds.ratios) == {("linear", True), ("linear", True, "LinFP", "paper", ())}
    assert all(0 < ratio < 1000 for ratio in speeds.ratios.values())
    # seen red: the ratio of the drawing not kept


def runs_of(chosen, shard, out, **more):
    """(figure, panel, algorithm, run) of a shard."""
    return [
        (part.figure.name, block.panel.name, name, r)
        for part in plan.of_figures(chosen, out=out, shard=shard, **more)
        for block in part.blocks
        for name, r in itertools.product(block.cells, block.runs)
    ]


@pytest.mark.parametrize("of", [1, 3, 4, 50])
def test_shards_are_all_runs_and_share_none(of):
    chosen = [small("h1"), figures.find("fig3-linear")]
    wanted = {"h1": 95, "fig3-linear": 40}
    found = []
    for k in range(of):
        for name, runs in plan._shares(chosen, wanted, size=10, shard=Shard(k + 1, of)).items():
            found += [(name, panel, r) for panel, those in runs.items() for r in those]
    assert sorted(found) == sorted(
        (figure.name, panel.name, r) for figure in chosen for panel in figure.panels for r in range(wanted[figure.name])
    )
    # seen red: the end of a file in place of its middle (the last file lost); `>=` for `==`


def test_shards_cost_alike_and_do_not_depend_on_what_is_stored(tmp_path):
    chosen = [figures.select(figures.find("fig3-linear"), algorithms=["LinFP", "Greedy"], rounds=60)]
    before = runs_of(chosen, Shard(2, 3), tmp_path, runs=40)
    work = []
    for k in (1, 2, 3):
        (part,) = plan.of_figures(chosen, out=tmp_path, runs=40, shard=Shard(k, 3))
        work.append(sum(map(plan.seconds, part.blocks)))
    largest = max(costs.seconds(panel, algorithms=panel.algorithms, runs=10) for panel in chosen[0].panels)
    assert max(work) - min(work) <= 2 * largest
    run.reproduce(chosen[0], out=tmp_path, runs=40, shard=Shard(1, 3))
    assert runs_of(chosen, Shard(2, 3), tmp_path, runs=40) == before
    assert runs_of(chosen, Shard(1, 3), tmp_path, runs=40) == []
    # seen red: every file taken to cost the same; the row made of what is missing


@pytest.mark.parametrize("text", ["0/4", "5/4", "2", "a/b", "1/0", "-1/2", ""])
def test_a_shard_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match="K/N"):
        Shard.parse(text)  # seen red: K above N


def test_several_workers_begin_with_what_takes_longest(tmp_path, monkeypatch):
    seen = []

    def elsewhere(found, meter, workers):
        seen.extend(found)
        yield from ()

    monkeypatch.setattr(run, "_elsewhere", elsewhere)
    figure = figures.select(figures.find("fig3-linear"), algorithms=["LinFP"], rounds=60)
    run.reproduce(figure, out=tmp_path, runs=10, jobs=2)
    assert [block.panel.name for block in seen] == ["d=40", "d=20", "d=10"]  # seen red: unsorted
