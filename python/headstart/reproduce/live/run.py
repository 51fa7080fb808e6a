"""Carries out runs, some side by side, and collects what the wire says of them."""

import itertools
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from headstart.reproduce.live import wire
from headstart.reproduce.live.plan import (
    COMPARED_PORT,
    LOADED_STARTUP,
    OTHER_PORT,
    LiveError,
    Plan,
    plan,
)
from headstart.scenario_file import ScenarioFile

SIDE_BY_SIDE_BITS_PER_S = 50e6
"""Emulations side by side do not disturb each other up to this rate in all (docs/path.md)."""

SIDE_BY_SIDE_MOST = 4

TRIES = 3
"""So often a run is made whose path was late, or whose start-up's name was taken."""

TAKEN = ("is registered in the kernel already", "failed to attach struct_ops")
"""How `headstart` says that another one has loaded a start-up of this name, or does so just now."""

TAKEN_PATIENCE_S = 20.0
"""How long is waited for it each time."""

CPU_EVERY_S = 0.1

FIRST_LANE, LANES = 16, 240
"""`headstart path --lane`: the first ones are those of comparisons and tests."""

ENDS = Path(__file__).with_name("ends.py")

_SAID = re.compile(r"(\d+\.\d+) \d+ -> \S*:(\d+) su_\S+ \S+: ([^,(]+?)(?:, cwnd (\d+) pkts)?[,(\s]")


@dataclass(frozen=True)
class LiveResult:
    """What was measured on the live kernel; the frames are those of `headstart.SimResult`.

    In all of them `variant` is the position of the scenario, `startup` the start-up that was
    compared, `repeat` the repeat.

    Attributes:
        variants: One row a scenario: `variant`.
        transfers: One row a transfer, see `wire.TRANSFERS`. Times are the wire's, in ms.
        packets: One row a packet and what became of it, if asked for, see `wire.PACKETS`.
        queues: The bottleneck over time, if asked for: `dropped_pkts`, `out_pkts`, `busy_ms`.
        cpu: Each 100 ms, `t_ms`: seconds of CPU so far of the process that sends (`sender_s`), of
            the one that receives (`receiver_s`), and of the router (`router_s`), in whose threads
            the kernel handles most of what arrives, such as the sender's ACKs.
        warnings: What a reader has to know.
    """

    variants: pl.DataFrame
    transfers: pl.DataFrame
    packets: pl.DataFrame
    queues: pl.DataFrame
    cpu: pl.DataFrame
    warnings: list[str]


@dataclass(frozen=True)
class Job:
    """One run to be made."""

    variant: int
    repeat: int
    plan: Plan
    packets: bool
    queues: bool
    whole: bool


@dataclass
class Came:
    """What came of a run."""

    job: Job
    frames: dict[str, pl.DataFrame] = field(default_factory=dict)
    invalid: str = ""


def live_sweep(
    program: str,
    scenarios: Sequence[ScenarioFile],
    *,
    repeat: int,
    seed: int,
    packets: bool = False,
    queues: bool = False,
    whole: bool = False,
) -> LiveResult:
    """Carries out the traffic of each scenario under each of its start-ups, `repeat` times.

    Runs of one start-up follow each other, because its name is the machine's; those of different
    ones are side by side where the rates allow. A run whose path was not the one asked for, because
    the machine was too busy, is made again, and left out at last: `warnings` counts them. A run
    ends when all its transfers with an end are over, or, if `whole`, with its scenario.

    Raises:
        LiveError: The live kernel or this machine cannot do it; the text says why and what to do.
    """
    if os.geteuid() != 0:
        raise LiveError("the live kernel is measured by root only: run it with sudo")
    jobs = [
        Job(variant, number, plan(scenario, startup, seed + number), packets, queues, whole)
        for number in range(repeat)
        for variant, scenario in enumerate(scenarios)
        for startup in scenario["compare"]["startups"]
    ]
    came = _Crew(program, jobs).run()
    good = [one for one in came if not one.invalid]
    if not good:
        raise LiveError(f"none of {len(jobs)} runs is valid: {came[0].invalid}")
    warnings = []
    if len(good) < len(came):
        left_out = [one for one in came if one.invalid]
        warnings.append(
            f"{len(left_out)} of {len(came)} runs on the live kernel are left out, for the machine "
            f"was too busy to be the path asked for: {left_out[0].invalid}"
        )
    tables = {
        name: pl.concat([one.frames[name] for one in good])
        for name in ("transfers", "packets", "queues", "cpu")
    }
    variants = pl.DataFrame({"variant": range(len(scenarios))}, schema={"variant": pl.UInt32})
    return LiveResult(variants=variants, warnings=warnings, **tables)


class _Crew:
    """Makes the jobs, as many side by side as is allowed, in an order of their own."""

    def __init__(self, program: str, jobs: Sequence[Job]) -> None:
        self.program = program
        self.jobs = jobs
        self.waiting = list(jobs)
        self.running: list[Job] = []
        self.came: list[Came] = []
        self.children: list[subprocess.Popen] = []
        self.turn = threading.Condition()
        # A lane of its own for each run: start-ups that are loaded at the same time share one path
        # memory, and what a run has learnt of its addresses would be known to the next.
        self.lanes = itertools.count(os.getpid() * 16)

    def run(self) -> list[Came]:
        """All jobs, in the order in which they were given."""
        with ThreadPoolExecutor(SIDE_BY_SIDE_MOST) as pool:
            workers = [pool.submit(self._work) for _ in range(SIDE_BY_SIDE_MOST)]
            try:
                with _terminable():
                    for worker in workers:
                        worker.result()
            except BaseException:
                self._stop()
                raise
        order = {id(job): place for place, job in enumerate(self.jobs)}
        return sorted(self.came, key=lambda one: order[id(one.job)])

    def _stop(self) -> None:
        """Ctrl-C, or a run that failed: no more runs, and those under way end."""
        with self.turn:
            self.waiting.clear()
            self.turn.notify_all()
            for child in self.children:
                child.terminate()

    def _next(self) -> Job | None:
        rate = sum(job.plan.rate_bits_per_s for job in self.running)
        loaded = {job.plan.startup for job in self.running}
        for job in self.waiting:
            fits = not self.running or rate + job.plan.rate_bits_per_s <= SIDE_BY_SIDE_BITS_PER_S
            name = job.plan.startup
            if fits and not (name.startswith(LOADED_STARTUP) and name in loaded):
                return job
        return None

    def _work(self) -> None:
        while True:
            with self.turn:
                while self.waiting and (job := self._next()) is None:
                    self.turn.wait()
                if not self.waiting:
                    return
                self.waiting.remove(job)
                self.running.append(job)
            try:
                self.came.append(self._run(job))
            finally:
                with self.turn:
                    self.running.remove(job)
                    self.turn.notify_all()

    def _run(self, job: Job) -> Came:
        """One job, made again where its path was late."""
        came = Came(job)
        for _ in range(TRIES):
            with tempfile.TemporaryDirectory(prefix="headstart-live-") as folder:
                came = self._try(job, Path(folder))
            if not came.invalid:
                break
        return came

    def _try(self, job: Job, folder: Path) -> Came:
        patience_end = time.monotonic() + TAKEN_PATIENCE_S
        while True:
            document, cpu, words = self._path(job, folder)
            if document is not None:
                break
            if not any(taken in words for taken in TAKEN) or time.monotonic() > patience_end:
                raise LiveError(f"headstart path failed: {words}")
            time.sleep(1.0)
        path = document["path"]
        if not path["valid"]:
            return Came(job, invalid="; ".join(path["invalid_because"]))
        told = json.loads((folder / "told.json").read_text(encoding="utf-8"))
        if told["failures"]:
            raise LiveError(f"a connection failed: {told['failures'][0]}")
        return Came(job, _frames(job, folder, told, cpu))

    def _path(
        self, job: Job, folder: Path
    ) -> tuple[dict[str, Any] | None, list[dict[str, float]], str]:
        """Runs `headstart path`: its document, the CPU used, its last words if it failed."""
        ends = job.plan.ends | {
            "told": str(folder / "told.json"),
            "server_ended": str(folder / "server.ended"),
            "whole": job.whole,
        }
        (folder / "plan.json").write_text(json.dumps(ends), encoding="utf-8")
        lane = FIRST_LANE + next(self.lanes) % LANES
        servers = _servers(self.program, job.plan, folder)
        command = [
            *(self.program, "path", *job.plan.path, "--lane", str(lane), "--json", "--quiet"),
            *("--log", str(folder / "log.parquet")),
            # The client waits for the other one, and longer than headstart path would.
            *("--server", servers, "--server-port", str(OTHER_PORT)),
            *("--", sys.executable, "-S", str(ENDS), "client", str(folder / "plan.json")),
        ]
        with (folder / "path.err").open("w") as errors:
            child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
            with self._known(child), _Cpu(child.pid) as cpu:
                output, _ = child.communicate()
        if child.returncode != 0:
            return None, [], _last_words(folder) or f"exit code {child.returncode}"
        return json.loads(output), cpu.samples, ""

    @contextmanager
    def _known(self, child: subprocess.Popen) -> Iterator[None]:
        """Keeps the child where `_stop` finds it, and ends it on every way out."""
        with self.turn:
            self.children.append(child)
        try:
            yield
        finally:
            if child.poll() is None:
                child.terminate()
                child.wait()
            with self.turn:
                self.children.remove(child)


@contextmanager
def _terminable() -> Iterator[None]:
    """A termination ends like Ctrl-C: with nothing left behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    earlier = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    for number, _ in earlier:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in earlier:
            signal.signal(number, handler)


def _last_words(folder: Path) -> str:
    """What the programs said before they failed."""
    files = [folder / "server.err", folder / "path.err"]
    said = [
        line
        for file in files
        if file.exists()
        for line in file.read_text(encoding="utf-8").splitlines()
        if line.startswith("headstart") or "Error" in line
    ]
    return " | ".join(said)


def _servers(program: str, run: Plan, folder: Path) -> str:
    """The shell line of the server's side."""
    python = [sys.executable, "-S", str(ENDS)]
    server = shlex.join([*python, "server", str(COMPARED_PORT)])
    if run.startup.startswith(LOADED_STARTUP):
        params = [["--param", f"{name}={value}"] for name, value in run.params.items()]
        words = [program, "exec", "--startup", run.startup, "--memory", "none", "--verbose"]
        words += [word for param in params for word in param]
        server = f"{shlex.join(words)} -- {server}"
    errors = shlex.quote(str(folder / "server.err"))
    return (
        f"exec 2>{errors}; {shlex.join([*python, 'prepare', str(folder / 'plan.json')])} && "
        f"{{ {shlex.join([*python, 'server', str(OTHER_PORT)])} & {server}; "
        f"touch {shlex.quote(str(folder / 'server.ended'))}; wait; }}"
    )


class _Cpu:
    """Looks at what the processes below one have used, until they end."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.samples: list[dict[str, float]] = []
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "_Cpu":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join()

    def _look(self) -> None:
        most = {"sender_s": 0.0, "receiver_s": 0.0, "router_s": 0.0}
        while not self.done.wait(CPU_EVERY_S):
            used = {"sender_s": 0.0, "receiver_s": 0.0, "router_s": _used_s(self.pid)}
            for pid in _below(self.pid):
                role = _role(pid)
                if role is not None:
                    used[role] += _used_s(pid)
            # What has ended is not seen any more: the most that was.
            most = {name: max(value, used[name]) for name, value in most.items()}
            self.samples.append({"at_ns": float(time.monotonic_ns()), **most})


def _role(pid: int) -> str | None:
    """Which of the ends a process is."""
    words = _words(pid)
    if str(ENDS) not in words or "exec" in words or "path" in words:
        return None
    role = words[words.index(str(ENDS)) + 1]
    return {"server": "sender_s", "client": "receiver_s"}.get(role)


def _words(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")
    except OSError:
        return []
    return text.rstrip("\0").split("\0")


def _of_tasks(pid: int, file: str) -> Iterator[str]:
    """What stands in `/proc/PID/task/*/FILE`. A process or thread that has ended has nothing."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return
    for task in tasks:
        try:
            yield (task / file).read_text(encoding="ascii")
        except OSError:
            continue


def _used_s(pid: int) -> float:
    """CPU time of all threads of a process."""
    return sum(int(text.split()[0]) for text in _of_tasks(pid, "schedstat") if text) / 1e9


def _below(pid: int) -> Iterator[int]:
    """The processes that a process has started, and those that they have."""
    for text in _of_tasks(pid, "children"):
        for child in map(int, text.split()):
            yield child
            yield from _below(child)


def _frames(
    job: Job, folder: Path, told: dict[str, Any], cpu: list[dict[str, float]]
) -> dict[str, pl.DataFrame]:
    log = pl.read_parquet(folder / "log.parquet")
    found = wire.connections(log)
    exits = _exits(folder / "server.err")
    begin_ns = told["begin_ns"]
    transfers, packets = [], []
    for one in told["transfers"]:
        connection = found.get(one["port"])
        if connection is None or (one["bytes"] == 0 and connection.data.is_empty()):
            continue  # an upload, or a connection that the end of the run cut off
        row = wire.transfer_row(
            one,
            connection,
            begin_ns,
            told["received"].get(str(one["port"]), 0),
            exits,
            from_the_sender=job.plan.from_the_sender,
        )
        transfers.append(row)
        if job.packets and one["turn"] == 0:
            packets.append(wire.packet_rows(one, connection, begin_ns))
    names = {"startup": job.plan.startup, "repeat": job.repeat}
    frames = {
        "transfers": pl.DataFrame(
            [names | row for row in transfers], schema=wire.TRANSFERS, orient="row"
        ),
        "packets": _labelled(pl.concat(packets), names).cast(wire.PACKETS)
        if packets
        else pl.DataFrame(schema=wire.PACKETS),
        "queues": _queues(job, log, begin_ns, names),
        "cpu": _cpu(cpu, begin_ns, names),
    }
    number = pl.lit(job.variant, dtype=pl.UInt32).alias("variant")
    return {name: frame.select(number, pl.all()) for name, frame in frames.items()}


def _cpu(samples: list[dict[str, float]], begin_ns: int, names: dict[str, Any]) -> pl.DataFrame:
    schema = dict.fromkeys(("at_ns", "sender_s", "receiver_s", "router_s"), pl.Float64)
    frame = pl.DataFrame(samples, schema=schema, orient="row")
    frame = frame.select(
        ((pl.col("at_ns") - begin_ns) / wire.MS_NS).alias("t_ms"), pl.exclude("at_ns")
    )
    return _labelled(frame, names).cast({"repeat": pl.UInt32})


def _labelled(frame: pl.DataFrame, names: dict[str, Any]) -> pl.DataFrame:
    return frame.select(*(pl.lit(value).alias(name) for name, value in names.items()), pl.all())


def _queues(job: Job, log: pl.DataFrame, begin_ns: int, names: dict[str, Any]) -> pl.DataFrame:
    if not job.queues:
        log = log.clear()
    until_ms = 1000 * job.plan.until_s if job.queues else 0.0
    rows = wire.queue_rows(
        log, begin_ns, until_ms, job.plan.sample_ms, max(job.plan.rate_bits_per_s, 1.0)
    )
    return _labelled(rows, names).cast({"repeat": pl.UInt32})


def _exits(file: Path) -> list[wire.Exit]:
    """What the start-up said on standard error (`headstart exec --verbose`)."""
    if not file.exists():
        return []
    said = []
    for line in file.read_text(encoding="utf-8").splitlines():
        found = _SAID.match(line)
        if found:
            cwnd = int(found[4]) if found[4] else None
            said.append(wire.Exit(float(found[1]) * 1e9, int(found[2]), found[3].strip(), cwnd))
    return said
