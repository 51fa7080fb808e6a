"""The answer as text."""

import textwrap

from headstart.ab import Analysis, Contrast
from headstart.ab.tables import Table
from headstart.ab.words import HEADS, cells, heading, moment, value

WIDTH = 118

_MARKS = {"good": "ok", "warning": "WARNING", "bad": "WRONG", "not known": "not known"}


def render_text(analysis: Analysis) -> str:
    """Checks, tables, verdict: the verdict last, where the eye is."""
    seconds = (analysis.ended_us - analysis.began_us) / 1e6
    parts = [
        f"{analysis.transfers:,} transfers of {analysis.prefixes:,} prefixes, rules "
        f"{', '.join(analysis.rules)}; from {moment(analysis.began_us)}, {seconds:,.0f} s; "
        f"{len(analysis.source.files)} files",
        *([f"{analysis.burn_in:,} of the burn-in left out"] if analysis.burn_in else []),
        *analysis.notes,
        "",
        "THE EXPERIMENT ITSELF",
        *_checks(analysis),
        "",
        *_by_arm(analysis),
        "",
        *_inputs(analysis),
    ]
    for contrast in analysis.contrasts:
        parts += ["", f"{contrast.other.upper()} AGAINST {analysis.base.upper()}"]
        parts += [
            "diff is base - other, as in the paper: above 0 is a gain. Intervals: bootstrap, whole "
            f"{analysis.checked.samples} drawn again.",
            f"p is corrected for {analysis.comparisons} comparisons (Holm); * below 0.05.",
        ]
        for table in contrast.tables:
            parts += ["", *_table(analysis, contrast, table)]
    for contrast in analysis.contrasts:
        parts += ["", "VERDICT", *_wrapped(contrast.verdict.sentence), "", "What it does not say:"]
        for unsaid in contrast.verdict.unsaid:
            parts += textwrap.wrap(unsaid, WIDTH, initial_indent="- ", subsequent_indent="  ")
    return "\n".join(parts) + "\n"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH)


def _checks(analysis: Analysis) -> list[str]:
    lines = []
    for check in analysis.checked.checks:
        head = f"{_MARKS[check.state]:9} {check.title}: "
        lines += textwrap.wrap(head + check.words, WIDTH, subsequent_indent=" " * 10)
    if not analysis.shares_known:
        lines.append(
            " " * 10
            + "Shares: as many for each arm were assumed; --config or --shares says better."
        )
    return lines


def _by_arm(analysis: Analysis) -> list[str]:
    heads = ["arm", "prefixes", "connections", "transfers", "unfinished", "bytes"]
    rows = [
        [str(row["arm"]), *(f"{row[name]:,}" for name in heads[1:])]
        for row in analysis.checked.by_arm
    ]
    return _columns([heads, *rows])


def _inputs(analysis: Analysis) -> list[str]:
    """The paper's appendix as a table."""
    rows = [["inputs (Figure 8)", "arm", "10 %", "50 %", "90 %", "99 %", "apart, %", "p"]]
    for one in analysis.checked.inputs:
        for place, (arm, quantiles) in enumerate(zip(analysis.arms, one.quantiles, strict=True)):
            test = [value(100 * one.apart), f"{one.p:.3f}"] if place == 0 else ["", ""]
            if not one.is_input:
                test = ["", "not tested" if place == 0 else ""]
            rows.append([one.title if place == 0 else "", arm, *map(value, quantiles), *test])
    return _columns(rows, left=2)


def _table(analysis: Analysis, contrast: Contrast, table: Table) -> list[str]:
    lines = [heading(table)]
    if table.note:
        lines += _wrapped(table.note)
    if not table.lines:
        return lines
    shares = any(line.share_pct is not None for line in table.lines)
    heads = [table.first, *(["share, %"] if shares else []), contrast.other, analysis.base, *HEADS]
    rows = [heads]
    for line in table.lines:
        mark = "*" if line.p_holm < 0.05 else ""  # noqa: PLR2004 (the level of the intervals)
        share = [] if line.share_pct is None else [value(line.share_pct)]
        found = cells(line)
        rows.append([line.label, *share, *found[:-1], found[-1] + mark])
    return lines + _columns(rows)


def _columns(rows: list[list[str]], left: int = 1) -> list[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        "  "
        + "  ".join(
            cell.ljust(width) if at < left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
