import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import odecast


def test_the_equations_of_a_linear_system(spiral):
    t, u, A = spiral
    model = odecast.fit((t, u), degree=1, dropout=0, derivative="central8")
    assert np.allclose(model.predict(u), u @ A.T, atol=1e-9)
    assert model.predict(u[0]).shape == (2,)
    for wrong in ([1.0], [[1.0, 2.0, 3.0]], 1.0):
        with pytest.raises(ValueError, match=r"u: found \d values, expected 2 \(x1, x2\)"):
            model.predict(wrong)


def test_predict_takes_any_numbers(model):
    u = np.array([[1, 2, 3], [4, 5, 6]])
    expected = model.predict(u.astype(float))
    np.testing.assert_array_equal(model.predict(u), expected)
    np.testing.assert_array_equal(model.predict(u.tolist()), expected)
    np.testing.assert_array_equal(model.predict(np.asfortranarray(u, dtype=float)), expected)
    np.testing.assert_array_equal(model.predict(u[1]), expected[1])


def test_pickles_are_the_model(model):
    assert pickle.loads(pickle.dumps(model))._core.to_text() == model._core.to_text()


def test_eight_threads_fit_as_one_does(train):
    seeds = range(8)
    serial = [odecast.fit(train, seed=s, dropout=0.1)._core.to_text() for s in seeds]
    with ThreadPoolExecutor(8) as pool:
        parallel = list(pool.map(lambda s: odecast.fit(train, seed=s, dropout=0.1)._core.to_text(),
                                 seeds))
    assert parallel == serial


def test_eight_threads_forecast_as_one_does(model):
    serial = [model.forecast([-1, -1, -1], until=2, step=0.1, draws=100, seed=s).mean
              for s in range(8)]
    with ThreadPoolExecutor(8) as pool:
        parallel = list(pool.map(
            lambda s: model.forecast([-1, -1, -1], until=2, step=0.1, draws=100, seed=s).mean,
            range(8)))
    np.testing.assert_array_equal(parallel, serial)


def test_what_a_notebook_shows(model, train):
    page = model._repr_html_()
    assert "<math" in page and "±" in page
    assert "no equations" in odecast.fit(train, layers=[4], batches=1)._repr_html_()


def test_a_notebook_shows_the_most_probable_set_first():
    """With its probability; what is in doubt is grey whatever the colours of the notebook."""
    model = odecast.fit(odecast.simulate("SprottB", init=[1, 1, 1], until=6, step=0.05, noise=0.05))
    page = model._repr_html_()
    first, average = page.split("<details>")
    assert "most probable set of terms, of probability 0." in first
    assert first.count('class="equation"') == average.count('class="equation"') == 3
    assert 'class="unsure"' not in first and 'class="unsure"' in average
    assert "in grey" in average and "in grey" not in first
    assert ".odecast-model math.unsure { opacity" in first
    assert "--all" not in page


def test_pages(train, test, model, tmp_path):
    odecast.fit(train, report=tmp_path / "fit.html", title="Sprott & B")
    page = (tmp_path / "fit.html").read_text()
    assert "Sprott &amp; B" in page and "odecast.fit(" in page
    fc = model.forecast([-1, -1, -1], until=10, step=0.02, draws=100)
    fc.report(tmp_path / "forecast.html", truth=test, system="SprottB", title="Held out")
    page = (tmp_path / "forecast.html").read_text()
    assert "Held out" in page
    assert "model.forecast([-1, -1, -1], until=10, step=0.02, draws=100)" in page
    assert "Against the truth" in page
    with pytest.raises(OSError, match="nowhere"):
        fc.report(tmp_path / "nowhere" / "page.html")


def test_results_are_plain_dicts(train, model):
    fc = model.forecast([-1, -1, -1], until=1, step=0.1, draws=20)
    for result in (model.summary, fc.summary, model.equations("json"), odecast.score(fc, train),
                   model.evaluate(train, starts=5, horizon=1, draws=20), odecast.systems("Lorenz")):
        assert type(result) is dict and json.loads(json.dumps(result)) == result
    assert type(model.summary["rows"]) is int and type(fc.summary["level"]) is float
    assert fc.summary is fc.summary  # made once


def test_noise_that_grows_with_the_state():
    random = np.random.default_rng(3)
    t = np.arange(0, 8, 0.02)
    x = 3 * np.exp(-0.5 * t) * (1 + 0.05 * random.standard_normal(len(t)))
    data = (t, x[:, None])
    assert "relative_noise" in odecast.fit(data, degree=1)._core.to_text()
    assert "relative_noise" not in odecast.fit(data, degree=1, noise="constant")._core.to_text()
    with pytest.raises(ValueError, match="noise"):
        odecast.fit(data, noise="relative", posterior="regression")
