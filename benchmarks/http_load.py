"""Load on a ledger over HTTP, with the client beside it: latencies, and the memory of the service.

    python benchmarks/http_load.py                        a minute on SQLite
    python benchmarks/http_load.py --postgres             and on a server of PostgreSQL, which it starts
    python benchmarks/http_load.py --seconds 600 --rate 500
    python benchmarks/http_load.py --store shown          as one does where the arms are known by id

K = 50 arms of a catalogue by their ids, d = 32. A request comes every 1/rate seconds, whatever the answers before it
do: a decision with an id of its own, and when it is answered its reward. A latency counts from the moment at which the
request was due, so that a service that stands still is not spared. `dither serve` is a process of its own, and the
client is this one. The first two seconds warm up, and are left out.
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import dither
from dither.features import Numeric

K, PORT, WARM = 50, 8655, 2.0
ARMS = [f"arm{k}" for k in range(K)]


def begin(home):
    """A ledger with a catalogue: 7 fields of the context, 3 of the arm, all crosses and a constant: d = 32."""
    plain = Numeric(mean=0, scale=1)
    context, arm = {f"c{i}": plain for i in range(7)}, {f"a{i}": plain for i in range(3)}
    features = dither.Features(context=context, arm=arm, cross=[(c, a) for c in context for a in arm])
    rng = np.random.default_rng(0)
    stock = dither.Catalogue(features, {id: dict(zip(arm, rng.normal(size=3).tolist(), strict=True)) for id in ARMS})
    bandit = dither.LinFP(features=features, floor=0.05)
    assert bandit.dim == 32
    dither.Live(home, bandit=bandit, catalogue=stock).close()


class Connections:
    """Connections that stay open, of which a request takes one."""

    def __init__(self):
        self._free, self.opened = [], 0

    async def post(self, path, body):
        """The status and the body of an answer. One that the service has closed meanwhile, as idle, is opened anew."""
        data = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        while self._free:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                return await self._asked(self._free.pop(), head, data)
        self.opened += 1
        return await self._asked(await asyncio.open_connection("127.0.0.1", PORT), head, data)

    async def _asked(self, connection, head, data):
        reader, writer = connection
        writer.write(f"{head}content-length: {len(data)}\r\n\r\n".encode() + data)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", answer)[1])
        text = await reader.readexactly(length)
        self._free.append(connection)
        return int(answer[9:12]), text


class Load:
    """What was sent, and how long it took."""

    def __init__(self):
        self.connections, self.refused = Connections(), 0
        self.decisions, self.rewards = [], []

    async def one(self, i, due, context):
        status, text = await self.connections.post("/decide", {"id": f"v{i}", "context": context, "arms": ARMS})
        between = time.perf_counter()
        self.decisions.append(between - due)
        if status != 200:
            self.refused += 1
            return
        status, _ = await self.connections.post("/reward", {"id": json.loads(text)["id"], "reward": float(i % 2)})
        self.rewards.append(time.perf_counter() - between)
        self.refused += status != 200

    async def run(self, rate, seconds, pid):
        rng = np.random.default_rng(1)
        contexts = [{f"c{i}": x for i, x in enumerate(row)} for row in rng.normal(size=(1000, 7)).tolist()]
        begun, waiting, memory, spent = time.perf_counter(), set(), [], cpu(pid)
        own = time.process_time()
        for i in range(int(rate * seconds)):
            due = begun + i / rate
            if (pause := due - time.perf_counter()) > 0:
                await asyncio.sleep(pause)
            if i % (rate * 5) == 0:
                memory.append(resident(pid))
            task = asyncio.create_task(self.one(i, due, contexts[i % 1000]))
            waiting.add(task)
            task.add_done_callback(waiting.discard)
        await asyncio.gather(*waiting)
        memory.append(resident(pid))
        took = time.perf_counter() - begun
        return took, memory, (cpu(pid) - spent) / took, (time.process_time() - own) / took


def resident(pid):
    """MB of memory of the service and its workers."""
    total = 0
    for one in family(pid):
        with open(f"/proc/{one}/status") as file:
            total += int(re.search(r"VmRSS:\s+(\d+)", file.read())[1])
    return total / 1024


def cpu(pid):
    """Seconds of processor time of the service and its workers."""
    total = 0
    for one in family(pid):
        with open(f"/proc/{one}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def family(pid):
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


def measured(home, args):
    begin(home)
    command = [sys.executable, "-m", "dither", "serve", str(home), "--port", str(PORT)]
    command += ["--store", args.store, "--workers", str(args.workers)]
    service = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        load = Load()
        asyncio.run(ready(load))
        load = Load()
        took, memory, theirs, ours = asyncio.run(load.run(args.rate, args.seconds, service.pid))
    finally:
        service.send_signal(signal.SIGTERM)
        service.wait(60)
    warm = int(args.rate * WARM)
    for name, all_of_them in (("decide", load.decisions), ("reward", load.rewards)):
        p50, p99, p999, most = np.quantile(all_of_them[warm:], [0.5, 0.99, 0.999, 1]) * 1e3
        print(f"  {name}: p50 {p50:.1f} ms, p99 {p99:.1f} ms, p99.9 {p999:.1f} ms, most {most:.1f} ms")
    print(f"  {len(load.rewards) / took:.0f} decisions with rewards a second, {load.refused} refused")
    each = theirs * took / len(load.decisions) * 1e3
    print(f"  processor: service {theirs:.2f} cores, {each:.2f} ms a decision with its reward; client {ours:.2f} cores")
    third = len(memory) // 3
    print(f"  memory: {memory[third]:.0f} MB after a third, {memory[-1]:.0f} MB at the end")
    with dither.Live(home, learn=True) as live:
        live.learn()
        print(f"  in the ledger: {len(live.ledger)} decisions, {live.bandit.observations} rewards learnt")


async def ready(load):
    for _ in range(600):
        try:
            await asyncio.open_connection("127.0.0.1", PORT)
            break
        except OSError:
            await asyncio.sleep(0.1)
    context = {f"c{i}": 0.5 for i in range(7)}
    for i in range(20):
        await load.one(10**9 + i, time.perf_counter(), context)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--store", default="all")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.postgres:
            sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
            import databases

            server = databases.Server()
            try:
                print("PostgreSQL")
                measured(server.url(), args)
            finally:
                server.stop()
        else:
            print("SQLite")
            measured(Path(folder) / "a.db", args)


if __name__ == "__main__":
    main()
