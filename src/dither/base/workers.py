"""Who computes: processes of this machine, or workers of a Dask or Ray cluster. joblib sends the calls.

loky    processes of this machine
dask    the workers of a Dask scheduler, or as many workers on this machine as there are jobs
ray     the same of Ray

A call may run twice, where its worker died on the way: Dask and Ray give it to another worker, up to RETRIES times.
What it returns comes back once. So calls must only return what they found, and the caller keeps it.
"""

import logging
import os
import pickle
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from dither.base import errors
from dither.base.interruption import Interruption

RETRIES = 3  # other workers that get a call whose worker died: Dask's number
PATIENCE = 5.0  # seconds for an address to answer
PIPES = ("inproc", "ucx", "ipc")  # schemes of addresses that are no host and port of TCP
HERE = "127.0.0.1"  # what is started here listens to this machine alone


@dataclass(frozen=True)
class Workers:
    """Who computes, and how many of them.

    backend : one of BACKENDS
    jobs : processes, where they are started here; a cluster has its own number
    cluster : the address of a scheduler that runs: "tcp://HOST:8786" (Dask), "HOST:6379" or "auto" (Ray); None: workers
        on this machine are started, and stopped at the end

    Raises LookupError for an unknown backend, and ValueError for settings that exclude each other.
    """

    backend: str = "loky"
    jobs: int = 1
    cluster: str | None = None

    def __post_init__(self) -> None:
        errors.among("backend", self.backend, BACKENDS)
        errors.at_least("jobs", self.jobs, 1)
        if self.cluster is not None and self.backend == "loky":
            raise ValueError(
                f"backend loky has no scheduler, got the address {self.cluster!r}: take backend dask or ray"
            )

    @property
    def alone(self) -> bool:
        """Whether this process computes everything itself."""
        return self.backend == "loky" and self.jobs == 1

    def results(
        self, calls: Iterable[Any], *, ordered: bool = False, ahead: int | str = "all", threads: bool = False
    ) -> Iterator[Any]:
        """What the calls (`delayed`) return, as they end; ordered: in the order of the calls.

        ahead : how many calls may be sent before they are computed; joblib also takes "all" and "2 * n_jobs"
        threads : threads of this process compute, whatever the backend is
        """
        joblib = _joblib()
        processes = self.backend == "loky" and not threads
        if processes and ahead == "all":  # loky forgets calls that wait behind its queue, and says so in a traceback
            ahead = "2 * n_jobs"
        here = joblib.parallel_config("threading", n_jobs=self.jobs) if threads else BACKENDS[self.backend](self)
        with Interruption(late=processes) as interruption, interruption.around(here):
            work = joblib.Parallel(
                return_as="generator" if ordered else "generator_unordered",
                batch_size=1,
                pre_dispatch=ahead,
            )
            try:
                with interruption.deaf() if processes else nullcontext():
                    answers = work(calls)
                yield from interruption.between(answers) if processes else answers
            except pickle.PicklingError as error:
                lines = [line for line in str(error.__cause__ or error).splitlines() if line.strip('" ')]
                raise TypeError(
                    f"a part cannot be sent to other processes ({lines[-1]}): write it in a file and name it "
                    "FILE.py:NAME, or compute in one process (jobs=1)"
                ) from None


def delayed(function: Callable[..., Any]) -> Callable[..., Any]:
    """`joblib.delayed`: the function as one that only notes its arguments."""
    return _joblib().delayed(function)


def _joblib() -> Any:
    return errors.imported("joblib", "joblib", extra="experiments")


def _loky(workers: Workers) -> Any:
    return _joblib().parallel_config("loky", n_jobs=workers.jobs, inner_max_num_threads=1)


@contextmanager
def _dask(workers: Workers) -> Iterator[None]:
    distributed, joblib = errors.imported("distributed", "Dask", extra="dask"), _joblib()
    joblib.register_parallel_backend("dither-dask", _dask_backend)
    with ExitStack() as stack:
        address = workers.cluster
        if address is None:
            quiet: dict[str, Any] = dict(dashboard_address=None, silence_logs=logging.CRITICAL)
            local = distributed.LocalCluster(n_workers=workers.jobs, threads_per_worker=1, host=HERE, **quiet)
            address = stack.enter_context(local).scheduler_address
        client = stack.enter_context(_connected(distributed.Client, address))
        stack.enter_context(joblib.parallel_config("dither-dask", client=client))
        yield


def _connected(client: Callable[..., Any], address: str) -> Any:
    _listened(address, "Dask scheduler")
    try:
        return client(address, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConnectionError(f"no Dask scheduler at {address}: start one, or name its address ({error})") from None


def _dask_backend(**options: Any) -> Any:
    from joblib._dask import DaskDistributedBackend

    class DaskBackend(DaskDistributedBackend):
        """joblib's own, with two cures.

        joblib's waits for ever for a call that killed every worker which had it. And where a cluster has one core, it
        computes in this process.
        """

        def effective_n_jobs(self, n_jobs: int) -> int:
            return max(2, super().effective_n_jobs(n_jobs))

        def submit(self, func: Any, callback: Any = None) -> Any:
            future = super().submit(func, callback)
            future.add_done_callback(lambda done: callback(done) if done.exception() else None)
            return future

        def retrieve_result_callback(self, out: Any) -> Any:
            return super().retrieve_result_callback(out.result() if hasattr(out, "result") else out)

    return DaskBackend(**options)


@contextmanager
def _ray(workers: Workers) -> Iterator[None]:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent to Ray's makers
    ray, joblib = errors.imported("ray", "Ray", extra="ray"), _joblib()
    joblib.register_parallel_backend("dither-ray", _ray_backend)
    ours = not ray.is_initialized()
    if ours:
        quiet: dict[str, Any] = dict(log_to_driver=False, logging_level="ERROR")
        if workers.cluster is None:
            ray.init(num_cpus=workers.jobs, include_dashboard=False, _node_ip_address=HERE, **quiet)
        else:
            _join(ray, workers.cluster, **quiet)
    again = {"max_restarts": -1, "max_task_retries": RETRIES}
    jobs = workers.jobs if workers.cluster is None else -1
    try:
        with joblib.parallel_config("dither-ray", n_jobs=jobs, ray_remote_args=again):
            yield
    finally:
        if ours:
            ray.shutdown()


def _listened(address: str, what: str) -> None:
    """Raise ConnectionError where nothing listens at the address: a library would wait for up to ten minutes."""
    scheme, _, place = address.rpartition("://")
    host, _, port = place.partition("/")[0].rpartition(":")
    if scheme in PIPES or not (host and port.isdecimal()):  # "auto", and what only the library can look up
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise ConnectionError(f"no {what} at {address}: start one, or name its address ({error})") from None


def _join(ray: Any, address: str, **quiet: Any) -> None:
    _listened(address, "Ray cluster")
    try:
        ray.init(address=address, **quiet)
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        told = " ".join(str(error).split())
        if "Failed to connect" in told or isinstance(error, ray.exceptions.AuthenticationError):  # it says not why
            raise ConnectionError(
                f"the Ray cluster at {address} does not let this process in ({told}): if it has a token, set "
                "RAY_AUTH_MODE=token and the same RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH here"
            ) from None
        raise ConnectionError(f"no Ray cluster at {address}: start one, or name its address ({error})") from None


def _ray_backend(**options: Any) -> Any:
    from ray.util.joblib.ray_backend import RayBackend

    class StreamingRay(RayBackend):
        """Ray's own, which can give each result as soon as it is there, and forbids it."""

        supports_return_generator = True

    return StreamingRay(**options)


BACKENDS: dict[str, Callable[[Workers], Any]] = {"loky": _loky, "dask": _dask, "ray": _ray}
