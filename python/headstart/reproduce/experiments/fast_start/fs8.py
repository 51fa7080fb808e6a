"""fs8: DirecPC (section 5.3)."""

from matplotlib.figure import Figure

from headstart.reproduce import Claim, Context, Data, Experiment, Verdict, number
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

TRANSFER: TrafficTable = {
    "name": "web",
    "kind": "bursts",
    "pages": 2,
    "bytes": "50KiB",
    "start": "uniform:1s,2s",
    "think": "15s",
}

PAPER_S = {"50 KB": (2.6, 0.95), "page": (7.70, 3.05)}
"""Section 5.3: newreno, fast start."""

KINDS: dict[str, TrafficTable] = {
    "50 KB": TRANSFER,
    "page": page(persistent=False),
    "page, kept alive": page(persistent=True),
    "page, one stream": TRANSFER | {"bytes": "175KiB"},
}
"""The last two are other readings of the paper's page; no claim goes by them."""

WHY = {
    "50 KB: fs": {
        Verdict.PARTLY: "Here the phone line clocks 40 bytes of each ACK at 28.8 kbit/s; modems of the time compressed headers"
    },
    "page: newreno": {
        Verdict.PARTLY: "How the browser loads the page is our assumption, and with it the number of round trips; the "
        "figure has two other readings"
    },
    "page: fs": {
        Verdict.NOT: "An object of 19 KB ends slow start with a window of 14 segments, so half of that is cached, and one "
        "round trip an object is saved. The paper's saving needs a connection whose window has grown over the whole page: "
        "as one stream (figure) half of the time is saved"
    },
}
"""Written after the run; changes no verdict."""


def run(context: Context) -> Data:
    """The second of two transfers, and of two page loads, with and without fast start."""
    scenarios = {
        f"{kind}: {name}": access(startup, "directpc", [traffic], 120)
        for kind, traffic in KINDS.items()
        for name, startup in STARTUPS.items()
        if context.on == "sim" or kind in PAPER_S
    }
    repeat = context.pick(10, 3) if context.on == "sim" else context.pick(3, 1)
    return {"loads": second_pages(context, scenarios, repeat)}


def figure(data: Data, figure: Figure) -> None:
    """Bars, the paper's beside ours."""
    axes = figure.subplots()
    names, ours, papers = [], [], []
    measured = set(data["loads"]["name"].str.split(": ").list.first())
    for kind in (kind for kind in KINDS if kind in measured):
        for number_, name in enumerate(STARTUPS):
            names.append(f"{kind}\n{name}")
            own = data["loads"].filter(name=f"{kind}: {name}")["load_s"]
            ours.append(0.0 if own.is_empty() else float(own.mean()))
            papers.append(PAPER_S.get(kind, (0, 0))[number_])
    at = range(len(names))
    axes.bar([x - 0.2 for x in at], ours, 0.4, color=COLOURS[0], label="here")
    axes.bar([x + 0.2 for x in at], papers, 0.4, color=COLOURS[4], label="paper")
    axes.set_xticks(list(at), names, fontsize=8)
    axes.set(ylabel="second of two (s)", title="DirecPC: 12 Mbit/s, 400 ms")
    axes.legend()


EXPERIMENT = Experiment(
    name="fs8",
    paper=FAST_START,
    section="section 5.3",
    title="DirecPC",
    did="With fast start in BSD/OS, over DirecPC (a satellite down, a phone line up, a round trip of about 400 ms): the second "
    "of two transfers of 50 KB, and the second of two downloads of a 175 KB page with 8 images.",
    assumptions=(
        *ASSUMED,
        "The phone line has 28.8 kbit/s, without header compression; the queues are a bandwidth-delay product and 20 packets.",
        "The 50 KB are asked for over one connection that rested.",
        *PAGE_ASSUMED,
    ),
    grounds=("sim", "kernel"),
    on_kernel=(
        *ON_KERNEL,
        "The other readings of the page are simulated only. Three runs, one in a quick run.",
    ),
    run=run,
    figure=figure,
    claims=tuple(
        Claim(
            f"{words}, {name}",
            f"{PAPER_S[kind][index]:g} s (section 5.3)",
            lambda data, key=f"{kind}: {name}": load(data["loads"], key),
            number(PAPER_S[kind][index]),
            WHY.get(f"{kind}: {name}", {}),
            WHY.get(f"{kind}: {name}", {}),
        )
        for kind, words in (
            ("50 KB", "The second of two 50 KB transfers"),
            ("page", "The second of two 175 KB pages"),
        )
        for index, name in enumerate(STARTUPS)
    ),
)
