"""ad2: file sizes, ten connections (section 6.2, Figure 3)."""

import polars as pl
from matplotlib.figure import Figure

from headstart.reproduce import Claim, Context, Data, Experiment, Verdict, share
from headstart.reproduce.experiments.adaptive import common
from headstart.reproduce.papers import ADAPTIVE
from headstart.reproduce.style import line

CONNECTIONS = 10
SIZES_PKTS = [5, 10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100]


def run(context: Context) -> Data:
    """Both scenarios, both senders, each size."""
    sizes = context.pick(SIZES_PKTS, [5, 10, 20, 40, 70, 100])
    cases = [
        (
            {"scenario": link, "packets": packets},
            common.scenario(link, [common.files("files", CONNECTIONS, packets)]),
        )
        for link in (1, 2)
        for packets in sizes
    ]
    times = common.measure(context, cases, ["files"])
    return {"times": times, "gains": common.gains(times, ["scenario", "packets"])}


def figure(data: Data, figure: Figure) -> None:
    """Figure 3: the mean transfer time by the size of the files."""
    for axes, link in zip(figure.subplots(1, 2), (1, 2), strict=True):
        gain = data["gains"].filter(scenario=link)
        x = gain["packets"]
        line(axes, 0, x, gain["newreno_s"], "TCP/NewReno", error=gain["newreno_err_s"])
        line(axes, 1, x, gain["adaptive_s"], "adaptive", error=gain["adaptive_err_s"])
        axes.set(
            xlabel="file size (packets)",
            ylabel="mean transfer time (s)",
            title=f"Scenario {link}",
            ylim=0,
        )
        axes.legend()


def more_in_two(data: Data) -> pl.Series:
    """Whether the gain is greater in scenario 2, by size."""
    pairs = data["gains"].pivot(on="scenario", index="packets", values="gain_pct")
    return pairs["2"] > pairs["1"]


EXPERIMENT = Experiment(
    name="ad2",
    paper=ADAPTIVE,
    section="section 6.2, Figure 3",
    title="file sizes",
    did="Ten connections send ten files each of one size, in packets of 1 KB; scenarios 1 and 2.",
    assumptions=(
        *common.ASSUMPTIONS,
        "The sizes are those of section 6.3, 5 to 100 packets: the text of 6.2 names none.",
    ),
    run=run,
    figure=figure,
    claims=(
        Claim(
            "Adaptive is faster at all sizes",
            "in all cases (6.2)",
            lambda data: common.share_of(data["gains"]["gain_pct"] > 0),
            share("adaptive is faster"),
            {
                Verdict.PARTLY: "In scenario 1 files of 60 packets and more are above maxpossible: they are sent as by NewReno (method "
                "3), and the times are equal to some per cent"
            },
        ),
        Claim(
            "The gains are greater in scenario 2",
            "bigger in the topology of scenario 2 (6.2)",
            lambda data: common.share_of(more_in_two(data)),
            share("the gain is greater in scenario 2"),
            {
                Verdict.PARTLY: "The gains are equal for the smallest files, where both scenarios save the same rounds of the same "
                "number: a share of them does not depend on the length of a round"
            },
        ),
    ),
)
