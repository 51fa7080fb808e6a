"""`ab.json`: the answer for programs. A number that is not known is null."""

import math
from dataclasses import asdict
from importlib import metadata
from typing import Any

from headstart.ab import Analysis
from headstart.ab.resample import LEVEL
from headstart.ab.tables import Line

SCHEMA = 1


def document(analysis: Analysis) -> dict[str, Any]:
    """All numbers of the report."""
    options = analysis.options
    return _plain(
        {
            "schema": SCHEMA,
            "headstart": metadata.version("headstart"),
            "records": {
                "files": len(analysis.source.files),
                "missing_files": list(analysis.source.missing),
                "transfers": analysis.transfers,
                "other_transfers": analysis.others,
                "burn_in_transfers": analysis.burn_in,
                "prefixes": analysis.prefixes,
                "began_us": analysis.began_us,
                "ended_us": analysis.ended_us,
                "rules": list(analysis.rules),
            },
            "method": {
                "base": analysis.base,
                "arms": list(analysis.arms),
                "unit": analysis.checked.unit,
                "aa": options.alike,
                "seed": options.seed,
                "draws": options.draws,
                "level": LEVEL,
                "correction": "holm",
                "comparisons": analysis.comparisons,
                "shares_given": analysis.shares_known,
                "bandwidth_given": analysis.bandwidth_known,
                "notes": list(analysis.notes),
            },
            "arms": analysis.checked.by_arm,
            "checks": [asdict(check) for check in analysis.checked.checks],
            "inputs": [
                {
                    "key": one.key,
                    "is_input": one.is_input,
                    "quantiles": dict(zip(analysis.arms, one.quantiles, strict=True)),
                    "apart": one.apart,
                    "p": one.p,
                }
                for one in analysis.checked.inputs
            ],
            "contrasts": [
                {
                    "arm": contrast.other,
                    "advice": contrast.verdict.advice,
                    "sentence": contrast.verdict.sentence,
                    "unsaid": list(contrast.verdict.unsaid),
                    "tables": {
                        table.key: {
                            "title": table.title,
                            "paper": table.paper,
                            "unit": table.unit,
                            "note": table.note,
                            "lines": [_line(line) for line in table.lines],
                        }
                        for table in contrast.tables
                    },
                }
                for contrast in analysis.contrasts
            ],
        }
    )


def _line(line: Line) -> dict[str, Any]:
    found = line.comparison
    compared = (
        {} if found is None else {**asdict(found), "diff": found.diff, "diff_pct": found.diff_pct}
    )
    return {
        "label": line.label,
        "transfers": list(line.transfers),
        "share_pct": line.share_pct,
        **compared,
        "p_holm": line.p_holm,
    }


def _plain(value: Any) -> Any:
    """JSON has no NaN."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
