"""What the wire says of a run: the router's log of packets, cut into connections and transfers."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

SYN, ACK = 0x02, 0x10
TCP = 6
WRAP = 1 << 32
"""Sequence numbers are of 32 bits; a connection of these runs sends less than 4 GiB."""

MS_NS = 1e6

TRANSFERS: dict[str, type[pl.DataType]] = {
    "startup": pl.String,
    "repeat": pl.UInt32,
    "group": pl.String,
    "user": pl.UInt32,
    "conn": pl.UInt32,
    "turn": pl.UInt32,
    "start_ms": pl.Float64,
    "fct_ms": pl.Float64,
    "bytes": pl.UInt64,
    "delivered_bytes": pl.UInt64,
    "finished": pl.Boolean,
    "retransmitted_pkts": pl.UInt32,
    "dropped_pkts": pl.UInt32,
    "exit_why": pl.String,
    "exit_cwnd_pkts": pl.UInt32,
    "slow_start_end_ms": pl.Float64,
}
"""As the simulator's `transfers`, as far as the wire has it. `slow_start_end_ms` is that of a start
that is ended by loss: when the connection first sends something again."""

PACKETS: dict[str, type[pl.DataType]] = {
    "startup": pl.String,
    "repeat": pl.UInt32,
    "group": pl.String,
    "conn": pl.UInt32,
    "t_ms": pl.Float64,
    "kind": pl.String,
    "fate": pl.String,
    "seq": pl.UInt64,
    "payload_bytes": pl.UInt32,
    "low_priority": pl.Boolean,
    "retransmission": pl.Boolean,
}
"""As the simulator's `packets`."""


@dataclass(frozen=True)
class Exit:
    """What a start-up said: when, of which connection, why, with which window."""

    at_ns: float
    port: int
    why: str
    cwnd_pkts: int | None


@dataclass(frozen=True)
class Connection:
    """The packets of one connection.

    Attributes:
        data: From server to client with payload: `at_ns`, `left_ns`, `dropped_ns`, `fate`, `start`,
            `end` (bytes since the connection opened), `marked`, `retransmission`.
        asks: From client to server: `at_ns`, `left_ns`, `fate`, `start`, `end`, `ack`.
        opened_ns: When the client's SYN came to the path.
    """

    data: pl.DataFrame
    asks: pl.DataFrame
    opened_ns: int


def connections(log: pl.DataFrame) -> dict[int, Connection]:
    """The log by the client's port."""
    tcp = log.filter(pl.col("protocol") == TCP)
    ports = pl.when(pl.col("direction") == "forward").then("dst_port").otherwise("src_port")
    parts = tcp.with_columns(port=ports).partition_by("port", as_dict=True, maintain_order=True)
    found = {}
    for (port,), packets in parts.items():
        connection = _connection(packets)
        if connection is not None:
            found[int(port)] = connection
    return found


def _connection(packets: pl.DataFrame) -> Connection | None:
    opens = packets.filter(pl.col("tcp_flags") & SYN != 0)
    syn = opens.filter(direction="reverse")
    answer = opens.filter(direction="forward")
    if syn.is_empty() or answer.is_empty():
        return None
    ours, theirs = int(answer["tcp_seq"][0]) + 1, int(syn["tcp_seq"][0]) + 1
    rest = packets.filter(pl.col("tcp_flags") & SYN == 0)
    data = _placed(rest.filter(pl.col("direction") == "forward"), ours)
    data = data.filter(pl.col("payload_bytes") > 0)
    sent_to = pl.col("end").cum_max().shift(1).fill_null(0)
    data = data.with_columns(retransmission=pl.col("start") < sent_to, marked=pl.col("dscp") > 0)
    asks = _placed(rest.filter(pl.col("direction") == "reverse"), theirs)
    asks = asks.with_columns(ack=(pl.col("tcp_ack").cast(pl.Int64) - ours) % WRAP)
    return Connection(data, asks, int(syn["at_ns"][0]))


def _placed(packets: pl.DataFrame, first: int) -> pl.DataFrame:
    start = (pl.col("tcp_seq").cast(pl.Int64) - first) % WRAP
    return packets.sort("at_ns", maintain_order=True).with_columns(
        start=start, end=start + pl.col("payload_bytes").fill_null(0)
    )


def complete_ns(data: pl.DataFrame, begin: int, end: int) -> float | None:
    """When the last byte of `begin` to `end` was handed over; None if that never was."""
    came = data.filter(
        pl.col("left_ns").is_not_null(), pl.col("end") > begin, pl.col("start") < end
    )
    came = came.sort("left_ns").select("left_ns", "start", "end")
    waiting: list[tuple[int, int]] = []
    reached = begin
    for left_ns, start, stop in came.iter_rows():
        heapq.heappush(waiting, (start, stop))
        while waiting and waiting[0][0] <= reached:
            reached = max(reached, heapq.heappop(waiting)[1])
        if reached >= end:
            return float(left_ns)
    return None


def transfer_row(
    told: dict[str, Any],
    connection: Connection,
    begin_ns: int,
    delivered_bytes: int,
    exits: Sequence[Exit],
    *,
    from_the_sender: bool,
) -> dict[str, Any]:
    """One row of `TRANSFERS`, but for `startup` and `repeat`."""
    low, size = told["offset_bytes"], told["bytes"]
    high = low + size if size > 0 else 1 << 62
    own = connection.data.filter(pl.col("end") > low, pl.col("start") < high)
    began_ns = _began_ns(told, connection, own, from_the_sender=from_the_sender)
    done_ns = complete_ns(own, low, high) if size > 0 else None
    again = connection.data.filter("retransmission")["at_ns"].min()
    until_ns = float("inf") if done_ns is None else done_ns
    said = [one for one in exits if one.port == told["port"] and one.at_ns <= until_ns]
    return {
        "group": told["group"],
        "user": told["user"],
        "conn": told["conn"],
        "turn": told["turn"],
        "start_ms": None if began_ns is None else (began_ns - begin_ns) / MS_NS,
        "fct_ms": None if done_ns is None or began_ns is None else (done_ns - began_ns) / MS_NS,
        "bytes": size,
        "delivered_bytes": size if done_ns is not None else delivered_bytes,
        "finished": done_ns is not None,
        "retransmitted_pkts": int(own["retransmission"].sum()),
        "dropped_pkts": own.filter(fate="dropped").height,
        "exit_why": said[-1].why if said else None,
        "exit_cwnd_pkts": said[-1].cwnd_pkts if said else None,
        "slow_start_end_ms": None if again is None else (int(again) - begin_ns) / MS_NS,
    }


def _began_ns(
    told: dict[str, Any], connection: Connection, own: pl.DataFrame, *, from_the_sender: bool
) -> float | None:
    if from_the_sender:
        first = own["at_ns"].min()
        return None if first is None else float(first)
    if told["turn"] == 0:
        return float(connection.opened_ns)
    asked_at = told["request_offset_bytes"]
    asks = connection.asks.filter(pl.col("start") <= asked_at, pl.col("end") > asked_at)
    first = asks["at_ns"].min()
    return None if first is None else float(first)


def packet_rows(told: dict[str, Any], connection: Connection, begin_ns: int) -> pl.DataFrame:
    """The packets of a connection: data that left, came, was dropped, and ACKs that came."""

    def rows(frame: pl.DataFrame, kind: str, fate: str, at: str, seq: str) -> pl.DataFrame:
        is_data = kind == "data"
        return frame.filter(pl.col(at).is_not_null()).select(
            group=pl.lit(told["group"]),
            conn=pl.lit(told["conn"], dtype=pl.UInt32),
            t_ms=(pl.col(at).cast(pl.Int64) - begin_ns) / MS_NS,
            kind=pl.lit(kind),
            fate=pl.lit(fate),
            seq=pl.col(seq).cast(pl.UInt64),
            payload_bytes=pl.col("payload_bytes").cast(pl.UInt32),
            low_priority=pl.col("marked") if is_data else pl.lit(value=False),
            retransmission=pl.col("retransmission") if is_data else pl.lit(value=False),
        )

    data, asks = connection.data, connection.asks
    return pl.concat(
        [
            rows(data, "data", "sent", "at_ns", "start"),
            rows(data, "data", "came", "left_ns", "start"),
            rows(data, "data", "dropped", "dropped_ns", "start"),
            rows(asks, "ack", "came", "left_ns", "ack"),
        ]
    )


def queue_rows(
    log: pl.DataFrame, begin_ns: int, until_ms: float, sample_ms: float, bits_per_s: float
) -> pl.DataFrame:
    """The bottleneck over time, as the simulator's `queues`."""
    forward = log.filter(direction="forward")
    at_ms = np.arange(0.0, until_ms, sample_ms)

    def counted(column: str) -> np.ndarray:
        times = forward[column].drop_nulls().sort().to_numpy().astype(np.float64)
        return np.searchsorted((times - begin_ns) / MS_NS, at_ms)

    started = forward.filter(pl.col("started_ns").is_not_null()).sort("started_ns")
    sent_ms = started["wire_bytes"].cast(pl.Float64).to_numpy() * 8e3 / bits_per_s
    busy_ms = np.concatenate([[0.0], np.cumsum(sent_ms)])
    return pl.DataFrame(
        {
            "link": ["forward"] * len(at_ms),
            "t_ms": at_ms,
            "dropped_pkts": counted("dropped_ns").astype(np.int64),
            "out_pkts": counted("started_ns").astype(np.int64),
            "busy_ms": busy_ms[counted("started_ns")],
        }
    )
