"""From a scenario's traffic to what `headstart path` and the two ends are told.

A live kernel is one TCP, not any: what a scenario asks of `[transport]` is set where a route, a
sysctl of the namespace or a socket has a knob for it, is left alone where the kernel's own
behaviour is what is measured, and is refused, in words, where the question would be another one.
"""

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headstart.reproduce.live.ends import ENDLESS
from headstart.scenario_file import ScenarioFile, TrafficTable


class LiveError(Exception):
    """A scenario that the live kernel cannot carry out. The text says why and what to do."""


COMPARED_PORT, OTHER_PORT = 8080, 8081
"""The servers of connections under the start-up that is compared, and of all others."""

LOADED_STARTUP = "su_"
"""What begins so is loaded into the kernel; other names are the kernel's own controls."""

UNBOUNDED_BYTES = 16 << 20
"""A receiver's window from here on is one that bounds nothing: the kernel tunes its own."""

TIMESTAMP_BYTES = 12
"""Of the TCP header, RFC 7323; they come out of what TCP_MAXSEG allows."""

LEFT_TO_THE_KERNEL = frozenset(
    (
        "model",
        "handshake",
        "header_bytes",
        "ack_bytes",
        "recovery",
        "limited_transmit",
        "dupthresh",
        "clock_tick",
        "idle",
        "initial_ssthresh_pkts",
        "hystart",
        "growth",
        "ack_delay",
        "pacing",
    )
)
"""Keys of `[transport]` for which a kernel has no knob: it does as it does."""

SET_HERE = frozenset(
    (
        "mss_bytes",
        "request_bytes",
        "initial_window_pkts",
        "min_rto",
        "acks",
        "receive_window",
        "timestamps",
        "sack",
    )
)

NO_SACK = ("newreno", "newreno-steady")
"""Values of `recovery` that mean a TCP without SACK."""

_PATH_FLAGS = (
    "preset",
    "rate",
    "reverse_rate",
    "rtt",
    "queue",
    "reverse_queue",
    "loss",
    "reverse_loss",
    "jitter",
    "reverse_jitter",
    "flow_delay",
    "priority_dscp",
)


@dataclass(frozen=True)
class Plan:
    """One run: a scenario under one start-up.

    Attributes:
        startup: The start-up that is compared.
        params: Its parameters.
        path: Arguments of `headstart path`.
        rate_bits_per_s: Of the larger direction; 0 where a preset has it.
        ends: What `ends.py` is given, but for where it writes.
        until_s: When the run ends that is not over.
        sample_ms: The distance of samples of the queue.
        from_the_sender: Whether a transfer begins when the sender sends (no handshake, no request)
            and not when the client asks.
    """

    startup: str
    params: Mapping[str, int]
    path: list[str]
    rate_bits_per_s: float
    ends: dict[str, Any]
    until_s: float
    sample_ms: float
    from_the_sender: bool


def plan(scenario: ScenarioFile, startup: str, seed: int) -> Plan:
    """What a run of `scenario` under `startup` is; what is drawn by lot comes from `seed`.

    Raises:
        LiveError: The live kernel cannot do it.
    """
    traffic = scenario.get("traffic", [])
    simulation = scenario.get("simulation", {})
    shared = dict(scenario.get("transport", {}))
    lot = random.Random(seed)
    users = [user for table in traffic for user in _users(table, shared, startup, lot)]
    if not users:
        raise LiveError(f"{scenario['name']}: it has no [[traffic]] to carry out")
    until_s = seconds(simulation.get("until", "600s"))
    return Plan(
        startup=startup,
        params=scenario.get("startup", {}).get(startup, {}),
        path=[*_path(scenario), *_flow_delay(traffic), "--seed", str(seed)],
        rate_bits_per_s=_rate(scenario),
        ends=_ends(shared | _window(traffic)) | {"users": users, "until_s": until_s},
        until_s=until_s,
        sample_ms=1000 * seconds(simulation.get("sample_every", "10ms")),
        from_the_sender=_model(shared) != "linux" and "handshake" not in shared,
    )


def _path(scenario: ScenarioFile) -> list[str]:
    table = dict(scenario["path"])
    delays = [table.pop(key) for key in ("delay", "reverse_delay") if key in table]
    if delays:
        table["rtt"] = f"{1000 * sum(seconds(delay) for delay in delays):g}ms"
    unknown = [key for key in table if key not in _PATH_FLAGS]
    if unknown:
        raise LiveError(f"[path] {unknown[0]}: headstart path has no such option")
    flags = [[f"--{key.replace('_', '-')}", str(value)] for key, value in table.items()]
    return [word for flag in flags for word in flag]


def _rate(scenario: ScenarioFile) -> float:
    rates = [scenario["path"].get(key, "0mbit") for key in ("rate", "reverse_rate")]
    return max(bits_per_s(rate) for rate in rates)


def _flow_delay(traffic: list[TrafficTable]) -> list[str]:
    """The extra round trip of a flow, half of it each way: one for all, as the emulator has it."""
    asked = {table.get("extra_rtt") for table in traffic}
    if asked == {None}:
        return []
    if len(asked) > 1:
        raise LiveError("extra_rtt: headstart path has one for all flows; give all the same")
    kind, low, high = _uniform(str(next(iter(asked))))
    half = f"{kind}:{low / 2 * 1000:g}ms,{high / 2 * 1000:g}ms"
    return ["--flow-delay", half, "--reverse-flow-delay", half]


def _uniform(text: str) -> tuple[str, float, float]:
    found = re.fullmatch(r"(uniform):([^,]+),([^,]+)", text)
    if not found:
        raise LiveError(f'extra_rtt = "{text}": on the live kernel it can be uniform:LOW,HIGH only')
    return found[1], seconds(found[2]), seconds(found[3])


def _window(traffic: list[TrafficTable]) -> dict[str, Any]:
    """The initial window of a group: a route has one for all, so that all that have one agree."""
    key = "initial_window_pkts"
    asked = {table["transport"][key] for table in traffic if key in table.get("transport", {})}
    if len(asked) > 1:
        raise LiveError(f"[[traffic]] {key}: the route has one for all; give all the same")
    return {key: asked.pop()} if asked else {}


def _model(transport: Mapping[str, Any]) -> str:
    return str(transport.get("model", "linux"))


def _ends(shared: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of both namespaces."""
    unknown = [key for key in shared if key not in SET_HERE | LEFT_TO_THE_KERNEL]
    if unknown:
        raise LiveError(f"[transport] {unknown[0]}: the live kernel has no knob for it")
    papers = _model(shared) != "linux"
    without_sack = shared.get("recovery") in NO_SACK or shared.get("sack") == "off"
    client: dict[str, int] = {}
    if without_sack:
        client["net.ipv4.tcp_sack"] = 0
    if papers:
        client["net.ipv4.tcp_timestamps"] = 0
    server_route: list[str] = []
    window = shared.get("initial_window_pkts", 1 if papers else None)
    if window is not None:
        server_route += ["initcwnd", str(window)]
    if "min_rto" in shared:
        server_route += ["rto_min", f"{1000 * seconds(shared['min_rto']):g}ms"]
    each_packet = shared.get("acks", "every-packet" if papers else "linux") == "every-packet"
    return {
        "server": {"side": "server", "sysctls": {}, "route": server_route},
        "client": {
            "side": "client",
            "sysctls": client,
            "route": ["quickack", "1"] if each_packet else [],
        },
    }


def _users(
    table: TrafficTable, shared: Mapping[str, Any], startup: str, lot: random.Random
) -> list[dict[str, Any]]:
    kind = table.get("kind")
    if kind not in ("bulk", "bursts", "users"):
        raise LiveError(f'[[traffic]] kind = "{kind}": on the live kernel bulk, bursts, users')
    transport = dict(shared) | dict(table.get("transport", {}))
    control = table.get("startup", startup)
    compared = control == startup and control.startswith(LOADED_STARTUP)
    if control.startswith(LOADED_STARTUP) and not compared:
        raise LiveError(f"{control}: only one start-up is loaded at a time, {startup} here")
    upload = table.get("direction") == "reverse"
    papers = _model(transport) != "linux"
    segment = transport.get("mss_bytes", 1000 if papers else None)
    if segment is not None and not papers:
        segment += TIMESTAMP_BYTES
    window = transport.get("receive_window", "linux")
    window_bytes = UNBOUNDED_BYTES if window == "linux" else round(size_bytes(str(window)))
    return [
        {
            "group": table["name"],
            "user": number,
            "port": COMPARED_PORT if compared and not upload else OTHER_PORT,
            "control": "-" if compared else control,
            "hint": bool(table.get("hints", False)) and compared,
            "upload": upload,
            "endless": kind == "bulk" and "bytes" not in table,
            "segment_bytes": segment,
            "window_bytes": window_bytes if window_bytes < UNBOUNDED_BYTES else None,
            "request_bytes": max(int(transport.get("request_bytes", 100)), 40),
            "start_s": drawn(table.get("start", "0s"), lot, seconds)
            + number * seconds(table.get("stagger", "0s")),
            "index_first": bool(table.get("index_first", False)),
            "parallel": int(table.get("parallel", 1)),
            "persistent": bool(table.get("persistent", False)) or kind != "users",
            "pages": _pages(table, lot),
        }
        for number in range(int(table.get("users", 1)))
    ]


def _pages(table: TrafficTable, lot: random.Random) -> list[dict[str, Any]]:
    if table["kind"] == "bulk":
        size = round(drawn(table["bytes"], lot, size_bytes)) if "bytes" in table else ENDLESS
        return [{"bytes": [size], "think_s": 0.0}]
    pages = []
    for page in range(int(table.get("pages", 1))):
        objects = round(drawn(str(table.get("objects", "1")), lot, float))
        sizes = [round(drawn(table["bytes"], lot, size_bytes)) for _ in range(objects)]
        last = page == int(table.get("pages", 1)) - 1
        think_s = 0.0 if last else drawn(table.get("think", "0s"), lot, seconds)
        pages.append({"bytes": sizes, "think_s": think_s})
    return pages


def drawn(text: str, lot: random.Random, read: Any) -> float:
    """A value of a distribution: a constant, `uniform:LOW,HIGH` or `exp:MEAN`.

    Raises:
        LiveError: It is none of these.
    """
    kind, _, rest = text.partition(":")
    if not rest:
        return float(read(text))
    if kind not in ("uniform", "exp"):
        raise LiveError(f'"{text}": on the live kernel a constant, uniform or exp')
    values = [float(read(value)) for value in rest.split(",")]
    return lot.uniform(*values) if kind == "uniform" else lot.expovariate(1 / values[0])


def seconds(text: str) -> float:
    """`"50ms"` in seconds."""
    return _in(text, {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0})


def size_bytes(text: str) -> float:
    """`"30KiB"` in bytes."""
    units = {"": 1, "B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9}
    return _in(text, units | {"KiB": 1024, "MiB": 1 << 20, "GiB": 1 << 30})


def bits_per_s(text: str) -> float:
    """`"1.5mbit"` in bits per second."""
    return _in(text, {"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9})


def _in(text: str, units: Mapping[str, float]) -> float:
    found = re.fullmatch(r"([0-9.]+)\s*([A-Za-z]*)", text)
    if not found or found[2] not in units:
        raise LiveError(f'"{text}": not a number with one of the units {", ".join(units)}')
    return float(found[1]) * units[found[2]]
