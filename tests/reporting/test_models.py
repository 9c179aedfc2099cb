"""`gmil.report`: what it says about a model and bags, in all three forms."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.estimators import fitted, small

import gmil
from gmil.reporting import explorer as exploring
from gmil.reporting.predictions import predict_bags
from gmil.templating.json_text import script_json

HOSTILE_TAG = "<img src=x onerror"


def test_the_codebooks_are_those_of_the_model(videos):
    bags, y, model = videos
    (look,) = gmil.report(model, bags, y).summary.models
    assert [b.score for b in look.bins] == sorted(model.bin_scores_, reverse=True)
    assert [b.number for b in look.bins if b.in_positive] == model.positive_bins_.tolist()
    assert {b.number for b in look.bins if b.in_negative} == set(model.negative_bins_.tolist())
    for b in look.bins:
        assert b.positive_count == model.positive_counts_[b.number]
        assert b.negative_share == pytest.approx(model.negative_counts_[b.number] / model.negative_counts_.sum())
    assert look.positive == "event"


def test_the_explorer_ranks_the_instances_of_every_bag_by_the_scores_of_the_model(videos):
    bags, y, model = videos
    explorer = gmil.report(model, bags, y).summary.models[0].explorer
    assert explorer.columns == ["rank", "instance", "score", "centre", "distance", "x", "y", "time_s", "file"]
    assert (explorer.time, explorer.n_info, explorer.rule) == ("time_s", 2, "")
    assert len(explorer.bags) == len(bags)
    for i in (0, 7, 29):
        view = explorer.bags[i]
        scores = model.score_instances(bags[[i]])
        assert [row[1] for row in view.rows] == np.argsort(-scores, kind="stable").tolist()
        assert [row[2] for row in view.rows] == pytest.approx(np.sort(scores)[::-1], rel=1e-3)
        assert [row[7] for row in view.rows] == [0.5 * row[1] for row in view.rows]
        # The page is about the positive class, which is classes_[0] here.
        assert view.decision == pytest.approx(-model.decision_function(bags[[i]])[0], rel=1e-3)
        assert (view.label, view.predicted) == (y[i], model.predict(bags[[i]])[0])


def test_an_instance_answers_to_the_nearest_centre_of_the_codebooks(videos):
    bags, y, model = videos
    view = gmil.report(model, bags, y).summary.models[0].explorer.bags[3]
    used = np.union1d(model.positive_bins_, model.negative_bins_)
    for row in view.rows:
        distances = np.linalg.norm(model.cluster_centers_[used] - bags[3][row[1]], axis=1)
        assert row[3] == used[distances.argmin()]
        assert row[4] == pytest.approx(distances.min(), rel=1e-3)


def test_the_map_shows_instances_and_every_centre_with_its_role(videos):
    bags, y, model = videos
    found = gmil.report(model, bags, y).summary.models[0].map
    assert len(found.points) == bags.n_instances == found.n_instances
    assert {number: role for *_, role, number in found.centers if role} == {
        **dict.fromkeys(model.negative_bins_.tolist(), "negative"),
        **dict.fromkeys(model.positive_bins_.tolist(), "positive"),
        **dict.fromkeys(np.intersect1d(model.positive_bins_, model.negative_bins_).tolist(), "both"),
    }
    assert sum(point[2] for point in found.points) == bags.sizes[y == "event"].sum()
    assert 0 < found.share <= 1


def test_the_verdict_counts_and_compares_with_the_largest_class(videos):
    bags, y, model = videos
    right = int((model.predict(bags) == y).sum())
    verdict = gmil.report(model, bags, y).summary.verdict
    assert f"({right} of 30)" in verdict
    assert "50.0 %" in verdict
    assert "no labels were given" in gmil.report(model, bags).summary.verdict


# ------------------------------------------------------------------ every kind of model


@pytest.mark.parametrize("name", [name for name, cls in gmil.all_estimators() if hasattr(cls, "decision_function")])
def test_every_classifier_has_a_report(name):
    model, bags, y = fitted(small(getattr(gmil, name)))
    made = gmil.report(model, bags, y)
    (look,) = made.summary.models
    assert len(look.explorer.bags) == len(bags)
    assert ("score" in look.explorer.columns) == hasattr(model, "score_instances")
    assert "<html" in made.to_html()
    assert name in made.to_markdown()
    json.loads(made.to_json())


def test_weighted_gmil_shows_its_views_and_its_effects(gaussian_bags):
    bags, y = gaussian_bags()
    model = gmil.WeightedGMIL(random_state=0).fit(bags, y)
    (look,) = gmil.report(model, bags, y).summary.models
    assert sum(v.weight for v in look.views) == pytest.approx(sum(float(v["weights"][0]) for v in model.view_weights_))
    scores = model.score_instances(bags[[0]])
    assert [row[2] for row in look.explorer.bags[0].rows] == pytest.approx(np.sort(scores)[::-1], rel=1e-3, abs=1e-6)
    assert "log-odds" in look.explorer.score_text


def test_pipelines_and_searches_are_looked_into(gaussian_bags):
    bags, y = gaussian_bags()
    pipeline = make_pipeline(gmil.PerInstance(StandardScaler()), gmil.GMIL(6, random_state=0)).fit(bags, y)
    (look,) = gmil.report(pipeline, bags, y).summary.models
    assert len(look.bins) == 6
    search = GridSearchCV(gmil.GMIL(random_state=0), {"n_clusters": [5, 7]}, cv=2).fit(bags, y)
    assert len(gmil.report(search, bags, y).summary.models[0].bins) == search.best_params_["n_clusters"]


@pytest.mark.parametrize("label", [None, "event", "other"])
def test_decisions_are_about_the_class_that_is_looked_at(videos, label):
    bags, y, model = videos
    judged = predict_bags(model, bags, y, label)
    assert judged.label == (label or "event")
    assert [text == judged.label for text in judged.predicted] == (judged.decisions > 0).tolist()


def test_of_several_classes_one_is_looked_at(gaussian_bags):
    bags, y = gaussian_bags(n_bags=30, n_classes=3)
    model = gmil.GMIL(9, random_state=0).fit(bags, y)
    for label in (0, 2):
        (look,) = gmil.report(model, bags, y, label=label).summary.models
        assert look.positive == str(label)
        assert [b.score for b in look.bins] == sorted(model.bin_scores_[label], reverse=True)
        assert look.explorer.bags[4].decision == pytest.approx(model.decision_function(bags)[4, label], rel=1e-3)
    with pytest.raises(gmil.BagValidationError, match="label=7 is not a class; the classes are \\[0, 1, 2\\]"):
        gmil.report(model, bags, y, label=7)


def test_several_labels_at_once(gaussian_bags):
    bags, y = gaussian_bags()
    labels = np.column_stack([y, 1 - y, y])
    made = gmil.report(gmil.WeightedGMIL(random_state=0).fit(bags, labels), bags, labels, label=1)
    assert made.summary.models[0].explorer.bags[0].label == "1"
    assert "<html" in made.to_html()


@pytest.mark.parametrize("method", [gmil.GMIL, gmil.WeightedGMIL])
def test_sparse_bags(method, gaussian_bags):
    bags, y = gaussian_bags()
    sparse = gmil.Bags(sp.csr_array(bags.instances), bags.offsets)
    made = gmil.report(method(random_state=0).fit(sparse, y), sparse, y)
    assert len(made.summary.models[0].map.points) == bags.n_instances
    assert "score" in made.summary.models[0].explorer.columns


def test_one_feature_and_bags_of_one_instance():
    X, y = np.arange(12.0)[:, None], np.arange(12) % 2
    made = gmil.report(gmil.GMIL(3, 1, 1, random_state=0).fit(X, y), X, y)
    assert {point[1] for point in made.summary.models[0].map.points} == {0.0}
    assert "<html" in made.to_html()


def test_what_is_no_classifier_and_labels_that_do_not_fit_are_refused(videos):
    bags, y, model = videos
    with pytest.raises(gmil.BagValidationError, match="StandardScaler has no predict"):
        gmil.report(StandardScaler(), bags)
    with pytest.raises(gmil.BagValidationError, match="y has 3 labels, but X has 30 bags"):
        gmil.report(model, bags, y[:3])


# ------------------------------------------------------------------ large data


def test_large_data_is_capped_by_the_rule_that_is_stated():
    bags, y = gmil.make_bags(450, bag_size=130, n_features=3, random_state=0, return_X_y=True)
    model = gmil.GMIL(10, 2, 2, random_state=0).fit(bags, y)
    made = gmil.report(model, bags, y)
    explorer = made.summary.models[0].explorer
    assert len(explorer.bags) == exploring.MOST_BAGS
    assert explorer.rule.startswith("200 of 450 bags are here, evenly spaced in the ranking by decision.")
    decisions = model.decision_function(bags)
    shown = {b.number for b in explorer.bags}
    assert {int(decisions.argmax()), int(decisions.argmin())} <= shown
    for b in explorer.bags[:5]:
        ranks = [row[0] for row in b.rows]
        assert ranks == sorted(ranks)
        assert len(ranks) == 100
        assert ranks[:50] == list(range(1, 51))
        assert ranks[-10:] == list(range(121, 131))
    assert len(made.to_html()) < 3_000_000


# ------------------------------------------------------------------ three forms


def test_texts_of_users_cannot_leave_their_place(videos):
    bags, y, model = videos
    page = gmil.report(model, bags, y, title=HOSTILE_TAG).to_html()
    assert HOSTILE_TAG not in page
    assert "<b>0</b>" not in page
    assert "hacked = 1" in page  # it is there, as text
    assert HOSTILE_TAG not in gmil.report(model, bags, y, title=HOSTILE_TAG).to_markdown()


@pytest.mark.parametrize("text", ["</script>", "<!--<script>", "]]>", "\u2028"])
def test_json_in_a_script_holds_any_text(text):
    written = script_json({"a": text, "b": float("nan")})
    assert json.loads(written) == {"a": text, "b": None}
    assert not set("<>&") & set(written)


def test_save_goes_by_the_suffix(videos, tmp_path):
    bags, y, model = videos
    made = gmil.report(model, bags, y)
    assert made.save(tmp_path / "r.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert made.save(tmp_path / "r.md").read_text(encoding="utf-8").startswith("# GMIL on 30 bags")
    assert json.loads(made.save(tmp_path / "r.json").read_text(encoding="utf-8"))["title"] == "GMIL on 30 bags"
    with pytest.raises(gmil.GmilError, match=r"written as .html, .md or .json, got .*r.pdf"):
        made.save(tmp_path / "r.pdf")


def test_notebooks_get_a_frame_of_its_own(videos):
    bags, y, model = videos
    shown = gmil.report(model, bags, y)._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert shown.count("<") == 2  # everything of the page is escaped inside the attribute
    assert "GMIL on 30 bags" in repr(gmil.report(model, bags, y))


@pytest.mark.parametrize("name", ["GMIL", "WeightedGMIL", "MILES"])
def test_estimators_show_themselves_in_notebooks(name, gaussian_bags):
    model = getattr(gmil, name)()
    assert name in model._repr_html_()
    assert name in model.fit(*gaussian_bags())._repr_html_()


def test_a_page_asks_for_nothing(videos):
    bags, y, model = videos
    page = gmil.report(model, bags, y).to_html()
    assert [
        word
        for word in ("http://", "https://", "@import", "url(")
        if word in page.replace("http://www.w3.org/2000/svg", "")
    ] == []
