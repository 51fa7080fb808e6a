"""Scenarios on the live kernel: what is asked of it, what the wire says, a small experiment."""

import fcntl
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from headstart.reproduce import Context
from headstart.reproduce.context import GroundError
from headstart.reproduce.experiments.fast_start import t1
from headstart.reproduce.experiments.hystart import hy1
from headstart.reproduce.live import LiveError, LiveResult, wire
from headstart.reproduce.live.plan import Plan, drawn, plan
from headstart.reproduce.live.run import ENDS
from headstart.reproduce.live.run import _below as below
from headstart.reproduce.live.run import _used_s as used_s
from headstart.scenario_file import ScenarioFile, changed

SYN, SYN_ACK, ACK = 0x02, 0x12, 0x10
CLIENT_ISN, SERVER_ISN = 4_294_967_000, 5_000


def t1_scenario(variant: str = "fs-pdrop") -> ScenarioFile:
    return t1.t1(variant, [t1.web("1s", "6s"), *t1.bulk(2, 0, 8)], until_s=30)


def planned(**changes: object) -> Plan:
    """The plan of a T1 scenario with changes; `__` stands for the dot."""
    places = {place.replace("__", "."): value for place, value in changes.items()}
    return plan(changed(t1_scenario(), places), "su_fast_start", 1)


def test_a_path_is_what_headstart_path_is_told() -> None:
    words = planned().path
    assert words[words.index("--queue") + 1] == "priority:50"
    assert words[words.index("--flow-delay") + 1] == "uniform:0ms,5ms"
    assert words[words.index("--reverse-flow-delay") + 1] == "uniform:0ms,5ms"


def test_an_old_tcp_is_asked_of_the_namespaces() -> None:
    ends = planned().ends
    assert ends["server"]["route"] == ["initcwnd", "1", "rto_min", "200ms"]
    assert ends["client"]["route"] == ["quickack", "1"]
    off = {"net.ipv4.tcp_sack": 0, "net.ipv4.tcp_timestamps": 0}
    assert ends["client"]["sysctls"] == off


def test_the_compared_connections_and_the_others_have_servers_of_their_own() -> None:
    users = planned().ends["users"]
    web = [user for user in users if user["group"] == "web"]
    bulk = [user for user in users if user["group"] == "bulk"]
    assert {user["control"] for user in web} == {"-"}
    assert {user["control"] for user in bulk} == {"reno"}
    assert {user["port"] for user in web}.isdisjoint(user["port"] for user in bulk)
    assert {user["window_bytes"] for user in bulk} == {8192}
    assert [page["bytes"] for page in web[0]["pages"]] == [[30720], [30720]]


def test_the_same_seed_draws_the_same_times() -> None:
    starts = [
        [user["start_s"] for user in plan(t1_scenario(), "reno", seed).ends["users"]]
        for seed in (1, 1, 2)
    ]
    assert starts[0] == starts[1] != starts[2]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"traffic__web__kind": "arrivals"}, "on the live kernel bulk, bursts, users"),
        ({"traffic__web__startup": "su_vegas"}, "only one start-up is loaded at a time"),
        ({"traffic__web__extra_rtt": "uniform:0ms,20ms"}, "give all the same"),
        ({"traffic__web__think": "pareto:1s,2"}, "a constant, uniform or exp"),
        ({"path__reverse_queue": "drop-tail:5", "path__jitter_of": "1ms"}, "no such option"),
        ({"transport__ecn": True}, "[transport] ecn: the live kernel has no knob for it"),
    ],
)
def test_what_the_live_kernel_cannot_do_is_refused_in_words(
    changes: dict[str, object], words: str
) -> None:
    with pytest.raises(LiveError) as refused:
        planned(**changes)
    assert words in str(refused.value)


def test_a_distribution_is_drawn_within_its_bounds() -> None:
    import random  # noqa: PLC0415

    lot = random.Random(1)
    assert all(1 <= drawn("uniform:1,2", lot, float) <= 2 for _ in range(100))
    assert drawn("3", lot, float) == 3


def log_of(rows: list[dict[str, object]]) -> pl.DataFrame:
    """A packet log with the columns that are looked at; sequence numbers are relative."""
    whole = []
    for row in rows:
        forward = row["direction"] == "forward"
        own, other = (SERVER_ISN, CLIENT_ISN) if forward else (CLIENT_ISN, SERVER_ISN)
        opens = bool(row.get("tcp_flags", ACK) & SYN)  # type: ignore[operator]
        at_ns = int(row["at_ms"]) * 1_000_000  # type: ignore[call-overload]
        fate = row.get("fate", "delivered")
        whole.append(
            {
                "direction": row["direction"],
                "protocol": wire.TCP,
                "src_port": 8080 if forward else 4000,
                "dst_port": 4000 if forward else 8080,
                "at_ns": at_ns,
                "started_ns": at_ns if fate == "delivered" else None,
                "left_ns": at_ns + 50_000_000 if fate == "delivered" else None,
                "dropped_ns": at_ns if fate == "dropped" else None,
                "fate": fate,
                "wire_bytes": 1040,
                "tcp_flags": row.get("tcp_flags", ACK),
                "tcp_seq": (own if opens else own + 1 + int(row.get("seq", 0))) % wire.WRAP,  # type: ignore[call-overload]
                "tcp_ack": (other + 1 + int(row.get("ack", 0))) % wire.WRAP,  # type: ignore[call-overload]
                "payload_bytes": row.get("payload_bytes", 0),
                "dscp": row.get("dscp", 0),
            }
        )
    return pl.DataFrame(whole)


def transfer_log() -> pl.DataFrame:
    """Three packets of data of which the second is lost, and is sent again last."""
    data = {"direction": "forward", "payload_bytes": 1000}
    return log_of(
        [
            {"direction": "reverse", "at_ms": 0, "tcp_flags": SYN},
            {"direction": "forward", "at_ms": 50, "tcp_flags": SYN_ACK},
            {"direction": "reverse", "at_ms": 100, "payload_bytes": 300},
            data | {"at_ms": 150, "seq": 0},
            data | {"at_ms": 151, "seq": 1000, "fate": "dropped", "dscp": 1},
            data | {"at_ms": 152, "seq": 2000},
            {"direction": "reverse", "at_ms": 202, "ack": 1000},
            data | {"at_ms": 300, "seq": 1000},
        ]
    )


def row_of(**told: object) -> dict[str, object]:
    """What the wire says of the transfer that the client asked for."""
    connection = wire.connections(transfer_log())[4000]
    asked = {
        "group": "web",
        "user": 0,
        "conn": 0,
        "turn": 0,
        "port": 4000,
        "bytes": 3000,
        "offset_bytes": 0,
        "request_offset_bytes": 0,
    }
    said = [wire.Exit(0.2e9, 4000, "start-loss", 3), wire.Exit(9e9, 4000, "later", None)]
    return wire.transfer_row(asked | told, connection, 0, 0, said, from_the_sender=False)


def test_a_transfer_is_over_when_its_last_hole_is_filled() -> None:
    row = row_of()
    assert (row["start_ms"], row["fct_ms"]) == (0, 350)
    assert (row["retransmitted_pkts"], row["dropped_pkts"]) == (1, 1)
    assert (row["finished"], row["exit_why"]) == (True, "start-loss")
    assert row["slow_start_end_ms"] == 300


def test_a_transfer_whose_bytes_never_came_is_not_finished() -> None:
    row = row_of(bytes=5000)
    assert (row["finished"], row["fct_ms"]) == (False, None)


def test_a_later_turn_begins_with_its_own_request() -> None:
    row = row_of(turn=1, offset_bytes=1000, bytes=2000, request_offset_bytes=0)
    assert (row["start_ms"], row["fct_ms"]) == (100, 250)


def test_the_packets_have_a_row_for_what_left_what_came_and_what_was_dropped() -> None:
    connection = wire.connections(transfer_log())[4000]
    rows = wire.packet_rows({"group": "web", "conn": 0}, connection, 0)
    counts = {(kind, fate): n for kind, fate, n in rows.group_by("kind", "fate").len().iter_rows()}
    assert counts == {
        ("data", "sent"): 4,
        ("data", "came"): 3,
        ("data", "dropped"): 1,
        ("ack", "came"): 2,
    }
    assert rows.filter(kind="ack")["seq"].to_list() == [0, 1000]
    assert rows.filter("low_priority")["seq"].unique().to_list() == [1000]


def test_the_queue_counts_what_it_dropped_and_how_long_it_was_busy() -> None:
    rows = wire.queue_rows(transfer_log(), 0, 400.0, 100.0, 8.32e6)
    assert rows["dropped_pkts"].to_list() == [0, 0, 1, 1]
    assert rows["busy_ms"].to_list() == [0.0, 1.0, 3.0, 3.0]


def test_the_busiest_second_is_found_among_what_was_used_so_far() -> None:
    cpu = pl.DataFrame(
        {
            "variant": [0] * 4,
            "repeat": [0] * 4,
            "t_ms": [900.0, 1900.0, 2900.0, 3900.0],
            "sender_s": [0.0, 0.1, 0.6, 0.7],
            "receiver_s": [0.0, 0.0, 0.0, 0.0],
            "router_s": [0.0, 0.2, 0.4, 1.2],
        }
    )
    row = hy1.busiest_second(cpu).row(0, named=True)
    assert row["ends_percent"] == pytest.approx(50)
    assert row["router_percent"] == pytest.approx(80)


@pytest.fixture
def server() -> Iterator[int]:
    """`ends.py server` on this machine's loopback; its port."""
    port = 20_000 + os.getpid() % 10_000
    child = subprocess.Popen([sys.executable, str(ENDS), "server", str(port)])
    yield port
    child.kill()
    child.wait()


def test_the_ends_fetch_what_the_plan_says(server: int, tmp_path: Path) -> None:
    user = {
        "group": "web",
        "user": 0,
        "port": server,
        "control": "-",
        "hint": False,
        "upload": False,
        "endless": False,
        "segment_bytes": None,
        "window_bytes": None,
        "request_bytes": 100,
        "start_s": 0.0,
        "index_first": True,
        "parallel": 3,
        "persistent": True,
        "pages": [{"bytes": [5000, 1_000_000, 1_000_000, 7, 7], "think_s": 0.0}] * 2,
    }
    endless = user | {"group": "bulk", "endless": True, "pages": [{"bytes": [-1], "think_s": 0.0}]}
    settings = {"sysctls": {}, "route": []}
    file, told = tmp_path / "plan.json", tmp_path / "told.json"
    asked = {
        "client": settings,
        "users": [user, user | {"user": 1, "persistent": False}, endless],
        "until_s": 60.0,
        "whole": False,
        "told": str(told),
    }
    file.write_text(json.dumps(asked))
    environment = os.environ | {"HEADSTART_SERVER": "127.0.0.1"}
    began = time.monotonic()
    command = [sys.executable, str(ENDS), "client", str(file)]
    subprocess.run(command, env=environment, check=True)
    assert time.monotonic() - began < 50, "it waits for nothing that has no end"
    said = json.loads(told.read_text())
    assert said["failures"] == []
    done = [one for one in said["transfers"] if one["group"] == "web"]
    assert all(one["finished"] for one in done)
    for number, connections in ((0, 3), (1, 10)):
        own = [one for one in done if one["user"] == number]
        assert len(own) == 10
        # At most: who is quick has taken the next object before another connection is open.
        assert 1 < len({one["conn"] for one in own}) <= connections
        assert (
            sum(said["received"][str(port)] for port in {one["port"] for one in own}) == 4_010_028
        )


def test_without_root_the_kernel_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr("headstart.reproduce.context._program", lambda: "headstart")
    with pytest.raises(GroundError, match="by root only"):
        Context(on="kernel").measure([t1_scenario()], repeat=1)


def kernel_is_missing() -> str:
    """Why no start-up can be measured on this machine's kernel; empty where it can."""
    if os.geteuid() != 0:
        return "the live kernel is measured by root only"
    built = Path(__file__).parents[2] / "target" / "release" / "headstart"
    program = os.environ.get("HEADSTART") or str(built)
    if not Path(program).is_file():
        return f"{program} is not there (scripts/build.sh program, or HEADSTART=...)"
    doctor = subprocess.run([program, "doctor"], capture_output=True, text=True, check=False)
    return "" if doctor.returncode == 0 else f"headstart doctor: {doctor.stdout[-300:]}"


@pytest.fixture
def live_kernel() -> Iterator[None]:
    """The names of start-ups are the machine's: one test at a time, as in headstart-kernel."""
    missing = kernel_is_missing()
    if missing:
        pytest.skip(missing)
    with (Path(tempfile.gettempdir()) / "headstart-tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def test_a_small_experiment_on_the_live_kernel(live_kernel: None) -> None:
    scenarios = [t1_scenario("newreno"), t1_scenario("fs-pdrop")]
    context = Context(on="kernel", quick=True)
    result = context.measure(scenarios, repeat=1, packets=True)
    assert isinstance(result, LiveResult)
    if context.notes:
        pytest.skip(f"this machine is too busy now: {context.notes[0]}")
    bursts = result.transfers.filter(group="web").sort("variant", "turn")
    assert bursts["finished"].all()
    assert bursts["turn"].to_list() == [0, 1, 0, 1]
    # A start from a window of 1 takes five round trips of at least 100 ms.
    assert bursts["fct_ms"][0] > 400
    assert bursts["exit_why"].to_list()[:2] == [None, None]
    assert bursts["exit_why"][3] is not None
    data = result.packets.filter(group="web", kind="data", fate="sent")
    assert data["payload_bytes"].max() == 1024
    # The window that a fast start sends at once is marked, but for its first packet.
    marked = data.filter("low_priority").group_by("variant").len()
    assert marked["variant"].to_list() == [1]
    assert marked["len"][0] >= 4
    # Two bulk transfers of 8 KB are less than path and buffer hold: none of them loses a packet.
    bulk = result.transfers.filter(group="bulk")
    assert bulk["dropped_pkts"].to_list() == [0, 0, 0, 0]
    assert (bulk["delivered_bytes"] > 50_000).all()


def test_the_cpu_of_what_has_ended_is_none_and_ones_own_is_counted() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert used_s(child.pid) == 0
    assert list(below(child.pid)) == []
    before = used_s(os.getpid())
    sum(range(3_000_000))
    assert used_s(os.getpid()) > before
