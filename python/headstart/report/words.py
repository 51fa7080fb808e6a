"""Numbers and scenarios in words: what a reader of the page sees, with units."""

from datetime import datetime

from headstart.scenario import Case, Path, Scenario

NOTHING = "–"
"""Stands where there is no value."""


def milliseconds(value: float | None) -> str:
    """`1213.4` is `1,213`; below 100 ms one decimal is kept. Without the unit."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"  # noqa: PLR2004 (three digits)


def ratio(value: float | None) -> str:
    """`0.371` is `0.37`."""
    return NOTHING if value is None else f"{value:.2f}"


def count(value: float | None) -> str:
    """`0.0` is `0`, `0.5` is `0.5`, `1848.0` is `1,848`."""
    return NOTHING if value is None else f"{value:,.1f}".removesuffix(".0")


def size(count_bytes: int) -> str:
    """The largest unit that is exact: `51200` is `50 KiB`, `2000000` is `2 MB`."""
    units = ((1 << 30, "GiB"), (10**9, "GB"), (1 << 20, "MiB"), (10**6, "MB"), (1 << 10, "KiB"))
    for unit, name in (*units, (1000, "kB")):
        if count_bytes >= unit and count_bytes % unit == 0:
            return f"{count_bytes // unit} {name}"
    return f"{count_bytes:,} bytes"


def rate(bits_per_s: int) -> str:
    """`12000000` is `12 Mbit/s`, `1500000` is `1.5 Mbit/s`."""
    for unit, name in ((10**9, "Gbit/s"), (10**6, "Mbit/s"), (1000, "kbit/s")):
        if bits_per_s >= unit:
            return f"{bits_per_s / unit:.12g} {name}"
    return f"{bits_per_s} bit/s"


def span(value_ms: float) -> str:
    """`400.0` is `400 ms`, `10000.0` is `10 s`."""
    return f"{value_ms / 1000:.12g} s" if value_ms >= 1000 else f"{value_ms:.12g} ms"  # noqa: PLR2004


def queue(spec: str) -> str:
    """`drop-tail:400` is `400-packet drop-tail queue`."""
    kind, _, limit = spec.partition(":")
    return f"{limit}-packet {kind} queue" if limit.isdigit() else f"{spec} queue"


def paths(scenario: Scenario) -> str:
    """The path between server and client, in one sentence; of several, how many there are."""
    every = scenario["paths"]
    if len(every) == 1:
        return path(every[0]["path"])
    return f"{len(every)} paths, each case on each of them."


def path(link: Path) -> str:
    """A path, in one sentence."""
    down, up = rate(link["rate_bits_per_s"]), rate(link["reverse_rate_bits_per_s"])
    rates = f"{down} each way" if down == up else f"{down} from server to client, {up} back"
    there, back = link["delay_ms"], link["reverse_delay_ms"]
    delays = f"{span(there + back)} round trip"
    if there != back:
        delays += f" ({span(there)} there, {span(back)} back)"
    first, second = queue(link["queue"]), queue(link["reverse_queue"])
    queues = f"a {first} each way" if first == second else f"a {first}, a {second} on the way back"
    return f"{rates}, {delays}, {queues}."


def ends(scenario: Scenario) -> str:
    """Who talks to whom."""
    transfer = scenario["transfer"]
    return f"{transfer['server']} serves, {transfer['client']} asks."


def case(case: Case) -> str:
    """What is asked of the connection, in one sentence."""
    asked = f"the transfer is {size(case['bytes'])}"
    warm = NOTHING if case["warm_bytes"] is None else size(case["warm_bytes"])
    match case["kind"]:
        case "new-cold":
            return f"A fresh connection; nothing is remembered of the path; {asked}."
        case "new-warm":
            return (
                f"A fresh connection to a known path, over which an earlier one has carried {warm};"
                f" {asked}."
            )
        case "resume-warm":
            idle = NOTHING if case["idle_ms"] is None else span(case["idle_ms"])
            return (
                f"A kept-alive connection that has carried {warm} and then rested for {idle};"
                f" {asked}."
            )
    return f"{case['kind']}; {asked}."


def moment(started: str | None) -> str:
    """An RFC 3339 moment as `21 November 2026, 04:12 UTC`; anything else as it is."""
    if started is None:
        return "at an unknown time"
    try:
        when = datetime.fromisoformat(started)
    except ValueError:
        return started
    offset = when.utcoffset()
    zone = "" if offset is None else " UTC" if not offset else f" UTC{when:%z}"
    return f"{when.day} {when:%B %Y, %H:%M}{zone}"
