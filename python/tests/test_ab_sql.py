"""The SQL files compute what the Python package computes, from the same records."""

from importlib.resources import files
from pathlib import Path

import duckdb
import pytest
import sqlglot
from ab_records import write

from headstart.ab import Analysis, Options, analyse

SQL = files("headstart.ab").joinpath("sql")
TABLES = ("arms", "figure8", "figures567", "neighbours", *(f"table{n}" for n in range(3, 10)))


def text(name: str) -> str:
    return SQL.joinpath(f"{name}.sql").read_text(encoding="utf-8")


def through_duckdb(statements: str, _dialect: str) -> list[str]:
    return [one for one in statements.split(";\n") if one.strip()]


def through_spark(statements: str, _dialect: str) -> list[str]:
    """Spark's words in DuckDB's, so that they can be run here."""
    return sqlglot.transpile(statements, read="spark", write="duckdb")


@pytest.fixture(params=["duckdb", "spark"])
def answers(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[dict[str, list], Analysis]:
    """Each table's rows as dictionaries, and the package's answer."""
    folder = tmp_path / "records"
    folder.mkdir()
    by_prefix = request.param == "spark"  # both designs are looked at
    for seed in (1, 2):
        write(folder / f"{seed}.parquet", seed=seed, gain=0.8, by_prefix=by_prefix)
    translate = through_duckdb if request.param == "duckdb" else through_spark
    connection = duckdb.connect()
    records = text("duckdb_records").replace("records/*.parquet", f"{folder}/*.parquet")
    if request.param == "spark":
        # What reads files cannot be translated; that it is Spark's can be.
        sqlglot.parse(text("spark_records"), read="spark")
    connection.execute(records)
    for statement in translate(text("transfers"), request.param):
        connection.execute(statement)
    rows = {}
    for name in TABLES:
        (statement,) = translate(text(name), request.param)
        found = connection.execute(statement)
        heads = [column[0] for column in found.description]
        rows[name] = [dict(zip(heads, row, strict=True)) for row in found.fetchall()]
    return rows, analyse([str(folder)], Options(draws=50))


def of(analysis: Analysis, table: str, label: str) -> tuple[float, float]:
    """Of the base and of the other arm."""
    found = analysis.contrasts[0].table(table).line(label)
    assert found is not None and found.comparison is not None, (table, label)
    return found.comparison.base, found.comparison.other


def by_arm(rows: list[dict], value: str, **only: object) -> tuple[float, float]:
    found = {
        row["arm"]: row[value]
        for row in rows
        if all(row[name] == wanted for name, wanted in only.items())
    }
    return found["iw3"], found["iw10"]


QUANTILES = {"10 %": "q10_ms", "50 %": "q50_ms", "90 %": "q90_ms", "95 %": "q95_ms"}


def test_every_table_has_the_packages_numbers(answers: tuple[dict[str, list], Analysis]) -> None:
    rows, analysis = answers
    close = pytest.approx

    assert by_arm(rows["table3"], "mean_ms") == close(of(analysis, "latency", "mean"))
    for label, column in QUANTILES.items():
        assert by_arm(rows["table3"], column) == close(of(analysis, "latency", label))
        assert by_arm(rows["table4"], column)[0] > 0
        assert by_arm(rows["table5"], column) == close(of(analysis, "per_prefix", label))
        for port in (80, 443):
            expected = close(of(analysis, "per_port", f"port {port}, {label}"))
            assert by_arm(rows["table6"], column, local_port=port) == expected
    gained = rows["table3"][0]
    assert gained["arm"] == "iw10"
    mean = analysis.contrasts[0].table("latency").line("mean").comparison
    assert gained["mean_gain_pct"] == close(mean.diff_pct)

    slowest = of(analysis, "slowest", "50 %")
    assert by_arm(rows["table4"], "q50_ms") == close(slowest)
    assert by_arm(rows["table7"], "mean_ms", local_port=None) == close(
        of(analysis, "short", "mean")
    )
    for column, label in (
        ("bytes_again_pct", "bytes sent again"),
        ("transfers_again_pct", "transfers that sent again"),
        ("timeouts_in_100", "timeouts in 100 transfers"),
    ):
        assert by_arm(rows["table8"], column, local_port=None) == close(
            of(analysis, "sent_again", label)
        )
    port = int(analysis.contrasts[0].table("tail").note.split()[1].rstrip(","))
    tail = by_arm(rows["table9"], "q96_ms", local_port=port)
    assert tail == close(of(analysis, "tail", "96 %"))


def test_every_bucket_has_the_packages_numbers(answers: tuple[dict[str, list], Analysis]) -> None:
    rows, analysis = answers
    compared = 0
    for what in ("rtt", "bandwidth", "bdp", "slow_bandwidth", "size"):
        table = analysis.contrasts[0].table(what)
        ends = sorted({row["up_to"] for row in rows["figures567"] if row["what"] == what})
        counted = [line for line in table.lines if sum(line.transfers)]
        for end, line in zip(ends, counted, strict=False):
            if line.comparison is None:
                continue
            means = by_arm(rows["figures567"], "mean_ms", what=what, up_to=end)
            assert means == pytest.approx((line.comparison.base, line.comparison.other))
            many = by_arm(rows["figures567"], "transfers", what=what, up_to=end)
            assert many == line.transfers
            compared += 1
    assert compared > 20


def test_inputs_arms_and_neighbours_are_the_packages(
    answers: tuple[dict[str, list], Analysis],
) -> None:
    rows, analysis = answers
    for one in analysis.checked.inputs:
        for arm, quantiles in zip(analysis.arms, one.quantiles, strict=True):
            (row,) = [
                row for row in rows["figure8"] if row["input"] == one.key and row["arm"] == arm
            ]
            # The package holds RTTs in single precision.
            assert [row[q] for q in ("q10", "q50", "q90", "q99")] == pytest.approx(quantiles, 1e-5)
    for row in analysis.checked.by_arm:
        (found,) = [one for one in rows["arms"] if one["arm"] == row["arm"]]
        for name in ("prefixes", "connections", "transfers", "bytes"):
            assert found[name] == row[name]
    line = analysis.contrasts[0].table("neighbours").line("mean")
    beside = {row["neighbour"]: row for row in rows["neighbours"]}
    if line is None:
        assert "iw10" not in beside
    else:
        assert tuple(beside[arm]["transfers"] for arm in ("iw3", "iw10")) == line.transfers
