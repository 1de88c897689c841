"""How many files of the package a call enters: the walks by which a reader follows it.

    choose, update      of LinFP, and update of GLMFP
    Live                choose, without and with a budget, and reward, of LinFP on a ledger in memory
    evaluate            from a row of a decision log (the folder of `dither.log.Log`) to an estimate: by
                        `dither.ope.evaluate`, of the policy "uniform", by snips and ips; this is all of `dither
                        evaluate` but for asking and showing
    reproduce           from the command `dither reproduce` for one panel and algorithm to its picture

    python benchmarks/walks.py [--files]

A file counts where a function of it is entered; what importing runs does not. Counts depend on no clock.
"""

import argparse
import contextlib
import io
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np

import dither
from dither import cli

ROOT = str(Path(dither.__file__).parent)
BENCH = f"{ROOT}_bench"  # beside it


def walk(call: Callable[[], object]) -> Counter[str]:
    """File -> calls of its functions, in a second call: what the first alone does, such as imports, does not count."""
    found: Counter[str] = Counter()

    def enter(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith((f"{ROOT}/", f"{BENCH}/")) and code.co_name != "<module>":
            found[code.co_filename.removeprefix(f"{ROOT}/").removeprefix(f"{Path(BENCH).parent}/")] += 1

    call()
    sys.setprofile(enter)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def log(folder: Path, rows: int = 200) -> Path:
    """A log of LinFP with a floor, of six arms."""
    rng = np.random.default_rng(1)
    with dither.log.Log(folder / "log", bandit=dither.LinFP(dim=5, seed=0, floor=0.1)) as written:
        for _ in range(rows):
            shown = written.decide(rng.normal(size=(6, 5)))
            written.reward(shown.id, float(rng.random() < 0.3))
    return folder / "log"


def live(X: np.ndarray) -> dict[str, Counter[str]]:
    """Decisions and one reward of a live bandit, far from the next row of its state."""
    found, seconds = {}, {"snapshot_seconds": 1e6, "refresh_seconds": 1e6}
    for words, budgets in (("", None), (", budget", {"1": dither.Budget(5)})):
        with dither.Live(None, bandit=dither.LinFP(dim=5, seed=0), budgets=budgets, **seconds) as served:
            ids = [served.choose(X).id for _ in range(3)]
            served.reward(ids.pop(), 1.0)
            found[f"Live.choose{words}"] = walk(lambda served=served: served.choose(X))
            if budgets is None:
                found["Live.reward"] = walk(lambda served=served, ids=ids: served.reward(ids.pop(), 1.0))
    return found


def reproduce(folder: Path) -> None:
    """The command, quietly: two runs of LinFP in one panel."""
    words = "dither reproduce fig3-linear --panel d=10 --algorithm LinFP --runs 2 --rounds 100 --format png --out"
    before, sys.argv = sys.argv, [*words.split(), tempfile.mkdtemp(dir=folder)]
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            cli.main()
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"the command ended with {end.code}") from end
    finally:
        sys.argv = before


def walks() -> dict[str, Counter[str]]:
    """Name -> files of each walk."""
    X = np.random.default_rng(0).normal(size=(10, 5))
    linear, logistic = dither.LinFP(dim=5, seed=0), dither.GLMFP(dim=5, link="logit", seed=0)
    for bandit in (linear, logistic):
        bandit.update(X[0], 1.0)
    found = {
        "choose, LinFP": walk(lambda: linear.choose(X)),
        "update, LinFP": walk(lambda: linear.update(X[1], 1.0)),
        "update, GLMFP": walk(lambda: logistic.update(X[1], 1.0)),
    }
    found |= live(X)
    with tempfile.TemporaryDirectory() as folder:
        path = log(Path(folder))
        found["evaluate"] = walk(lambda: dither.ope.evaluate(path, ["uniform"], ["snips", "ips"]))
        found["reproduce"] = walk(lambda: reproduce(Path(folder)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", action="store_true", help="name the files, with the calls of their functions")
    asked = parser.parse_args()
    for name, files in walks().items():
        print(f"{name:20} {len(files):3} files")
        for file, calls in sorted(files.items()) if asked.files else ():
            print(f"    {calls:6} {file}")


if __name__ == "__main__":
    main()
