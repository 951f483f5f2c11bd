"""The bill of materials of the executable, as CycloneDX JSON, from the metadata of the installed packages. No network."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import re
import sys

from guardhook import __version__

_NAME = re.compile(r"[A-Za-z0-9._-]+")


def dependencies() -> list[str]:
    """Names of the distributions that the executable contains: our requirements and theirs, without extras."""
    waiting, found = ["guardhook"], set[str]()
    requirements = {"guardhook": project_requirements()}
    while waiting:
        name = waiting.pop()
        wanted = requirements.get(name)
        if wanted is None:
            wanted = importlib.metadata.requires(name) or []
        for line in wanted:
            marker = line.partition(";")[2]
            match = _NAME.match(line)
            if match is None or "extra" in marker or "win" in marker or "Windows" in marker:
                continue
            dependency = match.group().lower().replace("_", "-")
            try:
                importlib.metadata.version(dependency)
            except importlib.metadata.PackageNotFoundError:
                continue  # for another platform or Python
            if dependency not in found:
                found.add(dependency)
                waiting.append(dependency)
    return sorted(found)


def project_requirements() -> list[str]:
    import tomllib
    from pathlib import Path

    text = (Path(__file__).resolve().parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(text)["project"]["dependencies"])


def component(name: str) -> dict[str, object]:
    facts = importlib.metadata.metadata(name)
    version = importlib.metadata.version(name)
    found: dict[str, object] = {
        "type": "library",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name}@{version}",
        "bom-ref": f"pkg:pypi/{name}@{version}",
    }
    licence = facts.get("License-Expression") or facts.get("License") or ""
    if licence and "\n" not in licence:
        kind = "expression" if facts.get("License-Expression") else "name"
        found["licenses"] = [{"expression": licence}] if kind == "expression" else [{"license": {"name": licence}}]
    return found


def render() -> bytes:
    """The document. Nothing in it depends on the time or the machine, so equal inputs give equal bytes."""
    python = {
        "type": "framework",
        "name": "cpython",
        "version": platform.python_version(),
        "bom-ref": f"pkg:generic/cpython@{platform.python_version()}",
        "purl": f"pkg:generic/cpython@{platform.python_version()}",
    }
    builder = component("pyinstaller")
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": "guardhook",
                "version": __version__,
                "bom-ref": "guardhook",
                "licenses": [{"expression": "Apache-2.0"}],
                "properties": [{"name": "platform", "value": f"{sys.platform}-{platform.machine()}"}],
            }
        },
        "components": [python, *(component(name) for name in dependencies()), builder],
    }
    return json.dumps(document, indent=1, sort_keys=True).encode() + b"\n"
