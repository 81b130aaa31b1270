"""The report: an AuditResult as one HTML file with inline pictures. No script, nothing loaded from elsewhere. Pure.

Called by job.py. Keys come as the result names them: hashed, unless the spec asked for clear ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from streamfleet_jobs.audit.charts import Part, Profile, density, heat_map, ranked_bars, stacked_bar
from streamfleet_jobs.audit.findings import size
from streamfleet_jobs.audit.result import AuditResult

Row = dict[str, Any]

_WORDS = {"clean": "clean", "warnings": "warnings", "errors": "errors", "unknown": "unknown"}

_LEGEND = (
    '<p class="legend">'
    + "".join(f'<span><i style="background:var(--{c})"></i>{c}</span>' for c in ("live", "superseded", "tombstone"))
    + '<span><i style="background:var(--error)"></i>first dirty offset</span><span>┊ active segment</span></p>'
)


def render(result: AuditResult) -> str:
    summary = result.summary
    title = f"Audit of {summary['app']}"
    style = (files("streamfleet_jobs.audit") / "report.css").read_text("utf-8")
    stores = "".join(_store(result, store) for store in summary["stores"])
    head = f"<h1>{escape(title)} {_badge(result.verdict)}</h1>{_facts(result)}"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}: {result.verdict}</title><style>{style}</style></head><body><main>"
        f"{head}{_findings(result.findings)}{stores}</main></body></html>\n"
    )


def _badge(word: str) -> str:
    return f'<span class="badge {word}">{_WORDS.get(word, word)}</span>'


def _facts(result: AuditResult) -> str:
    summary = result.summary
    keys = "in clear, as asked for" if summary["keys_in_clear"] else "hashed"
    return (
        f'<p class="soft">application id <b>{escape(summary["application_id"])}</b>, generation {summary["generation"]} · '
        f"{escape(summary['mode'])} audit on engine {escape(result.engine)} · "
        f"{_time(result.started_at)} to {_time(result.ended_at)} UTC · "
        f"keys are {keys} · run {escape(result.run_id)}</p>"
    )


def _time(text: str) -> str:
    return escape(text[:19].replace("T", " "))


def _findings(findings: Sequence[Row]) -> str:
    if not findings:
        return "<section><h2>Findings</h2><p>None: everything that was looked at is as it should be.</p></section>"
    order = {"error": 0, "warning": 1, "info": 2}
    rows = "".join(
        f"<tr><td>{_badge(finding['severity'])}</td><td><b>{escape(finding['rule'])}</b><br><small>{_place(finding)}</small></td>"
        f"<td>{escape(finding['summary'])}<br><small>→ {escape(finding['advice'])}</small></td></tr>"
        for finding in sorted(findings, key=lambda finding: order[finding["severity"]])
    )
    head = "<tr><th></th><th>rule</th><th>what, and what to do</th></tr>"
    return f'<section><h2>Findings</h2><table class="findings">{head}{rows}</table></section>'


def _place(finding: Row) -> str:
    parts = [finding.get("store") or finding.get("topic") or ""]
    if finding.get("partition") is not None:
        parts.append(f"partition {finding['partition']}")
    return escape(", ".join(parts))


def _store(result: AuditResult, store: Row) -> str:
    rows = [row for row in result.partitions if row["store"] == store["name"]]
    counted = [row for row in rows if row["keys"] is not None]
    head = (
        f'<header class="store"><h2>{escape(store["name"])}</h2>{_badge(store["verdict"])}'
        f'<span class="soft">{escape(store["kind"])} · {escape(store["topic"])} · {len(rows)} partitions</span></header>'
    )
    pictures = f"{_shares(counted)}{_restore(store, result.summary)}{_map(rows)}{_profiles(counted)}{_hot(counted)}"
    return f"<section>{head}{_numbers(store)}{pictures}</section>"


def _numbers(store: Row) -> str:
    pairs = [
        ("records", _count(store["records"], "not read")),
        ("live keys", _count(store["live_keys"], "not counted")),
        ("log", "not read" if store["log_bytes"] is None else size(store["log_bytes"])),
        ("store = changelog", store["equivalence"]),
    ]
    return "<dl>" + "".join(f"<div><dt>{name}</dt><dd>{escape(value)}</dd></div>" for name, value in pairs) + "</dl>"


def _count(number: int | None, otherwise: str) -> str:
    return otherwise if number is None else f"{number:,}"


def _shares(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    parts = [
        Part("live", sum(sum(row["live_bins"]) for row in rows), "live"),
        Part("superseded", sum(sum(row["superseded_bins"]) for row in rows), "superseded"),
        Part("tombstones", sum(sum(row["tombstone_bins"]) for row in rows), "tombstone"),
    ]
    return f"<h3>Records</h3>{stacked_bar(parts)}"


def _restore(store: Row, summary: Row) -> str:
    now, compacted = store["restore_seconds"], store["restore_seconds_if_compacted"]
    if now is None:
        return "<h3>Restore</h3><p class='soft'>No estimate: nothing was read.</p>"
    bars = [("now", now, _duration(now))]
    if compacted is not None:
        bars.append(("if compacted", compacted, _duration(compacted)))
    rate = f"{summary['restore_records_per_second']:,.0f} records/s ({summary['restore_rate']})"
    return f"<h3>Restore from nothing, one task after the other, at {rate}</h3>{ranked_bars(bars)}"


def _duration(seconds: float) -> str:
    if seconds < 0.1:
        return "under 0.1 s"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _map(rows: Sequence[Row]) -> str:
    sizes = [(row["partition"], row["log_bytes"] or row.get("total_bytes") or 0) for row in rows]
    return f"<h3>Bytes by partition</h3>{heat_map(sizes)}" if sizes else ""


def _profiles(rows: Sequence[Row]) -> str:
    figures = "".join(_profile(row) for row in rows if row["records"])
    return f'<h3>Records by offset</h3>{_LEGEND}<div class="profiles">{figures}</div>' if figures else ""


def _profile(row: Row) -> str:
    dirty = row["first_dirty"]
    seen = dirty is not None and dirty["certainty"] in ("exact", "bracket")
    profile = Profile(
        row["live_bins"],
        row["superseded_bins"],
        row["tombstone_bins"],
        row["start"],
        row["end"],
        dirty["low"] if seen else None,
        dirty["high"] if seen else None,
        row["active_base"],
    )
    told = "first dirty: unknown" if dirty is None else f"first dirty: {_bracket(dirty)}"
    ratio = "" if row["dirty_ratio"] is None else f" · dirty {row['dirty_ratio']:.0%}"
    caption = f"partition {row['partition']} · {escape(told)}{ratio} · redundancy {row['redundancy']:.0%}"
    return f"<figure>{density(profile)}<figcaption>{caption}</figcaption></figure>"


def _bracket(dirty: Row) -> str:
    if dirty["certainty"] == "exact":
        return f"{dirty['low']} (exact)"
    return (
        f"{dirty['low']} to {dirty['high']} (bracket)" if dirty["certainty"] == "bracket" else str(dirty["certainty"])
    )


def _hot(rows: Sequence[Row]) -> str:
    hot = sorted(
        ((key["records"], row["partition"], key["key"]) for row in rows for key in row["hot_keys"]), reverse=True
    )[:8]
    total = sum(row["records"] for row in rows) or 1
    bars = [(f"{key} · {number}", float(count), f"{count:,} · {count / total:.1%}") for count, number, key in hot]
    return f"<h3>Most written keys (key · partition)</h3>{ranked_bars(bars)}" if bars else ""
