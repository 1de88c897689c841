"""Blocks on processes, on Dask and on Ray, with a worker killed on the way.

The clusters are real, of two workers, and listen to this machine alone.
"""

import logging
import os
import platform
import signal
import socket
import sys
import time
import types

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from dither import ope
from dither.base import workers
from dither.base.workers import Workers, delayed
from dither.log import sources
from dither_bench.define import environments, figures
from dither_bench.keep.store import STORE, Store, of_panel
from dither_bench.run import run

FIGURE = figures.select(figures.find("fig3-linear"), panels=["d=10"], rounds=3000, algorithms=["LinFP", "EpsGreedy"])
CELLS = of_panel(FIGURE.panels[0], seed=0)
RUNS = 6


def rows(out):
    return pl.concat([Store(out / STORE).read(cell).sort("run", "round") for cell in CELLS.values()])


class Dask:
    """Two workers of Dask."""

    name = "dask"

    def __enter__(self):
        distributed = pytest.importorskip("distributed")
        self.local = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, silence_logs=logging.CRITICAL
        )
        self.address = self.local.scheduler_address
        self.client = distributed.Client(self.address, set_as_default=False)
        return self

    def __exit__(self, *error):
        self.client.close()
        self.local.close()

    def busy(self):
        """The ids of the processes that compute."""
        ids, at = self.client.run(os.getpid), self.client.processing()
        return [ids[worker] for worker, tasks in at.items() if tasks and worker in ids]

    def give_up_at_once(self, monkeypatch):
        monkeypatch.setattr(self.local.scheduler, "allowed_failures", 0)


class Ray:
    """Two workers of Ray. This process is connected to them."""

    name, address = "ray", "auto"

    def __enter__(self):
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        self.ray = pytest.importorskip("ray")
        quiet = dict(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        self.ray.init(num_cpus=2, _node_ip_address="127.0.0.1", **quiet)
        return self

    def __exit__(self, *error):
        self.ray.shutdown()

    def busy(self):
        """The ids of the processes that compute."""
        import psutil

        mine = psutil.Process().children(recursive=True)
        return [p.pid for p in mine if any("PoolActor.run_batch" in part for part in p.cmdline())]

    def give_up_at_once(self, monkeypatch):
        monkeypatch.setattr(workers, "RETRIES", 0)


@pytest.fixture(scope="module", params=[Dask, Ray], ids=["dask", "ray"])
def cluster(request):
    """A cluster that all tests share."""
    with request.param() as made:
        yield made


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed")
    run.reproduce(FIGURE, out=out, runs=RUNS, block=1)
    return rows(out)


def test_a_killed_worker_loses_nothing_and_nothing_is_there_twice(cluster, undisturbed, tmp_path):
    killed, seen = [], []

    def tell(done, total):
        seen.append(done / total)
        busy = cluster.busy() if done > 0 and not killed else []
        if busy:
            os.kill(busy[0], signal.SIGKILL)
            killed.append(busy[0])

    how = dict(runs=RUNS, block=1, backend=cluster.name, cluster=cluster.address)
    assert run.reproduce(FIGURE, out=tmp_path, on_progress=tell, **how) == RUNS
    assert len(killed) == 1
    assert seen == sorted(seen)
    assert seen[-1] == 1
    assert_frame_equal(rows(tmp_path), undisturbed)
    assert len(list(tmp_path.rglob("*.parquet"))) == RUNS * len(CELLS)
    assert run.reproduce(FIGURE, out=tmp_path, **how) == 0
    # seen red: without `max_task_retries` (Ray); the last block of the list not sent


def test_a_call_that_kills_every_worker_ends_with_an_error(cluster, monkeypatch):
    cluster.give_up_at_once(monkeypatch)

    def die(me):
        os.kill(me or os.getpid(), signal.SIGKILL)

    with pytest.raises(Exception, match=r"(?i)die|kill|unavailable|actor"):
        list(Workers(cluster.name, cluster=cluster.address).results([delayed(die)(0)]))
    # seen red: joblib's own backend of Dask, which was still waiting after a minute


def test_results_keep_the_order_of_the_calls_and_errors_come_through(cluster):
    def reciprocal(x):
        time.sleep(0.5 if x == 1 else 0)  # the first call ends last
        return 1 / x

    here = Workers(cluster.name, cluster=cluster.address)
    found = here.results((delayed(reciprocal)(x) for x in range(1, 7)), ordered=True, ahead=2)
    assert list(found) == [1 / x for x in range(1, 7)]  # seen red: answers in the order in which they come
    with pytest.raises(ZeroDivisionError):
        list(here.results(delayed(reciprocal)(x) for x in (1, 0)))


def test_a_log_in_parts_is_evaluated_to_the_same_bits(cluster, tmp_path, monkeypatch):
    """The workers have this machine's BLAS, and one thread of it, as this process has in tests."""
    rng, n, K = np.random.default_rng(0), 2000, 4
    Q = rng.dirichlet(np.ones(K), size=n)
    arm = rng.integers(K, size=n)
    frame = pl.DataFrame(
        {"arm": arm, "propensity": np.full(n, 1 / K), "reward": rng.normal(size=n) + arm, "user": arm % 3, "Q": Q}
    )
    (tmp_path / "log").mkdir()
    for i, rows in enumerate(frame.iter_slices(700)):
        rows.write_parquet(tmp_path / "log" / f"part-{i}.parquet")
    monkeypatch.setattr(sources, "ROWS", 300)
    asked = dict(policies=["column:Q", "uniform", "arm:2"], estimators=["snips", "ips"], arms=K, interval="bootstrap")
    here = ope.evaluate(tmp_path / "log", **asked)
    there = ope.evaluate(tmp_path / "log", backend=cluster.name, scheduler=cluster.address, **asked)
    assert there.estimates == here.estimates
    assert there.gaps == here.gaps
    assert (there.report.read, there.report.used) == (n, n)
    # seen red: answers in the order in which they come


@pytest.mark.parametrize("name", ["dask", "ray"])
def test_a_backend_that_is_not_installed_names_its_extra(dither, tmp_path, monkeypatch, name):
    monkeypatch.setitem(sys.modules, {"dask": "distributed", "ray": "ray"}[name], None)
    code, _, said = dither("reproduce", "h1", "--runs", 1, "--rounds", 9, "--backend", name, "--out", tmp_path)
    assert code == 2
    assert f"dither[{name}]" in said  # seen red: the plain ImportError (Dask)


def test_a_file_that_a_worker_lacks_is_told_with_the_worker(cluster, tmp_path, monkeypatch):
    """Seen red without the note: as if the file lacked at the command."""
    monkeypatch.chdir(tmp_path)
    mine = tmp_path / "mine.py"
    mine.write_text("from dither.policies import UCB as Mine\n")
    figure = figures.adhoc(environments.describe("linear"), ["mine.py:Mine:beta=1"], rounds=30, runs=2)

    def lack(done, total):
        mine.unlink(missing_ok=True)

    how = dict(runs=2, backend=cluster.name, cluster=cluster.address, on_progress=lack)
    with pytest.raises(FileNotFoundError, match=r"there is no file .*mine\.py") as raised:
        run.reproduce(figure, out=tmp_path / "r", **how)
    (note,) = raised.value.__notes__
    assert note.startswith(f"at the worker {platform.node()}, which needs the same files in the same places")


@pytest.mark.parametrize(
    ("name", "address", "what"),
    [
        ("dask", "tcp://127.0.0.1:1", "Dask scheduler"),
        ("dask", "127.0.0.1:1", "Dask scheduler"),
        ("ray", "127.0.0.1:1", "Ray cluster"),
        ("ray", "ray://localhost:1", "Ray cluster"),
        ("ray", "nobody.invalid:6379", "Ray cluster"),
        ("ray", "127.0.0.1:99999", "Ray cluster"),
    ],
)
def test_an_address_is_looked_at_before_a_library_waits_for_it(monkeypatch, name, address, what):
    """Seen red without the look: Ray says nothing for ten minutes."""

    def waits(*given, **how):
        raise AssertionError("the library was asked")

    module = {"dask": "distributed", "ray": "ray"}[name]
    monkeypatch.setitem(sys.modules, module, types.SimpleNamespace(Client=waits, init=waits, is_initialized=lambda: 0))
    with pytest.raises(ConnectionError, match=f"no {what} at {address}: start one, or name its address"):
        list(Workers(name, cluster=address).results([delayed(abs)(1)]))


def test_a_cluster_that_lets_nobody_in_is_told_with_its_token():
    """Ray tells of a wrong token in its log alone. Seen red with 'no Ray cluster'."""

    def refuses(**how):
        raise ConnectionError("Failed to connect to Ray cluster")

    kinds = types.SimpleNamespace(RayError=RuntimeError, AuthenticationError=PermissionError)
    ray = types.SimpleNamespace(init=refuses, exceptions=kinds)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ConnectionError, match="RAY_AUTH_MODE=token and the same RAY_AUTH_TOKEN"):
            workers._join(ray, address)


def test_an_address_at_which_nothing_listens_is_an_error(dither, tmp_path):
    pytest.importorskip("distributed")
    command = ("reproduce", "h1", "--runs", 1, "--rounds", 9, "--out", tmp_path)
    code, _, said = dither(*command, "--backend", "dask", "--cluster", "nowhere")
    assert code == 2
    assert "no Dask scheduler at nowhere" in said  # seen red: the error of Dask itself
    code, _, said = dither(*command, "--cluster", "tcp://127.0.0.1:1")
    assert code == 2
    assert "take backend dask or ray" in said
    code, _, said = dither(*command, "--backend", "dusk")
    assert code == 2
    assert "dask" in said
