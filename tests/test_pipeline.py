"""`Pipeline`: scikit-learn's pipeline, with what classifiers of bags have besides."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.pipeline
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.model_selection import cross_validate as sklearn_cross_validate
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.svm import LinearSVC

import gmil
from gmil import GMIL, Bags, PerInstance, WeightedGMIL


@pytest.fixture
def data(gaussian_bags):
    return gaussian_bags(n_bags=30)


def imputing(last):
    return gmil.make_pipeline(PerInstance(SimpleImputer()), PerInstance(MinMaxScaler()), last)


class Watching(GMIL):
    """GMIL that remembers the groups that it was told."""

    told: list = []  # noqa: RUF012  shared by all copies on purpose

    def fit(self, X, y, *, groups=None):
        self.told.append(groups)
        return super().fit(X, y)


@pytest.fixture
def watching():
    Watching.told = []
    return Watching(random_state=0)


# ------------------------------------------------------------------ what the last step has


def test_it_is_the_last_step_on_what_the_others_make(data):
    bags, y = data
    model = imputing(GMIL(random_state=0)).fit(bags, y)
    scaled = bags.with_instances(MinMaxScaler().fit_transform(bags.instances))
    alone = GMIL(random_state=0).fit(scaled, y)
    for method in ("predict", "decision_function", "predict_proba", "score_instances"):
        assert_array_equal(getattr(model, method)(bags), getattr(alone, method)(scaled))
    for found, expected in zip(model.witnesses(bags, 0.5), alone.witnesses(scaled, 0.5), strict=True):
        assert_array_equal(found, expected)
    assert str(model.explain(bags[3])) == str(alone.explain(scaled[3]))
    assert model.explain(bags[[3]], label=1).positive_instance == alone.explain(scaled[3]).positive_instance


def test_scores_of_weighted_models_take_their_kind(data):
    bags, y = data
    model = imputing(WeightedGMIL(20, random_state=0)).fit(bags, y)
    assert not np.allclose(model.score_instances(bags, kind="alone"), model.score_instances(bags))


def test_what_the_last_step_lacks_the_pipeline_lacks(data):
    model = gmil.make_pipeline(gmil.VLAD(), LinearSVC()).fit(*data)
    for method in ("score_instances", "witnesses", "explain", "predict_proba"):
        assert not hasattr(model, method)
    assert not hasattr(imputing(gmil.VLADClassifier()).fit(*data), "predict_proba")


def test_missing_values_are_filled_in_for_scores_and_explanations(data):
    bags, y = data
    holes = bags.instances.copy()
    holes[::7, 1] = np.nan
    bags = bags.with_instances(holes)
    model = imputing(GMIL(random_state=0)).fit(bags, y)
    assert np.isfinite(model.score_instances(bags)).all()
    assert np.isfinite(model.explain(bags[0]).margin)


def test_the_info_of_instances_reaches_the_last_step(rich_bags):
    model = imputing(GMIL(2, random_state=0)).fit(rich_bags, [0, 1, 0, 1])
    explained = model.explain(rich_bags[[2]])
    assert explained.positive_info == {"row": 4 + explained.positive_instance}
    assert explained.bag_id == "c"


def test_a_single_step_and_tables_do(data):
    bags, y = data
    model = gmil.make_pipeline(GMIL(random_state=0)).fit(bags, y)
    assert_array_equal(model.score_instances(bags), GMIL(random_state=0).fit(bags, y).score_instances(bags))
    rows = bags.instances[bags.offsets[:-1]]
    assert imputing(GMIL(random_state=0)).fit(rows, y).score_instances(rows).shape == (30,)


class FirstInstance(TransformerMixin, BaseEstimator):
    """A step that keeps one instance of every bag."""

    def fit(self, X, y=None):  # noqa: ARG002
        return self

    def transform(self, X):
        return Bags(X.instances[X.offsets[:-1]], np.arange(len(X) + 1), X.bag_ids)

    def __sklearn_is_fitted__(self):
        return True


def test_steps_that_drop_instances_have_no_scores(data):
    bags, y = data
    model = gmil.make_pipeline(FirstInstance(), GMIL(random_state=0)).fit(bags, y)
    assert model.predict(bags).shape == (30,)
    with pytest.raises(gmil.BagValidationError, match=f"make 30 instances of {bags.n_instances}"):
        model.score_instances(bags)
    with pytest.raises(gmil.BagValidationError, match="make 1 instance of"):
        model.explain(bags[0])


# ------------------------------------------------------------------ files


@pytest.mark.parametrize("kind", [gmil.make_pipeline, sklearn.pipeline.make_pipeline])
@pytest.mark.parametrize(
    "last", [GMIL(random_state=0), WeightedGMIL(20, random_state=0), gmil.BagStatistics()], ids=str
)
def test_pipelines_are_saved_and_loaded(data, kind, last, tmp_path):
    bags, y = data
    model = kind(PerInstance(SimpleImputer()), "passthrough", PerInstance(PCA(2)), clone(last)).fit(bags, y)
    gmil.save(model, tmp_path / "model.gmil")
    loaded = gmil.load(tmp_path / "model.gmil")
    assert type(loaded) is gmil.Pipeline
    assert_array_equal(loaded.decision_function(bags), model.decision_function(bags))
    loaded.save(tmp_path / "again.gmil")
    assert_array_equal(gmil.load(tmp_path / "again.gmil").predict(bags), model.predict(bags))


def test_pipelines_in_pipelines_and_steps_of_scikit_learn_are_saved(data, tmp_path):
    bags, y = data
    rows = bags.instances[bags.offsets[:-1]]
    inner = sklearn.pipeline.make_pipeline(StandardScaler(), GMIL(random_state=0))
    model = sklearn.pipeline.make_pipeline(MinMaxScaler(), inner).fit(rows, y)
    gmil.save(model, tmp_path / "model.gmil")
    assert_array_equal(gmil.load(tmp_path / "model.gmil").predict(rows), model.predict(rows))


def test_ensembles_of_pipelines_are_saved(data, tmp_path):
    bags, y = data
    model = gmil.MILEnsemble(imputing(gmil.APR()), 3, random_state=0).fit(bags, y)
    model.save(tmp_path / "model.gmil")
    assert_array_equal(gmil.load(tmp_path / "model.gmil").score_instances(bags), model.score_instances(bags))


def test_a_cache_is_not_saved(data, tmp_path):
    model = gmil.make_pipeline(PerInstance(), GMIL(random_state=0), memory=str(tmp_path / "cache")).fit(*data)
    model.save(tmp_path / "model.gmil")
    assert gmil.load(tmp_path / "model.gmil").memory is None
    gmil.io.model_files.save(model, tmp_path / "model.gmil")
    assert gmil.load(tmp_path / "model.gmil").memory is None


@pytest.mark.parametrize("steps", [[], "gmil", [("one", 1)], [("gmil",)], [(1, GMIL())], ["ab"]])
def test_steps_that_are_none_are_refused_in_files(steps, tmp_path, monkeypatch):
    model = gmil.make_pipeline(GMIL())
    model.steps = steps
    with monkeypatch.context() as forged:  # what gmil itself would not write
        forged.setattr("gmil.io.model_files.values.check_model", lambda _: None)
        forged.setattr("gmil.io.model_files.probe", lambda _: "")
        gmil.io.model_files.save(model, tmp_path / "model.gmil")
    with pytest.raises(gmil.ModelFileError):
        gmil.load(tmp_path / "model.gmil")


def test_what_could_run_code_is_not_saved(data, tmp_path):
    bags, _ = data
    model = gmil.make_pipeline(FunctionTransformer(len), GMIL(random_state=0))
    with pytest.raises(gmil.ModelFileError, match="cannot be saved: it holds types that are not known to be safe"):
        gmil.save(model, tmp_path / "model.gmil")
    with pytest.raises(gmil.ModelFileError, match="FirstInstance"):
        gmil.save(gmil.make_pipeline(FirstInstance(), GMIL()), tmp_path / "model.gmil")
    with pytest.raises(gmil.ModelFileError, match="not one of gmil's estimators"):
        gmil.save(StandardScaler().fit(bags.instances), tmp_path / "model.gmil")
    assert not list(tmp_path.iterdir())


def test_a_pipeline_is_public_and_no_estimator_without_arguments():
    assert "Pipeline" not in dict(gmil.all_estimators())
    assert {"Pipeline", "make_pipeline", "save"} <= set(gmil.__all__)


# ------------------------------------------------------------------ groups


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("kind", [gmil.make_pipeline, sklearn.pipeline.make_pipeline])
def test_groups_reach_the_last_step(data, watching, kind, routing):
    bags, y = data
    groups = np.arange(30) // 2
    pipeline = kind(PerInstance(), kind(PerInstance(), watching))
    with config_context(enable_metadata_routing=routing):
        gmil.cross_validate(pipeline, bags, y, groups=groups, cv=3)
        assert [len(set(told)) for told in watching.told] == [10, 10, 10]
        Watching.told = []
        gmil.MILEnsemble(pipeline, 2, random_state=0).fit(bags, y, groups=groups)
        assert all(told is not None for told in watching.told)
        gmil.MILEnsemble(pipeline, 2, random_state=0).fit(bags, y)


@pytest.mark.parametrize("routing", [False, True])
def test_groups_are_told_to_fit(data, watching, routing):
    bags, y = data
    groups = np.arange(30) // 2
    with config_context(enable_metadata_routing=routing):
        gmil.make_pipeline(PerInstance(), watching).fit(bags, y, groups=groups)
        assert_array_equal(watching.told[0], groups)
        with pytest.raises(TypeError, match="groups"):
            gmil.make_pipeline(PerInstance(), GMIL()).fit(bags, y, groups=groups)


@pytest.mark.parametrize("last", [WeightedGMIL(20, random_state=0), GMIL(4, random_state=0)], ids=str)
@pytest.mark.parametrize("in_pipeline", [False, True])
def test_scikit_learn_routes_groups(data, last, in_pipeline):
    bags, y = data
    groups = np.arange(30) // 2
    model = gmil.make_pipeline(PerInstance(), last) if in_pipeline else last
    with config_context(enable_metadata_routing=True):
        found = sklearn_cross_validate(model, bags, y, cv=GroupKFold(3), params={"groups": groups})
        assert np.isfinite(found["test_score"]).all()
        search = GridSearchCV(model, {}, cv=GroupKFold(3)).fit(bags, y, groups=groups)
        assert search.best_score_ == pytest.approx(found["test_score"].mean())


def test_searches_are_told_of_groups_where_they_ask(data):
    bags, y = data
    groups = np.arange(30) // 2
    with config_context(enable_metadata_routing=True):
        for cv in (GroupKFold(3), 3):
            search = GridSearchCV(
                gmil.make_pipeline(PerInstance(), GMIL(random_state=0)), {"gmil__n_clusters": [4]}, cv=cv
            )
            assert gmil.cross_validate(search, bags, y, groups=groups, cv=3).accuracy() > 0.4


# ------------------------------------------------------------------ as any estimator


def test_scikit_learn_and_cross_validation_take_it(data):
    bags, y = data
    model = imputing(gmil.VLADClassifier(random_state=0))
    assert clone(model).get_params()["vladclassifier__random_state"] == 0
    assert cross_val_score(model, bags, y, cv=3, scoring="roc_auc").mean() > 0.5
    plain = sklearn.pipeline.Pipeline(model.steps)
    assert_array_equal(
        gmil.cross_validate(model, bags, y, cv=3).decisions, gmil.cross_validate(plain, bags, y, cv=3).decisions
    )


def test_strings_are_remarked_once_and_the_positive_class_is_known(data):
    bags, y = data
    words = np.array(["cat", "dog"])[y]
    with pytest.warns(UserWarning, match="'dog' is taken as the positive class") as caught:
        found = gmil.cross_validate(imputing(GMIL(random_state=0)), bags, words, cv=3)
    assert len(caught) == 1
    assert found.positive_label == "dog"
    turned = gmil.cross_validate(imputing(GMIL(random_state=0, pos_label="cat")), bags, words, cv=3)
    assert turned.positive_label == "cat"


def test_reports_and_the_command_line_take_it(data, tmp_path):
    from click.testing import CliRunner

    from gmil.cli.main import main

    bags, y = data
    model = imputing(GMIL(random_state=0)).fit(bags, y)
    gmil.report(model, bags, y).save(tmp_path / "report.html")
    assert "GMIL" in (tmp_path / "report.html").read_text()
    model.save(tmp_path / "model.gmil")
    gmil.write(tmp_path / "bags.parquet", bags, y)
    done = CliRunner().invoke(
        main, ["predict", str(tmp_path / "model.gmil"), str(tmp_path / "bags.parquet"), "--instances"]
    )
    assert done.exit_code == 0, done.output
    assert len([line for line in done.stdout.splitlines() if "," in line]) == bags.n_instances + 1


@pytest.mark.parametrize("cls", [gmil.BagCox, gmil.WeightedGMILRegressor, gmil.WeightedGMIL])
def test_pipelines_can_do_what_their_last_step_can(cls):
    target = {"BagCox": "survival", "WeightedGMILRegressor": "regression"}.get(cls.__name__, "classes")
    made = gmil.make_bags(30, n_features=3, target=target, random_state=0)
    alone = cls(random_state=0).fit(made.bags, made.y)
    pipeline = gmil.make_pipeline(gmil.Impute(), cls(random_state=0)).fit(made.bags, made.y)
    names = [name for name in dir(cls) if name.startswith("predict_")]
    assert names
    for name in names:
        np.testing.assert_allclose(getattr(pipeline, name)(made.bags), getattr(alone, name)(made.bags))


def test_a_transformer_of_scikit_learn_in_front_of_a_list_of_bags_is_told_of_per_instance(data):
    bags, y = data
    with pytest.raises(TypeError, match=r"bags differ in size.*gmil\.PerInstance\(transformer\)"):
        gmil.make_pipeline(MinMaxScaler(), GMIL()).fit(bags.to_list(), y)
