"""Reads the records of `headstart run` (docs/records.md): files, columns, the experiment's rows."""

import glob
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

COLUMNS = {
    "start": pl.Datetime,
    "latency_us": pl.UInt64,
    "bytes": pl.UInt64,
    "complete": pl.Boolean,
    "retransmitted_bytes": pl.UInt64,
    "rto_count": pl.UInt32,
    "rtt_min_us": pl.UInt32,
    "rtt_start_us": pl.UInt32,
    "initial_cwnd_pkts": pl.UInt32,
    "delivery_rate_bytes_per_s": pl.UInt64,
    "receiver_initial_window_bytes": pl.UInt32,
    "mss_bytes": pl.UInt32,
    "prefix": pl.String,
    "local_port": pl.UInt16,
    "transfer_index": pl.UInt32,
    "rule": pl.String,
    "arm": pl.String,
    "control": pl.String,
}
"""What is read of a file; docs/records.md says what the columns mean."""

BURN_IN = "burn_in"
"""A column that says what is to be left out of slices of time. It need not be there."""

REMOTE = ("s3://", "gs://", "gcs://", "az://", "azure://", "abfs://", "abfss://")
"""Buckets, which polars reads by itself."""

_NAME = re.compile(r"transfers-\w+-(?P<pid>\d+)-(?P<number>\d+)\.parquet$")
_MAGIC = b"PAR1"
_LOST = ("headstart.lost", "headstart.dropped")
"""Of a file's metadata: how many records found no room in the kernel, or on the disk."""


class RecordsError(Exception):
    """Records that cannot be read or compared. The text says which, why, and what to do."""


@dataclass(frozen=True)
class Source:
    """Files of records, found and looked into.

    Attributes:
        files: Paths and URLs, in order.
        missing: Files of which the names of the others tell that they were there.
        lost: Records that the files say are in none, and those that are in them. None where some
            file does not say: of a killed daemon, an earlier version, or in a bucket.
    """

    files: tuple[str, ...]
    missing: tuple[str, ...]
    lost: tuple[int, int] | None = None


@dataclass(frozen=True)
class Transfers:
    """The completed transfers of one experiment, a value each. Times are in us.

    Attributes:
        arms: Names; the first is the base.
        arm: Place in `arms`.
        prefixes: Names, sorted.
        prefix: Place in `prefixes`.
        rtt_us: The least of the transfer and of what was known at its beginning, which for the
            first of a connection is the handshake's, as in the paper: what the arm itself puts into
            a queue is not in it. NaN where there was no sample.
        first: The first of its connection.
        rate_bytes_per_s: The delivery rate; 0 where there was none.
        segments: `bytes` in segments of one MSS, rounded up.
        controls: A row for each arm and congestion control: `arm`, `control`, `transfers`,
            `initial_cwnd_pkts` (median of first transfers).
        cluster: What is alike within and is drawn again as a whole: the prefix, or the slice of
            time. Numbers from 0.
        clusters: How many there are.
        slice_us: Where slices of time were assigned: their length.
        burn_in: Transfers that the daemon marked as of the burn-in, which are in nothing else.
        cut_arm: Of the transfers that ended before all was acknowledged, which are in nothing else.
        cut_cluster: Of the same.
        others: Transfers that are not of the experiment.
    """

    arms: tuple[str, ...]
    rules: tuple[str, ...]
    arm: NDArray[np.int8]
    prefixes: tuple[str, ...]
    prefix: NDArray[np.int32]
    start_us: NDArray[np.int64]
    latency_us: NDArray[np.int64]
    bytes: NDArray[np.int64]
    retransmitted_bytes: NDArray[np.int64]
    rto_count: NDArray[np.int32]
    rtt_us: NDArray[np.float32]
    first: NDArray[np.bool_]
    rate_bytes_per_s: NDArray[np.int64]
    segments: NDArray[np.int32]
    receiver_window_bytes: NDArray[np.int32]
    port: NDArray[np.int32]
    controls: pl.DataFrame
    cut_arm: NDArray[np.int8]
    cut_cluster: NDArray[np.int32]
    cluster: NDArray[np.int32]
    clusters: int
    slice_us: int | None
    others: int
    burn_in: int
    notes: tuple[str, ...] = field(default=())

    @property
    def count(self) -> int:
        """How many."""
        return int(self.arm.size)

    def with_base(self, base: str) -> "Transfers":
        """The same with another arm as the first."""
        if base not in self.arms:
            raise RecordsError(
                f'no arm is called "{base}"; these are recorded: {", ".join(self.arms)}'
            )
        order = (base, *(arm for arm in self.arms if arm != base))
        moved = np.array([order.index(arm) for arm in self.arms], dtype=np.int8)
        return replace(self, arms=order, arm=moved[self.arm], cut_arm=moved[self.cut_arm])


def find(names: list[str]) -> Source:
    """The files that paths, folders, patterns and URLs stand for.

    Raises:
        RecordsError: Nothing is there, or a file is no whole Parquet file with these columns.
    """
    files: list[str] = []
    for name in names:
        files += [file for file in _files_of(name) if file not in files]
    for file in files:
        _look_into(file)
    return Source(tuple(files), _missing(files), _lost(files))


def _files_of(name: str) -> list[str]:
    if name.startswith(REMOTE):
        whole = name.endswith(".parquet") or "*" in name
        return [name if whole else f"{name.rstrip('/')}/**/*.parquet"]
    path = Path(name)
    if path.is_dir():
        found = sorted(str(file) for file in path.rglob("*.parquet"))
        if not found:
            left = next(path.rglob("*.spool"), None)
            hint = (
                f"{left.name} is not closed yet: records.rotate in the configuration says when"
                if left
                else "give the folder of records.dir in the daemon's configuration"
            )
            raise RecordsError(f"{name}: no *.parquet is in this folder; {hint}")
        return found
    if path.is_file():
        return [name]
    found = sorted(glob.glob(name, recursive=True))  # noqa: PTH207 (an absolute pattern, too)
    if not found:
        what = "matches no file" if glob.has_magic(name) else "no such file or folder"
        raise RecordsError(f"{name}: {what}; give files, folders, patterns or URLs of buckets")
    return [file for file in found if Path(file).is_file()]


def _look_into(file: str) -> None:
    """Magic, footer and columns; the rows come later."""
    if file.startswith(REMOTE):
        schema = _or_fail(file, lambda: dict(pl.scan_parquet(file).collect_schema()))
    else:
        try:
            with Path(file).open("rb") as opened:
                begins = opened.read(len(_MAGIC))
        except OSError as error:
            raise RecordsError(
                f"{file}: cannot be read: {error.strerror or error}; check its permissions"
            ) from error
        if begins != _MAGIC:
            what = "is empty" if not begins else "is no Parquet file"
            raise RecordsError(
                f"{file}: {what}; leave it out, or give the *.parquet that the daemon closed"
            )
        schema = _or_fail(file, lambda: dict(pl.read_parquet_schema(file)))
    for name, dtype in COLUMNS.items():
        if name not in schema:
            raise RecordsError(
                f'{file}: lacks the column "{name}": these are no records of this version of '
                "`headstart run`; leave the file out"
            )
        # A copy by another tool may have made wider or narrower numbers of them.
        fits = schema[name] == dtype or (dtype.is_integer() and schema[name].is_integer())
        if not fits:
            raise RecordsError(
                f'{file}: column "{name}" is {schema[name]}, not {dtype.__name__}; '
                "leave the file out, or copy it again as it was"
            )


def _or_fail(file: str, work: Callable[[], Any]) -> Any:
    try:
        return work()
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if file.startswith(REMOTE):
            hint = "check the URL, the credentials and the region in the environment"
        else:
            hint = "it is cut short or damaged: copy it again, or leave it out"
        raise RecordsError(f"{file}: cannot be read as Parquet: {reason}; {hint}") from error


def _missing(files: list[str]) -> tuple[str, ...]:
    """Gaps in the numbers that a daemon gives its files."""
    numbers: dict[tuple[str, str], list[int]] = {}
    for file in files:
        if match := _NAME.search(file):
            key = (str(Path(file).parent), match["pid"])
            numbers.setdefault(key, []).append(int(match["number"]))
    return tuple(
        f"{folder}/transfers-*-{pid}-{number}.parquet"
        for (folder, pid), found in sorted(numbers.items())
        for number in range(min(found), max(found))
        if number not in set(found)
    )


def _lost(files: list[str]) -> tuple[int, int] | None:
    # polars reads the metadata of local files alone.
    if any(file.startswith(REMOTE) for file in files):
        return None
    gone, made = 0, 0
    for file in files:
        says = _or_fail(file, partial(pl.read_parquet_metadata, file))
        counts = [says.get(key, "") for key in _LOST]
        if not all(count.isdecimal() for count in counts):
            return None
        gone += sum(int(count) for count in counts)
        made += _or_fail(file, partial(_rows, file))
    return gone, made


def _rows(file: str) -> int:
    return int(pl.scan_parquet(file).select(pl.len()).collect().item())


def load(
    source: Source,
    rule: str | None = None,
    *,
    split_seed: int | None = None,
    slice_us: int | None = None,
) -> Transfers:
    """The transfers of the experiment.

    Args:
        source: Where they are.
        rule: Of this rule alone. Without it: of the rules that have several arms.
        split_seed: Where no rule has several arms, each prefix is given one of two by chance.
        slice_us: What was assigned are slices of the wall clock, of this length.

    Raises:
        RecordsError: Nothing is recorded, there is one arm alone, or there are several experiments.
    """
    # Apart, so that the many are never copied to leave out the few.
    done = _read(source.files, pl.col("complete"))
    cut = _read(source.files, ~pl.col("complete"))
    burn_in = sum(map(_burn_in, source.files))
    where = _several(source.files)
    if not done.height + cut.height:
        raise RecordsError(
            f"{where}: nothing is recorded there; is a rule matched? "
            "`headstart status` says how often"
        )
    recorded = done.height + cut.height
    both = pl.concat([one.select("rule", "arm").unique() for one in (done, cut)]).unique()
    chosen = _choose(both, rule, where, split=split_seed is not None)
    if set(chosen) != set(both["rule"].cast(pl.String)):
        wanted = pl.col("rule").cast(pl.String).is_in(chosen)
        done, cut = done.filter(wanted), cut.filter(wanted)
    others = recorded - done.height - cut.height
    if done.is_empty():
        raise RecordsError(f"{where}: no transfer of {', '.join(chosen)} was completed")
    prefixes, prefix = _codes(pl.concat([done["prefix"], cut["prefix"]]))
    arms, arm = _codes(pl.concat([done["arm"], cut["arm"]]))
    notes = ()
    if split_seed is not None and len(arms) == 1:
        arms, arm = ("A", "B"), _split(len(prefixes), split_seed)[prefix]
        notes = ("the records have one arm: each prefix was given A or B by chance",)
    cluster, clusters = prefix, len(prefixes)
    if slice_us is not None:
        start_us = pl.concat([done["start"], cut["start"]]).dt.epoch("us").to_numpy()
        slices, cluster = np.unique(start_us // slice_us, return_inverse=True)
        cluster, clusters = cluster.astype(np.int32), slices.size
    arm, cut_arm = arm[: done.height], arm[done.height :]
    cluster, cut_cluster = cluster[: done.height], cluster[done.height :]
    prefix = prefix[: done.height]
    if empty := [name for at, name in enumerate(arms) if not (arm == at).any()]:
        raise RecordsError(
            f"{where}: no transfer of the arm {empty[0]} was completed; "
            "give records of a longer time"
        )
    return Transfers(
        arms=arms,
        rules=tuple(sorted(chosen)),
        arm=arm.astype(np.int8),
        prefixes=prefixes,
        prefix=prefix,
        start_us=done["start"].dt.epoch("us").to_numpy(),
        latency_us=_whole(done, "latency_us", np.int64),
        bytes=_whole(done, "bytes", np.int64),
        retransmitted_bytes=_whole(done, "retransmitted_bytes", np.int64),
        rto_count=_whole(done, "rto_count", np.int32),
        rtt_us=_rtt_us(done),
        first=(done["transfer_index"] == 0).to_numpy(),
        rate_bytes_per_s=_whole(done, "delivery_rate_bytes_per_s", np.int64),
        segments=_segments(done),
        receiver_window_bytes=_whole(done, "receiver_initial_window_bytes", np.int32),
        port=_whole(done, "local_port", np.int32),
        controls=_controls(done, arms, arm),
        cut_arm=cut_arm.astype(np.int8),
        cut_cluster=cut_cluster,
        cluster=cluster,
        clusters=clusters,
        slice_us=slice_us,
        burn_in=burn_in,
        others=others,
        notes=notes,
    )


def _read(files: tuple[str, ...], which: pl.Expr) -> pl.DataFrame:
    """Some of the rows, names as numbers."""
    names = ("prefix", "rule", "arm", "control")
    wanted = [
        pl.col(name).cast(pl.Categorical) if name in names else pl.col(name) for name in COLUMNS
    ]
    numbers = [pl.col(name).cast(dtype) for name, dtype in COLUMNS.items() if dtype.is_integer()]

    def read(some: list[str]) -> pl.DataFrame:
        scans = []
        for file in some:
            scan = pl.scan_parquet(file)
            kept = which & ~pl.col(BURN_IN) if _has_burn_in(file) else which
            scan = scan.filter(kept).select(wanted).with_columns(numbers)
            scans.append(scan.with_columns(pl.col("start").dt.cast_time_unit("us")))
        return pl.concat(scans).collect(engine="streaming")

    try:
        return read(list(files))
    except (OSError, pl.exceptions.PolarsError):
        # Which of them it was, the error does not say.
        return pl.concat([_or_fail(file, lambda file=file: read([file])) for file in files])


def _has_burn_in(file: str) -> bool:
    return BURN_IN in pl.scan_parquet(file).collect_schema()


def _burn_in(file: str) -> int:
    if not _has_burn_in(file):
        return 0
    return int(pl.scan_parquet(file).select(pl.col(BURN_IN).sum()).collect().item())


def _several(files: tuple[str, ...]) -> str:
    return files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"


def _choose(recorded: pl.DataFrame, rule: str | None, where: str, *, split: bool) -> list[str]:
    """The rules of the experiment."""
    pairs = recorded.select(pl.col("rule").cast(pl.String), pl.col("arm").cast(pl.String))
    arms = {name: sorted(pairs.filter(rule=name)["arm"]) for name in sorted(pairs["rule"].unique())}
    told = "; ".join(f"{name} ({', '.join(of)})" for name, of in arms.items())
    if rule is not None and rule not in arms:
        raise RecordsError(f'{where}: no transfer of a rule "{rule}"; recorded are: {told}')
    chosen = [rule] if rule is not None else [name for name, of in arms.items() if len(of) > 1]
    if rule is not None and len(arms[rule]) == 1 and not split:
        chosen = []
    if not chosen and split:
        return [rule] if rule is not None else list(arms)
    if not chosen:
        raise RecordsError(
            f"{where}: there is one arm alone: {told}. An experiment needs two: "
            '[experiment] and a rule with startup = "experiment" (docs/experiment.md). '
            "With --aa the prefixes are split by chance, to check the method"
        )
    if len({tuple(arms[name]) for name in chosen}) > 1:
        raise RecordsError(f"{where}: several experiments are recorded: {told}; choose with --rule")
    return chosen


def _codes(names: pl.Series) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Each value's place among the sorted names."""
    unique = names.unique()
    order = unique.cast(pl.String).arg_sort()
    physical = unique.to_physical().gather(order).to_numpy()
    places = np.zeros(int(physical.max()) + 1, dtype=np.int32)
    places[physical] = np.arange(physical.size, dtype=np.int32)
    return tuple(unique.cast(pl.String).gather(order)), places[names.to_physical().to_numpy()]


def _split(prefixes: int, seed: int) -> NDArray[np.int8]:
    chance = np.random.default_rng([seed, prefixes])
    return (chance.permutation(prefixes) % 2).astype(np.int8)


def _whole(table: pl.DataFrame, name: str, dtype: type) -> NDArray:
    return table[name].fill_null(0).to_numpy().astype(dtype)


def _rtt_us(table: pl.DataFrame) -> NDArray[np.float32]:
    least = table.select(pl.min_horizontal("rtt_min_us", "rtt_start_us").cast(pl.Float32))
    return least.to_series().fill_null(float("nan")).to_numpy()


def _segments(table: pl.DataFrame) -> NDArray[np.int32]:
    mss = np.maximum(_whole(table, "mss_bytes", np.int64), 1)
    return np.minimum(-(-_whole(table, "bytes", np.int64) // mss), 2**31 - 1).astype(np.int32)


def _controls(table: pl.DataFrame, arms: tuple[str, ...], arm: NDArray) -> pl.DataFrame:
    """What the arms really had."""
    first = pl.col("initial_cwnd_pkts").filter(pl.col("transfer_index") == 0)
    rows = (
        table.select("control", "initial_cwnd_pkts", "transfer_index")
        .with_columns(place=pl.Series(arm))
        .group_by("place", pl.col("control").cast(pl.String))
        .agg(transfers=pl.len(), initial_cwnd_pkts=first.median())
        .sort("place", "transfers", descending=[False, True])
    )
    names = pl.Series("arm", [arms[place] for place in rows["place"]], dtype=pl.String)
    return rows.with_columns(names).select("arm", "control", "transfers", "initial_cwnd_pkts")
