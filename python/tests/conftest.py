"""A results folder as `headstart compare --out` would write it, made up by a toy sender.

The numbers are invented to exercise the report, never shown as measurements.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median, quantiles, stdev
from typing import Any

import polars as pl
import pytest

from headstart.results import COLUMNS

SCENARIO = """\
name = "satellite"
description = "a made-up run <for tests>"
seed = 7
[path]
rate = "12mbit"
reverse_rate = "1mbit"
rtt = "400ms"
queue = "drop-tail:400"
[compare]
startups = ["cubic", "bbr", "su_standard", "su_fast_start"]
repeat = 10
[[case]]
kind = "new-cold"
bytes = "50KiB"
[[case]]
kind = "resume-warm"
bytes = "50KiB"
warm_bytes = "2MB"
idle = "10s"
[[case]]
kind = "new-warm"
bytes = "50KiB"
warm_bytes = "2MB"
[startup.su_fast_start]
maxburst = 4
"""

STARTUPS = ("cubic", "bbr", "su_standard", "su_fast_start")
CASES = ("new-cold", "resume-warm", "new-warm")
REPEATS = 10
BYTES = 51_200
MSS_BYTES = 1448
RTT_MS = 400.0
PACKET_MS = 1.0


@dataclass
class Sender:
    """Doubles its window every round trip from an initial one, or starts with a known window."""

    startup: str
    case: str
    repeat: int
    chance: random.Random
    packets: list[dict[str, Any]] = field(default_factory=list)
    windows: list[dict[str, Any]] = field(default_factory=list)

    def name(self) -> dict[str, Any]:
        """What names the transfer in each table."""
        return {
            "startup": self.startup,
            "on": "kernel",
            "path": None,
            "case": self.case,
            "bytes": BYTES,
            "repeat": self.repeat,
        }

    def send(self) -> float:
        """Sends the transfer; the time since the request, in ms."""
        fast = self.startup == "su_fast_start" and self.case != "new-cold"
        window = 120 if fast else 10
        sent_bytes, clock_ms, end_ms, first = (
            0,
            RTT_MS / 2 + self.chance.uniform(0.2, 0.6),
            0.0,
            True,
        )
        while sent_bytes < BYTES:
            spacing_ms = RTT_MS / window if fast and first else PACKET_MS
            for index in range(window):
                if sent_bytes >= BYTES:
                    break
                t_ms = clock_ms + (index // 4) * 4 * spacing_ms + (index % 4) * PACKET_MS
                to_byte = min(sent_bytes + MSS_BYTES, BYTES)
                dropped = fast and self.repeat % 2 == 0 and index == 22
                row = self._packet(t_ms, sent_bytes, to_byte) | {
                    "low_priority": fast and first and index > 0,
                    "dropped": dropped,
                }
                self.packets.append(row)
                if dropped:
                    again = self._packet(t_ms + RTT_MS * 0.9, sent_bytes, to_byte)
                    self.packets.append(again | {"retransmission": True})
                self.packets.append(
                    self._packet(t_ms + RTT_MS, to_byte, to_byte) | {"direction": "ack"}
                )
                sent_bytes, end_ms = to_byte, max(end_ms, t_ms + RTT_MS / 2)
            self._window(clock_ms, window, min(window, 36), first=first and fast)
            window, clock_ms, first = window * 2, clock_ms + RTT_MS, False
        return end_ms + self.chance.gauss(0, 1.5)

    def _packet(self, t_ms: float, from_byte: int, to_byte: int) -> dict[str, Any]:
        return self.name() | {
            "t_ms": t_ms,
            "direction": "data",
            "from_byte": from_byte,
            "to_byte": to_byte,
            "low_priority": False,
            "retransmission": False,
            "dropped": False,
        }

    def _window(self, t_ms: float, cwnd_pkts: int, inflight_pkts: int, *, first: bool) -> None:
        row = self.name() | {
            "t_ms": t_ms,
            "cwnd_pkts": cwnd_pkts,
            "ssthresh_pkts": 120 if first else None,
            "srtt_ms": RTT_MS + 0.4,
            "inflight_pkts": inflight_pkts,
        }
        self.windows.append(row)


def _cells(transfers: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    medians = {}
    for case in CASES:
        for startup in STARTUPS:
            rows = [row for row in transfers if (row["case"], row["startup"]) == (case, startup)]
            valid = [row for row in rows if row["valid"]]
            times = [row["fct_ms"] for row in valid]
            tenths = quantiles(times, n=10, method="inclusive")
            medians[case, startup] = median(times)
            cell = {
                "startup": startup,
                "on": "kernel",
                "case": case,
                "bytes": BYTES,
                "n": len(valid),
                "invalid": len(rows) - len(valid),
                "fct_ms": {
                    "median": median(times),
                    "p10": tenths[0],
                    "p90": tenths[-1],
                    "mean": fmean(times),
                    "stderr": stdev(times) / len(times) ** 0.5,
                },
                "limit_ms": rows[0]["limit_ms"],
                "ratio_to_native": median(times) / medians[case, "cubic"],
                "ratio_to_limit": median(times) / rows[0]["limit_ms"],
                "retransmitted_pkts": {
                    "median": median(row["retransmitted_pkts"] for row in valid),
                    "max": max(row["retransmitted_pkts"] for row in valid),
                },
                "router_drops": {"median": 0.0, "max": 1},
                "valid": len(valid) == len(rows),
            }
            if startup.startswith("su_"):
                fast = startup == "su_fast_start" and case != "new-cold"
                why, window = ("validated", 120) if fast else ("initial-window", 40)
                cell["exit"] = {"why": why, "cwnd_pkts": window}
            yield cell


def write_sample(directory: Path) -> None:
    """Writes the made-up run into `directory`."""
    chance = random.Random(7)
    transfers, packets, windows = [], [], []
    order = 0
    for repeat in range(REPEATS):
        for case in CASES:
            for startup in STARTUPS:
                sender = Sender(startup, case, repeat, chance)
                connect_ms = 0.0 if case == "resume-warm" else RTT_MS + 0.3
                fct_ms = connect_ms + sender.send()
                invalid = (startup, case, repeat) == ("bbr", "new-warm", 3)
                exits = startup.startswith("su_")
                transfers.append(
                    sender.name()
                    | {
                        "order": order,
                        "lane": order % 2,
                        "fct_ms": fct_ms + (300 if invalid else 0),
                        "connect_ms": connect_ms,
                        "limit_ms": (RTT_MS if connect_ms else 0) + RTT_MS + 34.1,
                        "retransmitted_pkts": sum(row["retransmission"] for row in sender.packets),
                        "router_drops": sum(row["dropped"] for row in sender.packets),
                        "exit_why": "validated" if exits else None,
                        "exit_cwnd_pkts": 120 if exits else None,
                        "valid": not invalid,
                        "invalid_reason": "the router was late" if invalid else None,
                    }
                )
                packets += sender.packets
                windows += sender.windows
                order += 1
    document = {
        "schema": 1,
        "verb": "compare",
        "scenario": "satellite",
        "seed": 7,
        "started": "2026-01-02T03:04:05Z",
        "machine": {"kernel": "6.18.44", "cpus": 2},
        "cells": list(_cells(transfers)),
        "run": {"wall_s": 371.2, "packets": 54_310, "events": 162_930},
        "warnings": ["1 transfer was left out: the router was late"],
    }
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "results.json").write_text(json.dumps(document))
    (directory / "scenario.toml").write_text(SCENARIO)
    for name, rows in (("transfers", transfers), ("packets", packets), ("windows", windows)):
        table = pl.DataFrame(rows, schema_overrides=COLUMNS[name])
        table.select(*COLUMNS[name]).write_parquet(directory / f"{name}.parquet")


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A folder with the made-up run."""
    directory = tmp_path / "results"
    write_sample(directory)
    return directory
