"""fs9: a cable modem with traffic both ways (section 5.4)."""

from matplotlib.figure import Figure

from headstart.reproduce import Claim, Context, Data, Experiment, Verdict, at_least, number
from headstart.reproduce.experiments.fast_start.browser import (
    ASSUMED,
    ON_KERNEL,
    PAGE_ASSUMED,
    STARTUPS,
    access,
    load,
    page,
    second_pages,
)
from headstart.reproduce.papers import FAST_START
from headstart.reproduce.style import COLOURS
from headstart.scenario_file import TrafficTable

UPLOAD: TrafficTable = {
    "name": "upload",
    "kind": "bulk",
    "startup": "reno",
    "direction": "reverse",
    "start": "0s",
}

PAPER_S = {"newreno": 25, "fs": 14}
"""Section 5.4: "from over 25 seconds to 14 seconds"."""


def run(context: Context) -> Data:
    """The second of two page loads beside an upload, with and without fast start."""
    scenarios = {
        name: access(startup, "cable-1998", [page(persistent=False), UPLOAD], 400)
        for name, startup in STARTUPS.items()
    }
    repeat = context.pick(50, 20) if context.on == "sim" else context.pick(4, 2)
    return {"loads": second_pages(context, scenarios, repeat)}


def figure(data: Data, figure: Figure) -> None:
    """Each run, and the paper's times."""
    axes = figure.subplots()
    for number_, name in enumerate(STARTUPS):
        times = data["loads"].filter(name=name)["load_s"].sort()
        share = [100 * (index + 1) / len(times) for index in range(len(times))]
        axes.step(times, share, where="post", color=COLOURS[number_], label=name)
        axes.axvline(PAPER_S[name], color=COLOURS[number_], linestyle="--", linewidth=0.8)
    axes.set(
        xlabel="load time of the second page (s)",
        ylabel="runs (%)",
        title="cable modem with an upload; dashed: the paper",
    )
    axes.legend()


WILD = dict.fromkeys(
    (Verdict.PARTLY, Verdict.NOT),
    "A page takes from 1 to 56 s: the queue of the upload, ten packets long, drops SYNs and requests, too, whose timers are of one, two and four seconds "
    "(connections of a trial took 0.1, 1, 3 and 5 s). Two runs of each say no more",
)
"""Of the live kernel; written after the run, changes no verdict."""

EXPERIMENT = Experiment(
    name="fs9",
    paper=FAST_START,
    section="section 5.4",
    title="a cable modem with upstream traffic",
    did="Over a cable modem, whose acknowledgements wait behind the large packets of an upstream transfer: the second of two "
    "downloads of a 175 KB page.",
    assumptions=(
        *ASSUMED,
        "10 Mbit/s down, 128 kbit/s up, 4 ms, queues of 50 and 10 packets: the paper has the delay and the asymmetry alone. "
        "One upload without end.",
        *PAGE_ASSUMED,
    ),
    grounds=("sim", "kernel"),
    on_kernel=(*ON_KERNEL, "The upload is Reno's. Four runs, two in a quick run."),
    run=run,
    figure=figure,
    claims=(
        Claim(
            "The second page without fast start",
            "over 25 s (section 5.4)",
            lambda data: load(data["loads"], "newreno"),
            at_least(25),
            dict.fromkeys(
                (Verdict.PARTLY, Verdict.NOT),
                "What a page takes are SYNs and requests that wait in the queue of the upload, 0.9 s each, or are lost there, with timers of one, two "
                "and four seconds. Its length, 10 packets, is our assumption; so is how the browser loads the page",
            ),
            WILD,
        ),
        Claim(
            "The second page with fast start",
            "14 s (section 5.4)",
            lambda data: load(data["loads"], "fs"),
            number(14),
            {
                Verdict.PARTLY: "What fast start saves are round trips, each of them as long as the queue of the upload: 10 packets of 1500 bytes are 0.94 s at "
                "128 kbit/s. Its length, and how many round trips the browser's page takes, are our assumptions"
            },
            WILD,
        ),
    ),
)
