"""The card of a data set: who made it, with which model and settings, how much there is, and what failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from photon.export.about import is_meaningless, model_of
from photon.export.json_list import as_json
from photon.export.plan import KINDS, Plan

_CATEGORIES = {
    "detect": "object-detection",
    "point": "keypoint-detection",
    "query": "visual-question-answering",
    "caption": "image-to-text",
}


def card(plan: Plan, counts: Mapping[str, int]) -> str:
    """README.md. ``counts``: the rows of each split. No licence is named: that is the pictures' owner's to do."""
    sections = [_head(plan, counts), _about(plan), _tasks(plan), _counts(plan, counts), _failures(plan)]
    return "\n".join(section for section in sections if section)


def _head(plan: Plan, counts: Mapping[str, int]) -> str:
    source = (plan.output.record["manifest"].get("input") or {}).get("hub")
    lines = ["annotations_creators:", "- machine-generated"]
    if source and "/" in source:
        lines += ["source_datasets:", f"- {as_json(source)}"]
    lines += ["task_categories:"]
    lines += [f"- {name}" for name in dict.fromkeys(_CATEGORIES[task.type] for task in plan.tasks)]
    lines += ["configs:", "- config_name: default", "  data_files:"]
    for part in counts:
        lines += [f"  - split: {part}", f"    path: data/{part}-*.parquet"]
    return "\n".join(["---", *lines, "---", ""])


def _about(plan: Plan) -> str:
    record, options = plan.output.record, plan.options
    manifest: dict[str, Any] = record["manifest"]
    model = record.get("model") if isinstance(record.get("model"), dict) else {}
    settings = {
        "model": model_of(plan.output),
        "model fingerprint": (model or {}).get("fingerprint"),
        "decision": (manifest.get("engine") or {}).get("decision"),
        "EXIF orientation": (manifest.get("image") or {}).get("exif"),
        "seed": record.get("seed"),
        "job": record.get("job_id"),
        "photon-batch": record.get("photon_batch"),
        "lowest score": f"{options.min_score:g}",
        "classes": ", ".join(options.classes) or "all",
        "pictures turned as they are seen": "yes" if options.bake_exif else None,
    }
    warning = (
        "**The model was not a trained one: its answers are meaningless.**\n\n" if is_meaningless(plan.output) else ""
    )
    return (
        "# Machine-made annotations\n\n"
        f"{warning}A model wrote all annotations here; no person looked at them. Scores are not calibrated. `bbox` is "
        "x, y, width, height in pixels from the top left, of the picture as `datasets` decodes it.\n\n"
        + _table(("setting", "value"), [(name, value) for name, value in settings.items() if value is not None])
    )


def _tasks(plan: Plan) -> str:
    asked = {task["name"]: task for task in plan.output.record["manifest"]["tasks"]}
    rows = []
    for task in plan.tasks:
        told = asked[task.name]
        objects = told.get("objects") or ()
        what = ", ".join([objects] if isinstance(objects, str) else objects)
        column = {"objects": "objects", "points": "points"}.get(KINDS[task.type], task.name)
        rows.append((task.name, task.type, what or told.get("question") or told.get("length") or "", column))
    return "## Tasks\n\n" + _table(("task", "type", "asked for", "column"), rows)


def _counts(plan: Plan, counts: Mapping[str, int]) -> str:
    return "## Counts\n\n" + _table(("split", "rows"), [*counts.items(), ("all", sum(counts.values()))])


def _failures(plan: Plan) -> str:
    if not plan.survey.failures:
        return "## Failures\n\nNo row failed.\n"
    told = "Rows without an answer are left out; they are not rows in which nothing was found.\n\n"
    return f"## Failures\n\n{told}" + _table(("code", "rows"), plan.survey.failures.most_common())


def _table(head: tuple[str, ...], rows: list[Any]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)
