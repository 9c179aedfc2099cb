"""Maps in reports: of a model, of a cross-validation, of a comparison; and none where nothing has a place."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner
from tests.browser import NARROW, WIDE, chromium, overflow, visit  # noqa: F401  fixtures

import gmil
from gmil.cli.main import main


@pytest.fixture(scope="module")
def of_model(cohort, tmp_path_factory):
    report = gmil.report(cohort.model, cohort.bags[:6], cohort.y[:6], seen=True, importance=0)
    return report, report.save(tmp_path_factory.mktemp("report") / "page.html")


def test_a_report_has_a_map_of_every_bag_with_places(of_model, cohort):
    maps = of_model[0].summary.models[0].explorer.maps
    assert {slide.data["name"] for slide in maps} == set(cohort.bags.bag_ids[:6])
    certainties = [slide.certainty for slide in maps]
    assert certainties == sorted(certainties, reverse=True)
    told = json.loads(of_model[0].to_json())
    assert told["models"][0]["explorer"]["maps"] == []  # the rows of bags are there
    assert "Where in the slide" not in of_model[0].to_markdown()


def test_a_report_of_bags_without_places_has_no_maps(cohort):
    bags = gmil.Bags(cohort.bags.instances, cohort.bags.offsets)[:4]
    assert 'data-test="slide-maps"' not in gmil.report(cohort.model, bags, importance=0).to_html()
    names = {"x": ["a"] * bags.n_instances, "y": np.arange(bags.n_instances)}  # texts are no places
    bags = gmil.Bags(bags.instances, bags.offsets, instance_info=names)
    assert 'data-test="slide-maps"' not in gmil.report(cohort.model, bags, importance=0).to_html()


def test_a_cross_validation_maps_held_out_scores(cohort):
    estimator = gmil.BagStatistics(pos_label="tumour")
    result = gmil.cross_validate(estimator, cohort.bags, cohort.y, cv=2, n_jobs=1)
    report = gmil.report(result, cohort.bags, estimator=estimator, importance=0)
    maps = report.summary.models[0].explorer.maps
    assert len(maps) == 16
    assert "never saw it" in maps[0].data["results"][0]["legend"]


@pytest.mark.slow
def test_a_comparison_shows_maps_where_it_shows_bags(cohort, tmp_path):
    gmil.write(tmp_path / "s.parquet", cohort.bags, cohort.y)
    words = ["compare", str(tmp_path / "s.parquet"), "--quick", "--methods", "gmil", "--jobs", "1"]
    found = CliRunner().invoke(main, [*words, "-o", str(tmp_path / "run")])
    assert found.exit_code == 0, found.output
    assert 'data-test="slide-maps"' in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [pytest.param(NARROW, marks=pytest.mark.slow), WIDE])
def test_the_map_follows_the_explorer_and_the_other_way_round(visit, of_model, width):  # noqa: F811
    page = visit(of_model[1], width=width)
    page.wait_for_selector(".sm-canvas[data-view]")
    assert overflow(page) == [0, []]
    page.locator(".explorer .next").click()
    name = page.locator(".explorer .title").text_content().removeprefix("Bag ")
    page.wait_for_function("name => document.querySelector('.sm-canvas').ariaLabel.includes(name + ',')", arg=name)
    card = page.locator(".sm-card", has_text="slide 4")
    card.click()
    page.wait_for_function("document.querySelector('.explorer .title').textContent === 'Bag slide 4'")
