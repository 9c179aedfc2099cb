"""The site: built once, without running the gallery; every link is followed, and its pages are opened in a browser.

What needs the built site is slow: ``make test-site`` runs it, and so does CI.
"""

from __future__ import annotations

import html
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from click.testing import CliRunner
from tests.browser import NARROW, every_screen, overflow
from tools import inventories
from tools.publish_docs import ABOUT, folder_of, publish

import gmil
from gmil import own_methods
from gmil.cli.examples import commands_of
from gmil.cli.main import main

ROOT = Path(__file__).parent.parent
NEEDED = ("matplotlib", "myst_parser", "numpydoc", "pydata_sphinx_theme", "sphinx")
NEEDED += ("sphinx_copybutton", "sphinx_design", "sphinx_gallery")
NOWHERE = "http://127.0.0.1:9"
VERSION = folder_of(ABOUT["version"])
PAGES = (
    "index.html",
    "guide/index.html",
    "guide/data.html",
    "results/accuracy.html",
    "reference/api.html",
    "reference/commands.html",
    "reference/generated/gmil.WeightedGMIL.html",
    "development/changelog.html",
)


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Return the folder of the built site; one process builds it, and others wait for it."""
    skip_without_sphinx()
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "gmil-site"
    told = folder / "told.txt"
    try:
        folder.mkdir()
    except FileExistsError:
        while not told.exists():
            time.sleep(0.2)
    else:
        said = build(folder)
        (folder / "saying").write_text(said, encoding="utf-8")
        (folder / "saying").rename(told)  # whole, or not there
    said = told.read_text(encoding="utf-8")
    assert said == "", said
    return folder / "site"


def skip_without_sphinx():
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"The site needs {', '.join(missing)}: pip install '.[docs]'.")


def sphinx(*arguments):
    """Run Sphinx where there is no network; a warning is an error."""
    options = ["--fail-on-warning", "--keep-going", "--nitpicky", "--quiet"]
    no_network = {"http_proxy": NOWHERE, "https_proxy": NOWHERE}
    path = os.pathsep.join([str(ROOT / "docs" / "_ext"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "sphinx", *options, *arguments],
        env={**os.environ, **no_network, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def build(folder):
    """Build the site of a copy of docs/, as `make docs` does; return what Sphinx complains about."""
    checkout = folder / "checkout"
    made = shutil.ignore_patterns("_build", "auto_examples", "generated", "__pycache__")
    shutil.copytree(ROOT / "docs", checkout / "docs", ignore=made)
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, checkout / path.name)
        elif path.name != "docs":
            (checkout / path.name).symlink_to(path)
    done = sphinx("--define", "plot_gallery=0", checkout / "docs", folder / "html")
    if done.returncode == 0:
        publish(folder / "html", folder / "site", version=ABOUT["version"], url="")
    return done.stderr + f"Sphinx ended with {done.returncode}." * (done.returncode != 0)


@pytest.fixture(scope="module")
def pages(site):
    """Return the text of every page by its path."""
    paths = [path for path in site.rglob("*.html") if "_static" not in path.parts]  # the theme keeps a template there
    return {path: path.read_text(encoding="utf-8") for path in paths}


@pytest.fixture(scope="module")
def address(site):
    """Return where the site is served."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/{VERSION}/"
        server.shutdown()
        thread.join()


def ids_in(text):
    return set(re.findall(r'\sid="([^"]+)"', text))


@pytest.mark.slow
def test_links_and_anchors_of_the_site_lead_somewhere(pages):
    anchors = {path: ids_in(text) for path, text in pages.items()}
    dead, n_links = set(), 0
    for page, text in pages.items():
        for target in re.findall(r'<a\s[^>]*?href="([^"]*)"', text):
            link = urlsplit(html.unescape(target))
            if link.scheme or target in ("", "#"):
                continue
            path = Path(os.path.normpath(page.parent / unquote(link.path))) if link.path else page
            exists = path.is_file() and (not link.fragment or path.suffix != ".html" or link.fragment in anchors[path])
            dead |= set() if exists else {f"{page.name}: {target}"}
            n_links += 1
    assert n_links > 1000
    assert dead == set()


@pytest.mark.slow
def test_nothing_is_loaded_from_another_host(site, pages):
    loaded = {
        (page, target)
        for page, text in pages.items()
        for tag in re.findall(r"<(?:script|img|link|source|iframe|video)\s[^>]*>", text)
        for target in re.findall(r'\s(?:src|href)="([^"]*)"', tag)
        if not target.startswith("data:")
    }
    assert len(loaded) > 100
    assert {target for _, target in loaded if urlsplit(target).netloc} == set()
    assert {target for page, target in loaded if not (page.parent / unquote(urlsplit(target).path)).exists()} == set()
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)\"']*", styles) == []


@pytest.mark.slow
def test_every_public_name_has_a_page(site, pages):
    names = {f"gmil.{name}" for name in [*gmil.__all__, *dict(gmil.all_estimators())]}
    generated = site / VERSION / "reference" / "generated"
    found = set().union(*(ids_in(text) for path, text in pages.items() if path.parent == generated))
    assert names - found == set()
    listed = pages[site / VERSION / "reference" / "api.html"]
    assert {name for name in names if f'#{name}"' not in listed} == set()


@pytest.mark.slow
def test_every_command_and_option_has_its_place(site, pages):
    text = pages[site / VERSION / "reference" / "commands.html"]
    sections = {path.replace(" ", "-"): command for path, command in commands_of(main)}
    assert set(sections) <= ids_in(text)
    plain = html.unescape(re.sub(r"<[^>]+>", "", text))
    options = {name for command in sections.values() for option in command.params for name in option.opts}
    assert {name for name in options if name.startswith("--") and name not in plain} == set()


@pytest.mark.slow
@every_screen
def test_pages_fit_the_window_and_complain_of_nothing(site, address, visit, width, theme):
    example = min((site / VERSION / "auto_examples").rglob("plot_*.html")).relative_to(site / VERSION).as_posix()
    page = visit(address + PAGES[0], width=width, theme=theme)
    for name in (*PAGES, example):
        page.goto(address + name)
        assert page.get_attribute("html", "data-theme") == theme
        assert page.locator("h1").first.is_visible()
        # The second side bar waits outside until it is opened.
        assert (name, *overflow(page, but="bd-sidebar-secondary")) == (name, 0, [])


@pytest.mark.slow
def test_the_site_is_searched(address, visit):
    page = visit(address + "search.html?q=WeightedGMIL")
    found = page.locator('#search-results a[href*="generated/gmil.WeightedGMIL.html"]')
    found.first.wait_for()
    page = visit(address + "index.html")
    page.keyboard.press("Control+k")
    page.keyboard.type("score_instances")
    page.keyboard.press("Enter")
    page.locator("#search-results li").first.wait_for()


@pytest.mark.slow
def test_mode_and_version_can_be_switched(address, visit):
    page = visit(address + "guide/data.html")
    page.locator("button.theme-switch-button:visible").first.click()
    page.locator("button.theme-change-button[data-mode=dark]:visible").first.click()
    assert page.get_attribute("html", "data-theme") == "dark"
    button = page.locator("button.version-switcher__button:visible").first
    button.click()
    entry = page.locator(".version-switcher__menu:visible a").first
    assert button.inner_text().strip() == entry.inner_text()
    assert entry.get_attribute("href") == f"/{VERSION}/guide/data.html"


@pytest.mark.slow
def test_a_telephone_opens_the_list_of_pages(address, visit):
    page = visit(address + "guide/data.html", width=NARROW)
    assert not page.get_by_role("link", name="Results", exact=True).first.is_visible()
    page.locator("button.primary-toggle").click()
    page.locator("dialog").get_by_role("link", name="Results", exact=True).first.wait_for()


@pytest.mark.parametrize("repository", ["https://host/gmil", None])
def test_links_out_of_docs_lead_to_the_repository_and_formulas_need_no_script(tmp_path, repository):
    skip_without_sphinx()
    docs = tmp_path / "docs"
    (docs / "development").mkdir(parents=True)
    (tmp_path / "CHANGELOG.md").touch()
    (tmp_path / "run.py").touch()
    (docs / "development" / "changelog.md").write_text("# Changelog\n\n[here](../../run.py)\n")
    page = "# Page\n\n[new](../CHANGELOG.md) [the script](../run.py) $x^2$\n\n"
    (docs / "index.md").write_text(page + "```{toctree}\ndevelopment/changelog\n```\n")
    settings = "extensions = ['myst_parser', 'outside_links', 'mathml']\nmyst_enable_extensions = ['dollarmath']\n"
    settings += f"html_math_renderer = 'mathml'\nrepository_url = {repository!r}\n"
    (docs / "conf.py").write_text(settings)
    done = sphinx(docs, tmp_path / "html")
    assert (done.returncode, done.stderr) == (0, "")
    text = (tmp_path / "html" / "index.html").read_text(encoding="utf-8")
    assert 'href="development/changelog.html"' in text
    assert "<msup>" in text
    assert re.findall(r'src="[^"]*mathjax', text, re.IGNORECASE) == []
    assert ('href="https://host/gmil/blob/main/run.py">the script</a>' in text) == bool(repository)
    assert ("the script (<code" in text) == (not repository)
    assert not (tmp_path / "html" / "_downloads").exists()


def test_a_front_page_leads_to_the_newest_release_and_a_switcher_lists_all(tmp_path):
    built, site = tmp_path / "html", tmp_path / "site"
    built.mkdir()
    for version in ("0.9.2", "0.10.0", "0.11.0.dev0", "0.10.1"):
        (built / "index.html").write_text(version)
        publish(built, site, version=version, url="https://host/gmil")
    assert (site / "0.10" / "index.html").read_text() == "0.10.1"
    assert "url=0.10/index.html" in (site / "index.html").read_text()
    listed = json.loads((site / "switcher.json").read_text())
    assert [(each["version"], each["preferred"]) for each in listed] == [("dev", False), ("0.10", True), ("0.9", False)]
    assert listed[2]["url"] == "https://host/gmil/0.9/"
    assert folder_of("1.2.3") == "1.2"


@pytest.mark.parametrize("name", inventories.PROJECTS)
def test_inventories_are_what_the_tool_writes(name):
    pytest.importorskip("matplotlib" if name == "matplotlib" else "numpy", reason=f"{name} is not installed.")
    written = inventories.read((inventories.FOLDER / f"{name}.inv").read_bytes())
    assert written == inventories.lines_of(inventories.PROJECTS[name])


def test_the_picture_of_the_start_page_shows_what_the_ten_lines_print():
    picture = (ROOT / "docs/_static/bags.html").read_text(encoding="utf-8")
    shown = re.findall(r"-?\d\.\d+", re.sub(r"<[^>]+>", " ", picture))
    printed = (ROOT / "README.md").read_text(encoding="utf-8").partition("```text")[2].partition("```")[0]
    scores = re.search(r"scores of the instances of one bag: \[(.*)\]", printed)[1].split()
    probability = re.search(r"probability of label 1: \[([\d.]+)", printed)[1]
    assert shown == [*scores, probability]


@pytest.fixture
def start_folder(tmp_path, monkeypatch):
    """Go to a folder with the files that the start page names."""
    pd = pytest.importorskip("pandas", reason="The data are written by pandas.")
    monkeypatch.chdir(tmp_path)
    bags, y = gmil.make_bags(20, n_features=3, random_state=0, return_X_y=True)
    names = np.array([f"b{i}" for i in range(len(bags))])
    features = pd.DataFrame(bags.instances, columns=["f0", "f1", "f2"])
    columns = {"molecule": np.repeat(names, bags.sizes), "active": np.repeat(y, bags.sizes)}
    features.assign(**columns).to_csv("molecules.csv", index=False)
    features.assign(bag=columns["molecule"]).to_parquet("frames.parquet", index=False)
    pd.DataFrame({"video": names, "event": y}).to_csv("events.csv", index=False)
    Path("slides").mkdir()
    for name, bag in zip(names, bags, strict=True):
        np.save(f"slides/{name}.npy", bag)
    pd.DataFrame({"bag": names, "label": y}).to_csv("slides/labels.csv", index=False)
    page = (ROOT / "docs/guide/own_methods.md").read_text(encoding="utf-8")
    Path("mymethods.py").write_text(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(own_methods, "_own", {})
    yield
    sys.modules.pop("mymethods", None)


@pytest.mark.usefixtures("start_folder")
def test_the_commands_of_the_start_page_run():
    text = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    commands = re.findall(r"^gmil (.*)$", text, re.MULTILINE)
    assert len(commands) == 4
    for command in commands:
        quicker = ["--folds", "3", "--importance", "0"] if "page.html" in command else []
        result = CliRunner().invoke(main, [*shlex.split(command), *quicker])
        assert result.exit_code == 0, f"gmil {command}: {result.output}"
    for made in ("page.html", "model.gmil", "events.gmil"):
        assert Path(made).stat().st_size > 1000
