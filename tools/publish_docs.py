"""Put a built site beside those of other versions, each in a folder of its own, and list them for the version switcher.

Usage: python tools/publish_docs.py docs/_build/html SITE [--url https://gmil.example.org]

SITE is what a web server serves, for example a checkout of the branch that a code host publishes. A release goes into
the folder of its number (0.2), a development version into dev; a folder that exists is replaced. The front page of SITE
leads to the newest release. Addresses in switcher.json begin with --url, or the address of the documentation in
pyproject.toml, or else are those of a site at the root of its host.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import tomllib
from pathlib import Path

_PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
ABOUT = tomllib.loads(_PYPROJECT.read_text(encoding="utf-8"))["project"]
DEVELOPMENT = "dev"
FRONT = """\
<!doctype html>
<meta charset="utf-8">
<title>gmil</title>
<meta http-equiv="refresh" content="0; url={0}/index.html">
<a href="{0}/index.html">gmil</a>
"""


def folder_of(version: str) -> str:
    """Return the folder of a version.

    >>> folder_of("0.2.1"), folder_of("0.3.0.dev0")
    ('0.2', 'dev')
    """
    return DEVELOPMENT if "dev" in version else ".".join(version.split(".")[:2])


def versions_in(site: Path) -> list[str]:
    """Return the folders of versions, the development version first, then the newest release."""
    releases = [path.name for path in site.iterdir() if re.fullmatch(r"\d+\.\d+", path.name)]
    releases.sort(key=lambda name: tuple(map(int, name.split("."))), reverse=True)
    return [DEVELOPMENT] * (site / DEVELOPMENT).is_dir() + releases


def switcher(versions: list[str], url: str) -> list[dict[str, object]]:
    """Return what the theme shows in its version switcher."""
    newest = _newest(versions)
    return [
        {"name": f"{each} (stable)" if each == newest != DEVELOPMENT else each, "version": each}
        | {"url": f"{url}/{each}/", "preferred": each == newest}
        for each in versions
    ]


def publish(html: Path, site: Path, *, version: str, url: str) -> None:
    """Copy a build to its folder and renew the list of versions and the front page."""
    target = site / folder_of(version)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(html, target, ignore=shutil.ignore_patterns(".doctrees", ".buildinfo"))
    versions = versions_in(site)
    (site / "switcher.json").write_text(json.dumps(switcher(versions, url), indent=1) + "\n", encoding="utf-8")
    (site / "index.html").write_text(FRONT.format(_newest(versions)), encoding="utf-8")
    (site / ".nojekyll").touch()  # folders that begin with an underscore are part of the site


def _newest(versions: list[str]) -> str:
    """Return the newest release, or the development version before the first."""
    return next((each for each in versions if each != DEVELOPMENT), DEVELOPMENT)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("html", type=Path)
    parser.add_argument("site", type=Path)
    parser.add_argument("--url", default=ABOUT.get("urls", {}).get("Documentation", ""))
    given = parser.parse_args()
    publish(given.html, given.site, version=ABOUT["version"], url=given.url.rstrip("/"))


if __name__ == "__main__":
    main()
