"""fs2: constant load, 200 ms (section 4.1, Figure 3)."""

from matplotlib.figure import Figure

from headstart.reproduce import Claim, Context, Data, Experiment, Measured, Verdict, share
from headstart.reproduce.experiments.fast_start import fs1
from headstart.reproduce.experiments.fast_start.t1 import (
    ASSUMED,
    Setting,
    against_newreno,
    plot,
    second_bursts,
    share_of,
)
from headstart.reproduce.papers import FAST_START
from headstart.reproduce.style import line


def run(context: Context) -> Data:
    """Runs newreno and fs-pdrop, 0 to 10 bulk transfers, both delays."""
    settings = [
        Setting(variant, flows, delay_ms)
        for variant in fs1.VARIANTS
        for delay_ms in fs1.DELAYS_MS
        for flows in fs1.FLOWS
    ]
    scenarios = [setting.scenario(changed=False) for setting in settings]
    return {"bursts": second_bursts(context, settings, scenarios, context.pick(50, 20))}


def figure(data: Data, figure: Figure) -> None:
    """Figure 3, and the seconds that are saved at both delays."""
    left, right = figure.subplots(1, 2)
    plot(left, data["bursts"].filter(delay_ms=200), fs1.VARIANTS)
    left.set(title="Figure 3: constant load, 200 ms, 50 packets")
    saved = against_newreno(data["bursts"]).sort("flows")
    for number, delay_ms in enumerate(fs1.DELAYS_MS):
        own = saved.filter(delay_ms=delay_ms)
        line(right, number, own["flows"], own["saved_s"], f"{delay_ms} ms", error=own["errors_s"])
    right.set(xlabel="number of bulk transfers", ylabel="saved by fs-pdrop (s)")
    right.legend()


def more_saved(data: Data) -> Measured:
    """At how many loads more seconds are saved at 200 ms than at 50 ms."""
    saved = against_newreno(data["bursts"])
    both = saved.filter(delay_ms=200).join(saved.filter(delay_ms=50), on="flows", suffix="_50")
    low = both.sort("flows").row(0, named=True)
    note = f"without bulk transfers {low['saved_s']:.2f} s against {low['saved_s_50']:.2f} s"
    return share_of(both["saved_s"] > both["saved_s_50"], f"numbers of bulk transfers; {note}")


EXPERIMENT = Experiment(
    name="fs2",
    paper=FAST_START,
    section="section 4.1, Figure 3",
    title="constant load, 200 ms",
    did="As fs1 over a line of 200 ms, as a geostationary satellite's, with bulk windows of 32 KB.",
    assumptions=ASSUMED,
    run=run,
    figure=figure,
    claims=(
        Claim(
            "In absolute terms, the improvement increases with the link's delay",
            "increases with link delay (section 4.1)",
            more_saved,
            share("more seconds are saved at 200 ms"),
            {
                Verdict.PARTLY: "Where nothing is lost it holds. From 4 bulk transfers on, windows of 32 KB overflow the buffer at "
                "200 ms: the first burst loses packets, a small window is cached, and little is saved"
            },
        ),
    ),
)
