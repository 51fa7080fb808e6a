"""hy15: cable and Wi-Fi, completion times by file size (Figures 23 and 24)."""

from matplotlib.figure import Figure

from headstart.reproduce import (
    Claim,
    Context,
    Data,
    Experiment,
    Measured,
    Verdict,
    at_most,
    number,
    of,
    share,
)
from headstart.reproduce.experiments.hystart import testbed
from headstart.reproduce.experiments.hystart.downloads import BYTES, downloads, ratio, seconds
from headstart.reproduce.papers import HYSTART
from headstart.reproduce.style import line

ACCESS = {"cable": {"preset": "docsis"}, "Wi-Fi": {"preset": "wifi"}}
STARTUPS = ("su_standard", "su_hystart")
SIZES = BYTES | {"100 MB": 100_000_000}
SHORT = ("10 KB", "100 KB", "1 MB")


def run(context: Context) -> Data:
    """Each file alone."""
    repeat = context.pick(100, 8)
    return {
        "downloads": downloads(
            context,
            "hy15",
            paths=ACCESS,
            sizes=list(SIZES.values()),
            startups=STARTUPS,
            repeat=repeat,
        )
    }


def short_ratio(access: str) -> testbed.Measure:
    """Files up to 1 MB: HyStart's times over standard slow start's, all repeats."""

    def measure(data: Data) -> Measured:
        ratios = [
            mine / other
            for size in SHORT
            for mine, other in zip(
                seconds(data, access, SIZES[size], "su_hystart"),
                seconds(data, access, SIZES[size], "su_standard"),
                strict=True,
            )
        ]
        return of(ratios)

    return measure


def longer(data: Data) -> Measured:
    """10 MB, both networks."""
    ratios = [ratio(data, access, SIZES["10 MB"]) for access in ACCESS]
    words = ", ".join(f"{access} {each.note}" for access, each in zip(ACCESS, ratios, strict=True))
    counted = testbed.cases([each.value > 1 for each in ratios])
    return Measured(counted.value, counted.low, counted.high, "", f"{counted.note}; {words}")


def figure(data: Data, figure: Figure) -> None:
    """Figures 23 (b) and 24 (b)."""
    panels = figure.subplots(1, 2, sharey=True)
    for axes, access in zip(panels, ACCESS, strict=True):
        for number_, startup in enumerate(STARTUPS):
            points = [of(seconds(data, access, size, startup)) for size in SIZES.values()]
            line(
                axes,
                number_,
                [size / 1000 for size in SIZES.values()],
                [point.value for point in points],
                testbed.NAMES[startup],
                error=[point.high - point.value for point in points],
            )
        axes.set(title=access, xlabel="file (KB)", xscale="log", yscale="log")
    panels[0].set_ylabel("completion time (s)")
    panels[0].legend()


def _claims(access: str, where: str) -> tuple[Claim, ...]:
    return (
        Claim(
            f"{access}: for files up to 1 MB HyStart makes no difference",
            f"no difference ({where})",
            short_ratio(access),
            number(1.0),
        ),
        Claim(
            f"{access}: HyStart does no significant damage to 10 MB",
            f"the damage is not significant; read as up to 15 % ({where})",
            lambda data: ratio(data, access, SIZES["10 MB"]),
            at_most(1.15),
        ),
        Claim(
            f"{access}: 100 MB take no longer with HyStart",
            f"shorter as the file grows ({where})",
            lambda data: ratio(data, access, SIZES["100 MB"]),
            at_most(1.0),
            {Verdict.PARTLY: "The two are equal: 0.06 s apart in 83 s"},
        ),
    )


EXPERIMENT = Experiment(
    name="hy15",
    paper=HYSTART,
    section="6.3 and 6.4, Figures 23 and 24",
    title="cable and Wi-Fi",
    did="Downloads of 10 KB to 100 MB with and without HyStart over a cable modem (10 Mbit/s down, 384 kbit/s up) and over Wi-Fi (30 ms), both "
    "with other users.",
    assumptions=(
        *testbed.COMMON,
        "The access networks are the project's models (docs/links.md): DOCSIS requests and grants upstream, a radio with changing rates, "
        "aggregation and interference. How busy they are and the cable's 30 ms round trip are ours; the paper shows the swings of its round "
        "trips and prints no numbers.",
        "Congestion avoidance is Reno's.",
    ),
    run=run,
    figure=figure,
    claims=(
        *_claims("cable", "6.3, Figure 23"),
        *_claims("Wi-Fi", "6.4, Figure 24"),
        Claim(
            "In both networks 10 MB take slightly longer with HyStart",
            "slightly longer (6.3, 6.4, Figures 23 and 24)",
            longer,
            share("they take longer"),
            {
                Verdict.NOT: "The paper has it from early exits by swings of its own networks' delay. How far delays swing in the models is ours; what "
                "HyStart loses by leaving early there, it gains by the losses that it avoids"
            },
        ),
    ),
    size_in=(9.0, 3.8),
)
