"""iw10: retransmissions (Table 8)."""

from functools import partial

import polars as pl
from matplotlib.figure import Figure

from headstart.reproduce import (
    Claim,
    Context,
    Data,
    Experiment,
    Measured,
    Verdict,
    above,
    number,
)
from headstart.reproduce.experiments.initial_window import population
from headstart.reproduce.papers import IW10

SERVICES = (population.SEARCH, population.MAPS, population.PHOTOS)
PRINTED = {
    "AvgDC": {"Web search": (1.55, 0.18), "Maps": (3.27, 0.90), "Photos": (2.25, 0.39)},
    "SlowDC": {"Web search": (2.98, 0.52), "Maps": (3.94, 1.85), "Photos": (4.97, 1.12)},
}
"""Table 8: the baseline's rate and what the experiment adds, in %."""
TRANSFERS = 500_000


def run(context: Context) -> Data:
    """The rate of retransmission of each service in both arms and centres."""
    frames = []
    for name, centre in population.CENTRES.items():
        for service in SERVICES:
            # Web search's responses are those of iw3.
            more = () if service is population.SEARCH else (TRANSFERS,)
            table = population.both_arms(context, centre, service, *more)
            lots = (
                table.with_columns(lot=pl.col("client") % 20)
                .group_by("arm", "lot")
                .agg(sent=pl.col("sent_pkts").sum(), again=pl.col("retransmitted_pkts").sum())
            )
            affected = table.group_by("arm").agg(any=(pl.col("retransmitted_pkts") > 0).mean())
            frames.append(
                lots.join(affected, on="arm").with_columns(
                    centre=pl.lit(name), service=pl.lit(service.name)
                )
            )
    return {"lots": pl.concat(frames)}


def rates(data: Data) -> pl.DataFrame:
    """By centre and service: the rates of both arms in %, their difference and its standard error."""
    keys = ["centre", "service"]
    pivot = data["lots"].pivot(on="arm", index=[*keys, "lot"], values=["sent", "again", "any"])
    ratio = 100 * (
        pl.col("again_exp") / pl.col("sent_exp") - pl.col("again_base") / pl.col("sent_base")
    )
    return pivot.group_by(keys, maintain_order=True).agg(
        base=100 * pl.col("again_base").sum() / pl.col("sent_base").sum(),
        exp=100 * pl.col("again_exp").sum() / pl.col("sent_exp").sum(),
        err=ratio.std() / pl.len().sqrt(),
        any_base=100 * pl.col("any_base").first(),
        any_exp=100 * pl.col("any_exp").first(),
    )


def figure(data: Data, figure: Figure) -> None:
    """Rates of both arms by service, and the printed ones as marks."""
    for axes, name in zip(figure.subplots(1, 2), PRINTED, strict=True):
        rows = rates(data).filter(centre=name)
        for offset, arm in ((-0.2, "base"), (0.2, "exp")):
            positions = [index + offset for index in range(rows.height)]
            label = {"base": "window 3", "exp": "window 10"}[arm]
            axes.bar(positions, rows[arm], width=0.38, label=label)
            printed = [
                base + (added if arm == "exp" else 0) for base, added in PRINTED[name].values()
            ]
            axes.plot(positions, printed, "_", color="#1b1f24", markersize=14)
        axes.set_xticks(range(rows.height), rows["service"].to_list())
        axes.set(ylabel="retransmitted (%)", title=f"{name} (marks: the paper)")
        axes.legend()


def cell(data: Data, centre: str, service: str) -> dict[str, float]:
    """One row of the rates."""
    return rates(data).filter(centre=centre, service=service).row(0, named=True)


def added(data: Data, centre: str, service: str) -> Measured:
    """What the larger window adds to the rate."""
    row = cell(data, centre, service)
    value, half = row["exp"] - row["base"], 1.96 * row["err"]
    note = (
        f"{row['base']:.2f} to {row['exp']:.2f} %; responses with any: {row['any_base']:.1f} to "
        f"{row['any_exp']:.1f} %"
    )
    return Measured(value, value - half, value + half, "percentage points", note)


def more_with_many(data: Data, centre: str) -> Measured:
    """What the larger window adds to Maps, over what it adds to Web search."""
    maps, search = (cell(data, centre, name) for name in ("Maps", "Web search"))
    ratio = (maps["exp"] - maps["base"]) / (search["exp"] - search["base"])
    return Measured(ratio, ratio, ratio, "times")


OWN_BUFFER = (
    "Here the window adds losses in the client's own buffer alone, of 64 KiB and more, which a single response seldom fills; "
    "those that a burst of ten causes elsewhere are not modelled. Where many connections meet in that buffer (Maps, Photos) "
    "most of the paper's increase comes out"
)

EXPERIMENT = Experiment(
    name="iw10",
    paper=IW10,
    section="section 4.2, Table 8",
    title="retransmissions",
    did="The rate of retransmitted to unique bytes, by service and data centre.",
    assumptions=(
        *population.ASSUMPTIONS,
        "Photos: four connections at once, mean size 28 KB (not printed). Rates are of packets.",
        "The baseline of Web search is an input of the population, and no claim.",
    ),
    run=run,
    figure=figure,
    claims=(
        *(
            Claim(
                f"{centre}, {service}: what a window of 10 adds to the rate of retransmission",
                f"{paper:g} percentage points, from {base:g} % (Table 8)",
                partial(added, centre=centre, service=service),
                number(paper),
                dict.fromkeys((Verdict.PARTLY, Verdict.NOT), OWN_BUFFER),
            )
            for centre, services in PRINTED.items()
            for service, (base, paper) in services.items()
        ),
        *(
            Claim(
                f"{centre}: Maps, with many connections, has the greater increase",
                f"{PRINTED[centre]['Maps'][1] / PRINTED[centre]['Web search'][1]:.1f} times that of Web search (Table 8)",
                partial(more_with_many, centre=centre),
                above(1),
            )
            for centre in PRINTED
        ),
    ),
)
