"""The manifest's JSON Schema, for editors and other programs.

It accepts what ``load`` accepts. Rules between keys are left out, and so are names that lead nowhere: load tells those.
"""

from __future__ import annotations

from typing import Any

from photon.manifest.manifest import Manifest
from photon.manifest.rules import SOURCES

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def manifest_schema() -> dict[str, Any]:
    """As plain values. What a key is stands in its title, what to write in its description."""
    made = Manifest.model_json_schema()
    for section in made["$defs"].values():  # their docstrings speak to programmers
        section.pop("description", None)
    made["$defs"]["Input"]["anyOf"] = [{"required": [name]} for name in SOURCES]
    return {"$schema": DIALECT, **made, "title": "photon-batch manifest, version 1", "description": "What to run."}
