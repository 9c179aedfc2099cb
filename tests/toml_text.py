"""Specifications as the text of a file."""

from __future__ import annotations

import json


def as_toml(document):
    """Return a specification as TOML; JSON's lists and texts are TOML's."""
    tables = {k: v for k, v in document.items() if isinstance(v, dict)}
    lines = [f"{k} = {json.dumps(v)}" for k, v in document.items() if k not in tables and k != "method"]
    for name, table in tables.items():
        inner = {k: v for k, v in table.items() if isinstance(v, dict)}
        lines += [f"[{name}]"] * (not inner) + [f"{k} = {json.dumps(v)}" for k, v in table.items() if k not in inner]
        for key, values in inner.items():
            lines += [f"[{name}.{key}]"] + [f"{k} = {json.dumps(v)}" for k, v in values.items()]
    for entry in document["method"]:
        lines += ["[[method]]"] + [f"{k} = {json.dumps(v)}" for k, v in entry.items()]
    return "\n".join(lines)
