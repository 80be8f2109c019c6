import importlib.util
import pickle
import warnings

import numpy as np
import pytest

import odecast

sklearn = pytest.importorskip("sklearn")
from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402


def test_every_check_of_scikit_learn():
    """All of them apply: y is then du/dt of the first columns, a least-squares problem. Some give
    11 rows to 66 coefficients, which is said to be not to be trusted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", odecast.NotTrusted)
        results = check_estimator(odecast.ODERegressor(), on_fail=None)
    assert {r["check_name"]: repr(r["exception"]) for r in results
            if r["status"] in ("failed", "xfail")} == {}
    # Skipped by scikit-learn itself, for want of array-api-compat or SCIPY_ARRAY_API, or of pandas.
    wanting = {"check_array_api_input"}
    if not importlib.util.find_spec("pandas"):
        wanting.add("check_regressor_data_not_an_array")
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= wanting


def test_parameters_are_options_of_fit():
    known = odecast.fit.__signature__.parameters
    for name, value in odecast.ODERegressor().get_params().items():
        assert known[name].default == value


def test_a_trajectory_is_fitted_as_by_fit(train):
    run = train[0]
    estimator = odecast.ODERegressor(dropout=0.1, seed=3).fit(run.states, t=run.times)
    model = odecast.fit((run.times, run.states), dropout=0.1, seed=3)
    assert estimator.model_._core.to_text() == model._core.to_text()
    np.testing.assert_array_equal(estimator.predict(run.states), model.predict(run.states))
    again = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(again.predict(run.states), model.predict(run.states))
    assert clone(estimator).get_params() == estimator.get_params()
    plain = odecast.ODERegressor().fit(run.states, t=run.times).model_
    assert plain._core.to_text() == odecast.fit((run.times, run.states))._core.to_text()
    several = odecast.ODERegressor().fit([run.states[:2000], run.states[2000:]],
                                         t=[run.times[:2000], run.times[2000:]])
    assert several.model_.summary["trajectories"] == 2


def test_known_derivatives_are_learnt_exactly(spiral):
    _, u, A = spiral
    estimator = odecast.ODERegressor(degree=1, dropout=0).fit(u, u @ A.T)
    np.testing.assert_allclose(estimator.predict(u), u @ A.T, atol=1e-10)
    assert estimator.score(u, u @ A.T) > 1 - 1e-12
    with pytest.raises(ValueError, match="neither y nor t"):
        odecast.ODERegressor().fit(u)


def test_simulate(spiral):
    t, u, _ = spiral
    estimator = odecast.ODERegressor(degree=1, dropout=0, derivative="central8").fit(u, t=t)
    np.testing.assert_allclose(estimator.simulate(u[0], t), u, atol=2e-3)  # rtol 1e-3 of the solver
    assert estimator.score(u, t=t) > 1 - 1e-9


def test_maps(program):
    data = odecast.simulate("Henon", until=300)
    estimator = odecast.ODERegressor(kind="map", dropout=0, sample_step=1).fit(data[0].states)
    np.testing.assert_allclose(estimator.predict(data[0].states[:-1]), data[0].states[1:],
                               atol=1e-9)
    assert estimator.score(data[0].states) > 1 - 1e-9


def test_grid_search_finds_the_degree(train):
    run = train[0]
    search = GridSearchCV(odecast.ODERegressor(dropout=0, sample_step=0.002), {"degree": [1, 2, 3]},
                          cv=TimeSeriesSplit(3)).fit(run.states)
    assert search.best_params_["degree"] in (2, 3)
    scores = dict(zip((1, 2, 3), search.cv_results_["mean_test_score"]))
    assert scores[2] > 0.99 > scores[1]
    pipeline = make_pipeline(StandardScaler(), odecast.ODERegressor(dropout=0)).fit(run.states,
                                                                                    run.states)
    assert pipeline.predict(run.states[:5]).shape == (5, 3)
