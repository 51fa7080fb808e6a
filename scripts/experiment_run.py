"""An experiment on this machine: scripts/experiment.sh. docs/experiment.md has its results.

nginx in a cgroup under `headstart run`; behind it emulated paths of different rate, round-trip time
and buffer, each with many clients of a /24 of their own; their transfers as in the IW10 paper.
Everything is made for the run and taken away after it.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from headstart.reproduce.experiments.initial_window.population import AVG, clients

ROOT = Path(__file__).resolve().parent.parent
CLIENT = Path(__file__).with_name("experiment_client.py")

FIRST_NETWORK = 100
"""Clients of lane N have the addresses 10.(100 + N).*.1."""

LEAST_RATE_BITS_PER_S = 128_000
"""Of a path; slower ones of the population would make too few transfers in the time there is."""

BUFFER_PKTS = (12, 18, 27, 40, 60, 90)
"""Of the paths, in turn: the shallow ones overflow when a page's connections begin at once."""

PATIENCE_S = 30.0

KINDS = {
    "ab": (
        (("iw3", "su_standard", {"iw_pkts": 3}), ("iw10", "su_standard", {"iw_pkts": 10})),
        "",
    ),
    "aa": (
        (("a", "su_standard", {"iw_pkts": 10}), ("b", "su_standard", {"iw_pkts": 10})),
        "",
    ),
    "harm": (
        (("native", "leave-alone", {}), ("iw100", "su_standard", {"iw_pkts": 100})),
        '[guard]\nholdout_percent = 5\nwindow = "60s"\nmin_transfers = 200\n'
        "retransmission_points = 2\ntimeout_points = 2\nlatency_percent = 25\n",
    ),
}
"""The arms, half of the prefixes each, and the guard."""

NGINX = """\
daemon off;
master_process off;
pid {at}/nginx.pid;
error_log {at}/nginx.log warn;
events {{ worker_connections 512; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    client_body_temp_path {at}/body;
    proxy_temp_path {at}/proxy;
    fastcgi_temp_path {at}/fastcgi;
    uwsgi_temp_path {at}/uwsgi;
    scgi_temp_path {at}/scgi;
    server {{
        listen 8080;
        listen 8081;
        root {root};
    }}
}}
"""


@dataclass(frozen=True)
class Link:
    """One path."""

    lane: int
    rate_bits_per_s: int
    rtt_us: int
    buffer_pkts: int

    @property
    def network(self) -> str:
        """Of its clients."""
        return f"10.{FIRST_NETWORK + self.lane}"


class RunError(Exception):
    """The run cannot go on; the text says why and what to do."""


def draw_links(count: int, seed: int) -> list[Link]:
    """Rates and round-trip times of the paper's clients (AvgDC), buffers of ours."""
    people = clients(AVG, count, seed)
    return [
        Link(
            lane=row["client"],
            rate_bits_per_s=max(round(row["bandwidth_bits_per_s"]), LEAST_RATE_BITS_PER_S),
            rtt_us=max(round(1000 * row["rtt_ms"]), 1000),
            buffer_pkts=BUFFER_PKTS[row["client"] % len(BUFFER_PKTS)],
        )
        for row in people.iter_rows(named=True)
    ]


def write_config(at: Path, kind: str, cgroup: str, salt: str) -> Path:
    """The daemon's configuration."""
    arms, guard = KINDS[kind]
    lines = [
        f'[daemon]\ncgroup = "{cgroup}"\nrun_dir = "{at}/run"\nstate_dir = "{at}/state"',
        f'[records]\ndir = "{at}/records"',
        guard,
        f'[experiment]\nname = "{kind}"\nsalt = "{salt}"',
    ]
    for name, startup, params in arms:
        text = f'[[experiment.arm]]\nname = "{name}"\nshare_percent = 50\nstartup = "{startup}"'
        if params:
            text += "\nparams = { " + ", ".join(f"{k} = {v}" for k, v in params.items()) + " }"
        lines.append(text)
    lines.append('[[rule]]\nname = "web"\nports = "8080-8081"\nstartup = "experiment"')
    file = at / "headstart.toml"
    file.write_text("\n\n".join(lines) + "\n")
    file.chmod(0o600)
    return file


def cgroup_root() -> Path:
    """Where cgroup v2 is mounted."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, where, kind, *_ = line.split()
        if kind == "cgroup2":
            return Path(where)
    raise RunError("cgroup v2 is not mounted; the daemon needs it")


def stop(process: subprocess.Popen) -> None:
    """Ends it in its own way, and waits."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def start_path(  # noqa: PLR0917 -- all that a path needs
    program: Path, at: Path, cgroup: Path, link: Link, given: argparse.Namespace, until: float
) -> subprocess.Popen:
    """A path with nginx on the one side and the clients on the other."""
    own = at / f"path-{link.lane}"
    own.mkdir()
    (own / "nginx.conf").write_text(NGINX.format(at=own, root=at / "www"))
    addresses = "\n".join(
        f"addr add {link.network}.{number}.1/32 dev tun0" for number in range(given.clients)
    )
    (own / "addresses").write_text(addresses + "\n")
    server = (
        f"ip route add {link.network}.0.0/16 dev tun0 && echo $$ >{cgroup}/cgroup.procs && "
        f"exec nginx -p {own} -c {own}/nginx.conf"
    )
    client = (
        f"ip -batch {own}/addresses && exec {sys.executable} -I {CLIENT} --network {link.network} "
        f"--clients {given.clients} --until {until} --seed {given.seed}-{link.lane} "
        f"--out {own}/asked.json"
    )
    command = [
        str(program),
        *("path", "--lane", str(link.lane), "--json", "--quiet"),
        *("--rate", f"{link.rate_bits_per_s}bit", "--reverse-rate", "20mbit"),
        *("--rtt", f"{link.rtt_us}us", "--queue", f"drop-tail:{link.buffer_pkts}"),
        *("--server", server, "--server-port", "8080", "--", "sh", "-c", client),
    ]
    with (own / "path.json").open("wb") as said, (own / "log").open("wb") as log:
        return subprocess.Popen(command, stdout=said, stderr=log, stdin=subprocess.DEVNULL)


def status(program: Path, at: Path) -> dict:
    """What the daemon says of itself; empty while it does not answer."""
    asked = subprocess.run(
        [program, "status", "--json", "--run-dir", at / "run"], capture_output=True, check=False
    )
    return json.loads(asked.stdout) if asked.returncode == 0 else {}


def start_daemon(program: Path, at: Path, config: Path) -> subprocess.Popen:
    """The daemon, once it answers."""
    with (at / "daemon.log").open("wb") as log:
        daemon = subprocess.Popen([program, "run", "--config", config], stderr=log)
    began = time.monotonic()
    while not status(program, at):
        if daemon.poll() is not None or time.monotonic() - began > PATIENCE_S:
            stop(daemon)
            raise RunError(f"the daemon did not start: {(at / 'daemon.log').read_text().strip()}")
        time.sleep(0.2)
    return daemon


def run(program: Path, at: Path, given: argparse.Namespace) -> dict:
    """The whole run; what it was."""
    links = draw_links(given.paths, given.seed)
    with ExitStack() as cleanup:
        cgroup = cgroup_root() / f"headstart-experiment-{os.getpid()}"
        cgroup.mkdir()
        cleanup.callback(cgroup.rmdir)
        (at / "www").mkdir()
        (at / "www" / "data").write_bytes(bytes(range(256)) * 4096)
        config = write_config(at, given.kind, cgroup.name, f"{given.kind}-{given.seed}")
        daemon = start_daemon(program, at, config)
        cleanup.callback(stop, daemon)
        began = time.monotonic()
        load_before = os.getloadavg()[0]
        paths = []
        # All are told to end before one is waited for.
        cleanup.callback(lambda: [stop(path) for path in paths])
        cleanup.callback(lambda: [path.terminate() for path in paths if path.poll() is None])
        until = began + given.seconds
        for link in links:
            paths.append(start_path(program, at, cgroup, link, given, until))
        first = off = None
        while any(path.poll() is None for path in paths):
            time.sleep(0.5)
            now = status(program, at)
            if first is None and now.get("records", {}).get("recorded"):
                first = time.monotonic()
            rule = next(iter(now.get("rules", [])), {})
            if off is None and rule.get("state") == "off":
                off = {"after_s": round(time.monotonic() - (first or began), 1), "why": rule["why"]}
                print(f"  the guard: {off['why']}, after {off['after_s']} s", flush=True)
        failed = [link.lane for link, path in zip(links, paths, strict=True) if path.returncode]
        if failed:
            log = (at / f"path-{failed[0]}" / "log").read_text().strip()
            raise RunError(f"{len(failed)} paths failed; that of lane {failed[0]}: {log}")
        time.sleep(1.5)  # the daemon takes what the kernel recorded once a second
        last = status(program, at)
        (at / "status.json").write_text(json.dumps(last))
        loads = (load_before, os.getloadavg()[0])
    return summary(at, links, given, loads, off)


def summary(
    at: Path, links: list[Link], given: argparse.Namespace, loads: tuple, off: dict | None
) -> dict:
    """The paths, what was asked, how well they were kept; the bandwidths as a file."""
    rows = []
    for link in links:
        own = at / f"path-{link.lane}"
        asked = json.loads((own / "asked.json").read_text())
        said = json.loads((own / "path.json").read_text())
        path = said["path"]
        late_us = max(path[way]["lateness_us"]["p99"] for way in ("forward", "reverse"))
        rows.append({**vars(link), **asked, "valid": path["valid"], "late_p99_us": late_us})
    pl.DataFrame(
        {
            "prefix": [f"{one.network}.{n}.0/24" for one in links for n in range(given.clients)],
            "bits_per_s": [one.rate_bits_per_s for one in links for _ in range(given.clients)],
        }
    ).write_csv(at / "bandwidth.csv")
    told = {
        "kind": given.kind,
        "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "kernel": os.uname().release,
        "cpus": os.cpu_count(),
        "load": loads,
        "seconds": given.seconds,
        "seed": given.seed,
        "asked": sum(row["asked"] for row in rows),
        "failed": sum(row["failed"] for row in rows),
        "late_paths": sum(not row["valid"] for row in rows),
        "turned_off": off,
        "paths": rows,
    }
    (at / "run.json").write_text(json.dumps(told, indent=1) + "\n")
    return told


def find_program(given: Path | None) -> Path:
    """The program that was built."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    for one in [given] if given else [target / "release/headstart", target / "debug/headstart"]:
        if one.is_file():
            return one.resolve()
    raise RunError("the program headstart is not built; run make build, or give --program")


def analyse(at: Path, kind: str) -> None:
    """`headstart-lab ab` on the records, its words into a file and onto the terminal's end."""
    command = [
        *(
            sys.executable,
            "-c",
            "from headstart.lab import main; main()",
            "ab",
            str(at / "records"),
        ),
        *("--config", str(at / "headstart.toml"), "--status", str(at / "status.json")),
        *("--bandwidth", str(at / "bandwidth.csv"), "--out", str(at)),
        *(["--aa"] if kind == "aa" else []),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunError(done.stderr.strip())
    (at / "ab.txt").write_text(done.stdout)
    print(done.stdout[done.stdout.index("VERDICT") :], flush=True)


def main() -> int:
    """Parses, runs, says where the result is."""
    parser = argparse.ArgumentParser(prog="scripts/experiment.sh", description=__doc__)
    parser.add_argument("kind", choices=KINDS, help="IW 3 against 10; alike arms; a harmful arm")
    parser.add_argument("--out", type=Path, help="default: results/experiment/KIND")
    parser.add_argument("--seconds", type=float, help="default: 150; 100 for harm")
    parser.add_argument("--paths", type=int, default=40, help="1 to 100")
    parser.add_argument("--clients", type=int, default=60, help="of a path, 1 to 250")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", type=Path, help="default: target/release/headstart")
    parser.add_argument("--records-only", action="store_true", help="leave the analysis for later")
    given = parser.parse_args()
    if not (1 <= given.paths <= 100 and 1 <= given.clients <= 250):  # noqa: PLR2004 (addresses)
        parser.error("--paths takes 1 to 100, --clients 1 to 250")
    given.seconds = given.seconds or (100 if given.kind == "harm" else 150)
    at = (given.out or ROOT / "results" / "experiment" / given.kind).resolve()
    try:
        program = find_program(given.program)
        for needed in ("nginx", "ip"):
            if shutil.which(needed) is None:
                raise RunError(f"{needed} is not there; run scripts/setup.sh demo")
        if at.is_dir() and any(at.iterdir()):
            if not (at / "headstart.toml").is_file():
                raise RunError(f"{at} holds something that is no run; choose another --out")
            shutil.rmtree(at)
        at.mkdir(parents=True, exist_ok=True)
        told = run(program, at, given)
        print(
            f"  {told['asked']:,} transfers over {given.paths} paths, {told['failed']} failed, "
            f"{told['late_paths']} paths late, load {told['load'][0]:.1f} to {told['load'][1]:.1f}",
            flush=True,
        )
        if given.kind != "harm" and not given.records_only:
            analyse(at, given.kind)
        elif given.kind == "harm" and told["turned_off"] is None:
            raise RunError("the guard did not turn the rule off")
        print(at)
    except RunError as error:
        print(f"scripts/experiment.sh: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        place = error.filename or at
        print(f"scripts/experiment.sh: {place}: {error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
