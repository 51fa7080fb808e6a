"""`headstart-lab ab`: from files to the answer."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from ab_records import Traffic, table, write
from typer.testing import CliRunner, Result

from headstart.ab import Analysis, Options, RecordsError, analyse
from headstart.ab.checks import State
from headstart.ab.resample import Comparison
from headstart.ab.verdict import Advice
from headstart.lab import app

DRAWS = 400


def answer(*files: Path, **options: object) -> Analysis:
    """The answer, of few draws."""
    given = replace(Options(draws=DRAWS), **options)
    return analyse([str(file) for file in files], given)


def lab(*arguments: str | Path) -> Result:
    """Runs `headstart-lab ab` with `arguments`."""
    return CliRunner().invoke(app, ["ab", *(str(argument) for argument in arguments)])


def line(analysis: Analysis, table: str, label: str) -> Comparison:
    found = analysis.contrasts[0].table(table).line(label)
    assert found is not None, (table, label)
    assert found.comparison is not None, (table, label)
    return found.comparison


def state(analysis: Analysis, key: str) -> State:
    return next(check.state for check in analysis.checked.checks if check.key == key)


@pytest.fixture(scope="module")
def gained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The second arm takes 20 % less; each transfer draws its arm."""
    folder = tmp_path_factory.mktemp("gained")
    return write(folder / "a.parquet", gain=0.8, by_prefix=False)


def test_a_known_gain_is_found_and_its_interval_holds_the_truth(gained: Path) -> None:
    analysis = answer(gained)
    for label in ("mean", "10 %", "50 %", "90 %"):
        found = line(analysis, "latency", label)
        assert found.low_pct < 20 < found.high_pct, label
        assert found.diff_pct == pytest.approx(20, abs=3)
    assert analysis.arms == ("iw3", "iw10"), "the smaller window is the base"
    verdict = analysis.contrasts[0].verdict
    assert verdict.advice is Advice.TAKE
    assert verdict.sentence.startswith("Take iw10 instead of iw3: mean latency falls by ")
    assert verdict.unsaid


def test_the_tables_are_what_numpy_and_polars_say(gained: Path) -> None:
    analysis = answer(gained)
    rows = pl.read_parquet(gained).filter(pl.col("complete"))
    base, other = (rows.filter(arm=arm) for arm in ("iw3", "iw10"))
    found = line(analysis, "latency", "95 %")
    assert found.base == pytest.approx(np.quantile(base["latency_us"] / 1000, 0.95))
    short = line(analysis, "short", "mean")
    small = other.filter(pl.col("bytes") <= 3 * 1448)["latency_us"].mean()
    assert short.other == pytest.approx(small / 1000)
    again = line(analysis, "sent_again", "bytes sent again")
    share = other["retransmitted_bytes"].sum() / other["bytes"].sum()
    assert again.other == pytest.approx(100 * share)
    per_prefix = line(analysis, "per_prefix", "50 %")
    means = base.group_by("prefix").agg(pl.col("latency_us").mean() / 1000)["latency_us"]
    assert per_prefix.base == pytest.approx(np.quantile(means, 0.5), rel=0.02)
    size = analysis.contrasts[0].table("size")
    assert sum(one.share_pct for one in size.lines) == pytest.approx(100)
    assert [one.label for one in size.lines] == ["3", "4", "7", "10", "15", "20", "30", "50", ">50"]


def test_alike_arms_look_alike_and_a_worse_arm_is_refused(tmp_path: Path) -> None:
    alike = write(tmp_path / "aa.parquet", by_prefix=False)
    analysis = answer(alike, alike=True)
    assert analysis.contrasts[0].verdict.advice is Advice.SOUND
    worse = write(tmp_path / "worse.parquet", by_prefix=False, gain=1.3)
    verdict = answer(worse).contrasts[0].verdict
    assert verdict.advice is Advice.KEEP
    assert verdict.sentence.startswith("Keep iw3: under iw10 mean latency rises")
    assert answer(worse, alike=True).contrasts[0].verdict.advice is Advice.UNSOUND


def test_a_gain_that_costs_retransmissions_is_to_be_weighed(tmp_path: Path) -> None:
    file = write(tmp_path / "a.parquet", by_prefix=False, gain=0.8, again=0.6)
    verdict = answer(file).contrasts[0].verdict
    assert verdict.advice is Advice.WEIGH
    assert "bytes sent again rise" in verdict.sentence


def test_little_traffic_is_undecided_and_says_how_much_more_would_do(tmp_path: Path) -> None:
    file = write(tmp_path / "a.parquet", transfers=600, prefixes=100, gain=0.97)
    verdict = answer(file).contrasts[0].verdict
    assert verdict.advice is Advice.UNDECIDED
    assert "would" in verdict.sentence


@pytest.mark.parametrize("by_prefix", [True, False])
def test_a_sample_ratio_that_is_not_the_configured_one_forbids_to_act(
    tmp_path: Path, by_prefix: bool
) -> None:
    wrong = write(tmp_path / "w.parquet", by_prefix=by_prefix, share=0.42, prefixes=2500)
    analysis = answer(wrong)
    assert analysis.contrasts[0].verdict.advice is Advice.INVALID
    assert "Do not act" in analysis.contrasts[0].verdict.sentence
    assert analysis.checked.unit == ("prefix" if by_prefix else "connection")
    told = answer(wrong, shares_pct={"iw3": 58.0, "iw10": 42.0})
    assert told.contrasts[0].verdict.advice is not Advice.INVALID


def test_the_sample_ratio_of_fair_arms_is_not_called_wrong(tmp_path: Path) -> None:
    for seed in range(6):
        file = write(tmp_path / f"{seed}.parquet", seed=seed, transfers=3000)
        analysis = answer(file)
        assert state(analysis, "ratio_prefixes") is State.GOOD
        assert state(analysis, "ratio_connections") is State.GOOD


def test_arms_with_other_clients_are_not_compared(tmp_path: Path) -> None:
    file = write(tmp_path / "a.parquet", rtt_shift=1.5, prefixes=1000, transfers=10_000)
    analysis = answer(file)
    assert state(analysis, "inputs") is State.BAD
    assert "RTT (ms)" in analysis.contrasts[0].verdict.sentence


def test_harm_to_the_other_arm_on_a_shared_path_is_seen(tmp_path: Path) -> None:
    crowd = Traffic(transfers=20_000, prefixes=40, by_prefix=False, spread=0.1)
    harmed = answer(write(tmp_path / "a.parquet", crowd, harm=1.5))
    found = line(harmed, "neighbours", "mean")
    assert found.diff_pct == pytest.approx(-50, abs=15)
    assert "the base's transfers beside one of this arm" in harmed.contrasts[0].verdict.sentence
    fair = answer(write(tmp_path / "b.parquet", crowd))
    assert abs(line(fair, "neighbours", "mean").diff_pct) < 15
    apart = answer(write(tmp_path / "c.parquet"))
    assert apart.contrasts[0].table("neighbours").lines == []


def test_a_prefix_that_has_one_arm_is_compared_with_others(tmp_path: Path) -> None:
    analysis = answer(write(tmp_path / "a.parquet"))
    assert "one arm" in analysis.contrasts[0].table("per_prefix").note


def test_the_bandwidth_of_a_file_decides_the_buckets_and_is_an_input(tmp_path: Path) -> None:
    records = write(tmp_path / "a.parquet", prefixes=40)
    given = tmp_path / "bandwidth.csv"
    prefixes = pl.read_parquet(records)["prefix"].unique(maintain_order=True)
    pl.DataFrame({"prefix": prefixes, "bits_per_s": 300_000}).write_csv(given)
    analysis = answer(records, bandwidth=given)
    shares = {one.label: one.share_pct for one in analysis.contrasts[0].table("bandwidth").lines}
    assert shares["512"] == pytest.approx(100)
    assert all(one.is_input for one in analysis.checked.inputs)
    with pytest.raises(RecordsError, match="has none of the recorded prefixes"):
        pl.DataFrame({"prefix": ["192.0.2.0/24"], "bits_per_s": [1]}).write_csv(given)
        answer(records, bandwidth=given)


def test_slices_of_time_are_the_samples_where_they_were_assigned(tmp_path: Path) -> None:
    sliced = Traffic(transfers=8000, slice_s=60)
    told = wrong = 0
    for seed in range(12):
        file = write(tmp_path / f"{seed}.parquet", sliced, seed=seed)
        analysis = answer(file, slice_us=60_000_000)
        assert analysis.checked.unit == "slice"
        assert state(analysis, "ratio_slices") is State.GOOD
        assert "slices of time" in next(
            check.title for check in analysis.checked.checks if check.key == "samples"
        )
        told += line(analysis, "latency", "mean").p < 0.05
        wrong += line(answer(file), "latency", "mean").p < 0.05
    assert told <= 3, "alike arms, but each slice has its own load"
    assert wrong >= 4, "prefixes are in both arms, and know nothing of the slices' load"


def test_the_burn_in_of_slices_is_left_out(tmp_path: Path) -> None:
    rows = table(Traffic(by_prefix=False, gain=0.8))
    late = pl.int_range(pl.len()) % 4 == 0
    marked = rows.with_columns(
        burn_in=late, latency_us=pl.when(late).then(10**9).otherwise("latency_us").cast(pl.UInt64)
    )
    marked.write_parquet(tmp_path / "a.parquet")
    rows.filter(~late).write_parquet(tmp_path / "b.parquet")
    with_mark, without = answer(tmp_path / "a.parquet"), answer(tmp_path / "b.parquet")
    assert with_mark.burn_in == 1500
    assert line(with_mark, "latency", "mean") == line(without, "latency", "mean")


def test_three_arms_are_held_against_the_same_base(tmp_path: Path) -> None:
    rows = table(Traffic(by_prefix=False, gain=0.8))
    third = table(Traffic(by_prefix=False, seed=2)).with_columns(arm=pl.lit("iw20"))
    pl.concat([rows, third.filter(pl.int_range(pl.len()) % 2 == 0)]).write_parquet(
        tmp_path / "a.parquet"
    )
    analysis = answer(tmp_path / "a.parquet", base="iw10")
    assert [contrast.other for contrast in analysis.contrasts] == ["iw20", "iw3"]


def test_of_one_arm_prefixes_are_split_by_chance_to_check_the_method(tmp_path: Path) -> None:
    table(Traffic(arms=("all", "all"))).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(RecordsError, match="one arm alone"):
        answer(tmp_path / "a.parquet")
    analysis = answer(tmp_path / "a.parquet", alike=True)
    assert analysis.arms == ("A", "B")
    assert analysis.contrasts[0].verdict.advice is Advice.SOUND
    assert state(analysis, "ratio_prefixes") is State.GOOD


def test_rules_without_arms_are_left_out_and_several_experiments_are_told(tmp_path: Path) -> None:
    plain = table(Traffic(arms=("all", "all"), transfers=500)).with_columns(rule=pl.lit("rest"))
    rows = table(Traffic(gain=0.8, by_prefix=False))
    pl.concat([rows, plain]).write_parquet(tmp_path / "a.parquet")
    assert answer(tmp_path / "a.parquet").others == 500
    other = table(Traffic(arms=("x", "y"), transfers=500)).with_columns(rule=pl.lit("api"))
    pl.concat([rows, other]).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(RecordsError, match=r"several experiments .* choose with --rule"):
        answer(tmp_path / "b.parquet")
    assert answer(tmp_path / "b.parquet", rule="web").arms == ("iw3", "iw10")
    with pytest.raises(RecordsError, match='no transfer of a rule "wbe"'):
        answer(tmp_path / "b.parquet", rule="wbe")


def test_the_folder_has_page_numbers_and_figures_that_need_nothing_else(
    gained: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    result = lab(gained, "--out", out, "--shares", "iw3=50,iw10=50")
    assert result.exit_code == 0, result.output
    assert result.stdout.rstrip().endswith(str(out / "report.html"))
    assert "VERDICT\nTake iw10 instead of iw3" in result.stdout
    page = (out / "report.html").read_text()
    assert "Take iw10 instead of iw3" in page
    assert 'src="http' not in page and 'href="http' not in page and "url(" not in page
    names = {"figure5", "figure6", "figure7", "figure8", "latency", "table3"}
    for kind, magic in (("png", b"\x89PNG"), ("pdf", b"%PDF")):
        drawn = {file.stem: file for file in (out / "figures").glob(f"*.{kind}")}
        assert set(drawn) == names
        assert all(file.read_bytes().startswith(magic) for file in drawn.values())
    document = json.loads((out / "ab.json").read_text())
    assert document["contrasts"][0]["advice"] == "take"
    assert document["method"]["correction"] == "holm"


def test_the_same_records_and_seed_give_the_same_bytes(gained: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert lab(gained, "--out", tmp_path / name).exit_code == 0
    for file in sorted((tmp_path / "a").rglob("*.*")):
        twin = tmp_path / "b" / file.relative_to(tmp_path / "a")
        assert file.read_bytes() == twin.read_bytes(), file.name


def test_folders_and_patterns_are_read_and_a_gap_in_the_numbers_is_told(tmp_path: Path) -> None:
    for number in (1, 2, 4):
        write(
            tmp_path / f"transfers-20260101T0{number}0000Z-77-{number}.parquet",
            seed=number,
            transfers=800,
        )
    whole = answer(tmp_path)
    assert whole.transfers > 2300
    assert state(whole, "lost") is State.WARNING
    assert whole.source.missing == (f"{tmp_path}/transfers-*-77-3.parquet",)
    two = answer(tmp_path / "*-77-[12].parquet")
    assert state(two, "lost") is State.UNKNOWN
    assert state(answer(tmp_path / "*-77-[12].parquet", lost=(0, 10)), "lost") is State.GOOD
    assert state(answer(tmp_path / "*-77-[12].parquet", lost=(5, 10)), "lost") is State.BAD


def test_what_is_wrong_with_a_file_is_told_with_its_name_and_what_to_do(
    tmp_path: Path, gained: Path
) -> None:
    good = tmp_path / "good.parquet"
    shutil.copy(gained, good)
    bad: dict[str, str] = {}

    def put(name: str, content: bytes, words: str) -> None:
        (tmp_path / name).write_bytes(content)
        bad[name] = words

    whole = gained.read_bytes()
    put("text.parquet", b"start,latency_us\n", "is no Parquet file; leave it out")
    put("empty.parquet", b"", "is empty")
    put("cut.parquet", whole[: len(whole) // 2], "cut short or damaged: copy it again")
    middle = bytearray(whole)
    middle[5000:60_000] = bytes(55_000)
    put("damaged.parquet", bytes(middle), "cut short or damaged: copy it again")
    pl.read_parquet(gained).drop("arm").write_parquet(tmp_path / "old.parquet")
    bad["old.parquet"] = 'lacks the column "arm"'
    pl.read_parquet(gained).with_columns(bytes=pl.lit("x")).write_parquet(tmp_path / "t.parquet")
    bad["t.parquet"] = 'column "bytes" is String, not UInt64'
    for name, words in bad.items():
        result = lab(good, tmp_path / name)
        assert result.exit_code == 2, name
        assert result.stderr.startswith(f"headstart-lab: {tmp_path / name}"), result.stderr
        assert words in result.stderr, (name, result.stderr)
        assert "Traceback" not in result.output
    pl.read_parquet(gained).clear().write_parquet(tmp_path / "nothing.parquet")
    result = lab(tmp_path / "nothing.parquet")
    assert result.exit_code == 2 and "nothing is recorded there" in result.stderr
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "transfers-1-1-1.spool").write_bytes(b"x")
    assert "is not closed yet" in lab(tmp_path / "open").stderr
    assert "no such file" in lab(tmp_path / "none").stderr
    assert "matches no file" in lab(tmp_path / "none*.parquet").stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--base", "iw4"), 'no arm is called "iw4"; these are recorded: iw10, iw3'),
        (("--shares", "iw3:50"), "write arms and percents"),
        (("--shares", "iw3=50"), "no share is given for the arm iw10"),
        (("--config", "/none.toml"), "cannot be read"),
        (("--status", "/none.json"), "cannot be read"),
        (("--bandwidth", "/none.csv"), "no table of bandwidths"),
        (("--shares", "a=1", "--config", "x"), "not both"),
        (("--slice", "10 minutes"), "write such as 600s"),
    ],
)
def test_wrong_options_end_with_code_2_and_say_what_to_write(
    gained: Path, options: tuple[str, ...], words: str
) -> None:
    result = lab(gained, *options)
    assert result.exit_code == 2
    assert words in result.stderr, result.stderr


def test_shares_and_base_come_from_the_daemons_configuration(gained: Path, tmp_path: Path) -> None:
    config = tmp_path / "headstart.toml"
    arm = '[[experiment.arm]]\nname = "{}"\nshare_percent = {}\nstartup = "su_standard"\n'
    config.write_text(
        '[experiment]\nname = "x"\nsalt = "y"\n' + arm.format("iw10", 50) + arm.format("iw3", 50)
    )
    result = lab(gained, "--config", config)
    assert "IW3 AGAINST IW10" in result.stdout, "the first arm is the base"
    named = config.read_text().replace('salt = "y"', 'salt = "y"\nbaseline = "iw3"')
    config.write_text(named.replace("salt", 'unit = "time"\nslice = "60s"\nsalt'))
    result = lab(gained, "--config", config)
    assert "IW10 AGAINST IW3" in result.stdout, "or the one that is called so"
    assert "whole slices of time drawn again" in result.stdout
    config.write_text("[records]\n")
    assert "has no [experiment]" in lab(gained, "--config", config).stderr


def test_an_unwritable_folder_ends_with_code_1(gained: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = lab(gained, "--out", tmp_path / "file" / "out")
    assert result.exit_code == 1
    assert "choose another --out" in result.stderr


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(40))
def test_whatever_the_records_hold_there_is_an_answer_or_an_error(
    seed: int, tmp_path: Path
) -> None:
    """Few rows, of extreme values, with holes."""
    chance = np.random.default_rng(seed)
    rows = int(chance.integers(1, 60))
    made = table(Traffic(transfers=rows, prefixes=int(chance.integers(1, 6)), seed=seed))
    extremes = {
        "latency_us": [0, 1, 86_400_000_000],
        "bytes": [0, 1, 10**12],
        "retransmitted_bytes": [0, 10**12],
        "rtt_min_us": [None, 0, 2**32 - 1],
        "rtt_start_us": [None, 0, 2**32 - 1],
        "delivery_rate_bytes_per_s": [None, 0, 10**11],
        "mss_bytes": [0, 536, 8960],
        "receiver_initial_window_bytes": [0, 2**31 - 1],
    }
    for name, values in extremes.items():
        picked = [values[at] for at in chance.integers(0, len(values), rows)]
        odd = pl.Series(picked, dtype=made.schema[name])
        keep = pl.Series(chance.random(rows) < 0.5)
        made = made.with_columns(pl.when(keep).then(pl.col(name)).otherwise(odd).alias(name))
    made = made.with_columns(
        complete=pl.Series(chance.random(rows) < 0.7),
        transfer_index=pl.Series(chance.integers(0, 3, rows)).cast(pl.UInt32),
    )
    made.write_parquet(tmp_path / "a.parquet")
    try:
        analysis = answer(tmp_path / "a.parquet", draws=50)
    except RecordsError:
        return
    assert len(analysis.contrasts) == 1
    assert analysis.contrasts[0].verdict.sentence


def test_a_file_says_how_many_records_are_missing_and_the_check_sums_them_up(
    tmp_path: Path,
) -> None:
    for number, lost in ((1, "0"), (2, "40")):
        rows = table(Traffic(seed=number, transfers=800))
        counts = {"headstart.lost": lost, "headstart.dropped": "0"}
        rows.write_parquet(tmp_path / f"transfers-x-77-{number}.parquet", metadata=counts)
    assert state(answer(tmp_path / "*-77-1.parquet"), "lost") is State.GOOD
    both = answer(tmp_path)
    assert state(both, "lost") is State.BAD
    assert both.source.lost is not None
    assert both.source.lost[0] == 40
    # What the daemon says itself counts for more than its files.
    assert state(answer(tmp_path, lost=(1, 10_000)), "lost") is State.WARNING
    write(tmp_path / "transfers-x-77-3.parquet", seed=3, transfers=800)
    assert state(answer(tmp_path), "lost") is State.UNKNOWN
