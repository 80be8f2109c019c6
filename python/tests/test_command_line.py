"""The package and the command line are the same program: files byte by byte, JSON, messages."""

import importlib.util
import json
import re
import warnings

import numpy as np
import pytest

import odecast

FITS = [
    {},
    {"dropout": 0.05, "seed": 7},
    {"scale": "none", "hidden": 12, "starts": 3},
    {"derivative": "central4", "dropout": 0, "degree": 3},
    {"derivative": "weak", "dropout": 0, "terms": "select"},
    {"derivative": "spline", "noise": [0.01, 0.02, 0.03]},
    {"trainer": "adam", "batches": 5, "schedule": "10@0.01,5@0.001", "rescale": True},
    {"layers": [8, 8], "activation": "sin", "batches": 3},
    {"posterior": "regression"},
    {"posterior": "bootstrap", "replicates": 20, "seed": 3},
    {"posterior": "ensemble", "members": 3, "trainer": "adam", "batches": 3},
    {"derivative": "weak", "calibrate": True, "holdout": 0.4},
]
FORECASTS = [
    {"draws": 100},
    {"draws": 50, "seed": 3, "bands": "sd", "level": 0.9},
    {"masks": "enumerated"},
    {"draws": 30, "blow_up": "until", "init_sd": [0.1, 0.1, 0.1]},
    {"draws": 20, "method": "rk4", "fixed_step": 0.01, "blow_up": "until"},
    {"draws": 40, "rtol": 1e-6, "transition_noise": True, "blow_up": "until"},
    {"draws": 40, "observations": True, "noise": 0.1},
]


def words(options):
    """Keywords as a person would type them."""
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is True:
            yield option
        else:
            yield f"{option}={','.join(map(str, value)) if isinstance(value, list) else value}"


@pytest.fixture(scope="module")
def files(tmp_path_factory, program):
    place = tmp_path_factory.mktemp("files")
    program("simulate", "SprottB", "--init", "1,1,1", "--until", "10", "--step", "0.01", "-o",
            place / "train.csv")
    program("fit", place / "train.csv", "--dropout", "0.05", "-o", place / "model.json")
    return place


@pytest.mark.parametrize("options", FITS, ids=str)
def test_fits_write_the_same_bytes(files, program, tmp_path, options):
    program("fit", files / "train.csv", "-o", tmp_path / "cli.json", *words(options))
    data = odecast.read(files / "train.csv")
    ways = [data, odecast.read(data[0].times, data[0].states, variables=data.variables)]
    if importlib.util.find_spec("pandas"):
        ways.append(data.to_dataframe())
    for way in ways:
        odecast.fit(way, **options).save(tmp_path / "python.json")
        assert (tmp_path / "python.json").read_bytes() == (tmp_path / "cli.json").read_bytes()


def test_the_trajectory_posterior(program, tmp_path):
    """Missing values are kept, in files and in arrays, and only this posterior takes them."""
    data = odecast.simulate("SprottB", init=[1, 1, 1], until=10, step=0.05, noise=0.01, seed=2)
    t, u = data[0].times, data[0].states
    u[50, 1] = np.nan
    np.savez(tmp_path / "data.npz", t=t, x=u[:, 0], y=u[:, 1], z=u[:, 2])
    program("fit", tmp_path / "data.npz", "--posterior", "trajectory", "-o", tmp_path / "cli.json")
    program("forecast", tmp_path / "cli.json", "--until", "12", "--draws", "20", "-o",
            tmp_path / "cli.csv")
    kept = odecast.read(tmp_path / "data.npz", missing="keep")
    for way in (tmp_path / "data.npz", odecast.read(t, u, variables=["x", "y", "z"],
                                                    missing="keep")):
        model = odecast.fit(way, posterior="trajectory")
        model.save(tmp_path / "python.json")
        assert (tmp_path / "python.json").read_bytes() == (tmp_path / "cli.json").read_bytes()
    model.forecast(until=12, draws=20).save(tmp_path / "python.csv")
    assert (tmp_path / "python.csv").read_bytes() == (tmp_path / "cli.csv").read_bytes()
    with pytest.raises(ValueError, match="keep with posterior=dropout"):
        odecast.fit(kept, dropout=0.25)
    with pytest.raises(ValueError, match="missing values that were kept"):
        odecast.score(tmp_path / "cli.csv", kept)


def test_evaluation_and_calibration(files, program, tmp_path):
    program("simulate", "SprottB", "--init=-1,-1,-1", "--until", "40", "--step", "0.05", "-o",
            tmp_path / "held.csv")
    options = {"starts": 60, "horizon": 2, "leads": 10, "draws": 50, "seed": 5, "system": "SprottB"}
    model = odecast.load(files / "model.json")
    held = odecast.read(tmp_path / "held.csv")
    theirs = json.loads(program("evaluate", files / "model.json", tmp_path / "held.csv", "--json",
                                *words(options)).stdout)
    for truth in (held, tmp_path / "held.csv", (held[0].times, held[0].states)):
        assert model.evaluate(truth, **options) == theirs
    noisy = {**options, "observations": True, "noise": 0.1}
    theirs = json.loads(program("evaluate", files / "model.json", tmp_path / "held.csv", "--json",
                                *words(noisy)).stdout)
    assert model.evaluate(held, **noisy) == theirs

    theirs = json.loads(program("calibrate", files / "model.json", tmp_path / "held.csv", "-o",
                                tmp_path / "cli.json", "--json", *words(options)).stdout)
    calibrated = model.calibrate(held, **options)
    theirs.pop("output")
    assert calibrated.calibration == theirs and model.calibration is None
    calibrated.save(tmp_path / "python.json")
    assert (tmp_path / "python.json").read_bytes() == (tmp_path / "cli.json").read_bytes()
    loaded = odecast.load(tmp_path / "cli.json")
    assert loaded.calibration == {"starts": 60, "level": 0.95}
    common = ["--init=-1,-1,-1", "--until", "1", "--step", "0.1", "--draws", "30"]
    for more in ({}, {"raw": True}):
        program("forecast", tmp_path / "cli.json", "-o", tmp_path / "cli.csv", *common,
                *words(more))
        loaded.forecast([-1, -1, -1], until=1, step=0.1, draws=30,
                        **more).save(tmp_path / "python.csv")
        assert (tmp_path / "python.csv").read_bytes() == (tmp_path / "cli.csv").read_bytes()
    with pytest.raises(ValueError, match="expected the variables of the model"):
        model.evaluate(odecast.read(held[0].times, held[0].states))


@pytest.mark.parametrize("options", FORECASTS, ids=str)
def test_forecasts_write_the_same_bytes(files, program, tmp_path, options):
    common = ["--init=-1,-1,-1", "--until", "3", "--step", "0.05"]
    program("forecast", files / "model.json", "-o", tmp_path / "cli.csv", *common, *words(options))
    model = odecast.load(files / "model.json")
    fc = model.forecast([-1, -1, -1], until=3, step=0.05, **options)
    fc.save(tmp_path / "python.csv")
    assert (tmp_path / "python.csv").read_bytes() == (tmp_path / "cli.csv").read_bytes()


def test_one_trajectory_of_the_mean_field(files, program, tmp_path):
    program("forecast", files / "model.json", "--field", "mean", "--until", "12", "-o",
            tmp_path / "cli.csv")
    odecast.load(files / "model.json").forecast(until=12,
                                                field="mean").save(tmp_path / "python.csv")
    assert (tmp_path / "python.csv").read_bytes() == (tmp_path / "cli.csv").read_bytes()


def test_times_of_a_file(files, program, tmp_path):
    program("simulate", "SprottB", "--until", "12", "--step", "0.1", "-o", tmp_path / "at.csv")
    program("forecast", files / "model.json", "--at", tmp_path / "at.csv", "--draws", "20", "-o",
            tmp_path / "cli.csv")
    model = odecast.load(files / "model.json")
    for at in (tmp_path / "at.csv", odecast.read(tmp_path / "at.csv"),
               odecast.read(tmp_path / "at.csv")[0].times):
        model.forecast(at=at, draws=20).save(tmp_path / "python.csv")
        assert (tmp_path / "python.csv").read_bytes() == (tmp_path / "cli.csv").read_bytes()


def test_simulations_and_splits(program, tmp_path):
    program("simulate", "Lorenz", "--until", "5", "--noise", "0.01", "--seed", "4", "--set",
            "rho=24", "-o", tmp_path / "cli.csv")
    data = odecast.simulate("Lorenz", until=5, noise=0.01, seed=4, set={"rho": 24})
    data.save(tmp_path / "python.csv")
    assert (tmp_path / "python.csv").read_bytes() == (tmp_path / "cli.csv").read_bytes()
    program("split", tmp_path / "cli.csv", "--holdout", "0.3", "--train", tmp_path / "a.csv",
            "--test", tmp_path / "b.csv")
    for part, name in zip(data.split(holdout=0.3), "ab"):
        part.save(tmp_path / "part.csv")
        assert (tmp_path / "part.csv").read_bytes() == (tmp_path / f"{name}.csv").read_bytes()


@pytest.fixture(scope="module")
def driven(tmp_path_factory, program):
    """A driven oscillator, and a forecast of it by the command line."""
    place = tmp_path_factory.mktemp("driven")
    t = np.linspace(0, 20, 2001)
    force = np.cos(1.3 * t)
    u = np.zeros((len(t), 2))
    for i in range(len(t) - 1):  # the system is this recursion: what forward differences see
        h = t[i + 1] - t[i]
        u[i + 1] = u[i] + h * np.array([u[i, 1], -u[i, 0] - 0.2 * u[i, 1] + force[i]])
    np.savez(place / "driven.npz", t=t, x=u[:, 0], v=u[:, 1], F=force)
    program("fit", place / "driven.npz", "--inputs", "F,t", "--between", "held", "--dropout", "0",
            "-o", place / "cli.json")
    later = np.linspace(20, 22, 201)
    np.savez(place / "drive.npz", t=later, F=np.cos(1.3 * later))
    program("forecast", place / "cli.json", "--drive", place / "drive.npz", "--until", "22",
            "--step", "0.1", "--draws", "2", "-o", place / "cli.csv")
    return place, t, u, force, later


@pytest.mark.parametrize("way", ["file", "arrays", "frame"])
def test_driven_systems(driven, tmp_path, way):
    place, t, u, force, later = driven
    if way == "file":
        data, drive = odecast.read(place / "driven.npz", inputs=["F", "t"]), place / "drive.npz"
    elif way == "arrays":
        data = odecast.read(t, u, force, variables=["x", "v"], inputs=["F", "t"])
        drive = (later, np.cos(1.3 * later))
    else:
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame({"t": t, "x": u[:, 0], "v": u[:, 1], "F": force})
        data = odecast.read(frame, inputs=["F", "t"])
        drive = pandas.DataFrame({"t": later, "F": np.cos(1.3 * later)})
    assert data.inputs == ["F", "t"]
    model = odecast.fit(data, between="held", dropout=0)
    model.save(tmp_path / "model.json")
    assert (tmp_path / "model.json").read_bytes() == (place / "cli.json").read_bytes()
    model.forecast(drive=drive, until=22, step=0.1, draws=2).save(tmp_path / "forecast.csv")
    assert (tmp_path / "forecast.csv").read_bytes() == (place / "cli.csv").read_bytes()


def test_maps(program, tmp_path):
    program("simulate", "Henon", "--until", "500", "-o", tmp_path / "train.csv")
    program("fit", tmp_path / "train.csv", "--kind", "map", "--dropout", "0", "-o",
            tmp_path / "cli.json")
    model = odecast.fit(tmp_path / "train.csv", kind="map", dropout=0)
    model.save(tmp_path / "python.json")
    assert (tmp_path / "python.json").read_bytes() == (tmp_path / "cli.json").read_bytes()
    states = odecast.read(tmp_path / "train.csv")[0].states
    assert np.allclose(model.predict(states[:-1]), states[1:], atol=1e-9)


def test_json_is_the_same(files, program, tmp_path, test):
    test.save(tmp_path / "test.csv")
    fit = json.loads(program("fit", files / "train.csv", "-o", tmp_path / "m.json",
                             "--json").stdout)
    mine = odecast.fit(files / "train.csv").summary
    for each in (fit, mine):
        each.pop("seconds")
    fit.pop("output")
    assert mine == fit

    model = odecast.load(files / "model.json")
    fc = model.forecast([-1, -1, -1], until=10, step=0.02, draws=100)
    fc.save(tmp_path / "f.csv")
    theirs = json.loads(program("score", tmp_path / "f.csv", tmp_path / "test.csv", "--system",
                                "SprottB", "--json").stdout)
    assert odecast.score(fc, tmp_path / "test.csv", system="SprottB") == theirs
    assert odecast.score(tmp_path / "f.csv", test, system="SprottB") == theirs

    for form in ("text", "latex", "c"):
        assert model.equations(form) == program("equations", files / "model.json", "--format",
                                                form).stdout
    assert model.equations("json") == json.loads(program("equations", files / "model.json",
                                                         "--json").stdout)
    assert model.equations(all=True) == program("equations", files / "model.json", "--all").stdout
    program("fit", files / "train.csv", "--posterior", "bootstrap", "--replicates", "5", "-o",
            tmp_path / "b.json")
    medians = program("equations", tmp_path / "b.json", "--centre", "median").stdout
    assert odecast.load(tmp_path / "b.json").equations(centre="median") == medians

    at = json.loads(program("predict", files / "model.json", "--at=0.5,-1,2",
                            "--json").stdout)["derivative"]
    mean, sd = model.predict([0.5, -1, 2], return_sd=True)
    assert mean.tolist() == [at[v]["mean"] for v in "xyz"]
    assert sd.tolist() == [at[v]["sd"] for v in "xyz"]
    assert model.predict([[0.5, -1, 2]] * 3).tolist() == [mean.tolist()] * 3


MISTAKES = [
    ("fit", {"degree": 0}), ("fit", {"degree": 2.5}), ("fit", {"degree": "two"}),
    ("fit", {"dropout": 1}), ("fit", {"dropout": float("nan")}),
    ("fit", {"derivative": "backward"}), ("fit", {"hidden": -1}),
    ("fit", {"layers": [8], "trainer": "exact"}), ("fit", {"batches": 5}),
    ("fit", {"activation": "sin"}),
    ("fit", {"terms": "select", "dropout": 0.25}), ("fit", {"noise": [1, 2]}),
    ("fit", {"variables": ["q"]}), ("fit", {"seed": -1}), ("fit", {"schedule": "ten"}),
    ("fit", {"between": "held"}), ("fit", {"threads": 0}), ("forecast", {"init": [1, 2]}),
    ("forecast", {"draws": 1}), ("forecast", {"level": 2}), ("forecast", {"until": -1}),
    ("forecast", {}), ("forecast", {"until": 12, "method": "rk5"}),
    ("forecast", {"until": 12, "fixed_step": 0.1}),
    ("forecast", {"until": 12, "masks": "enumerated", "seed": 3}),
    ("forecast", {"until": 12, "noise": -0.1}), ("forecast", {"until": 12, "raw": True}),
    ("evaluate", {"starts": 1}), ("evaluate", {"draws": 2000}),
    ("evaluate", {"noise": [1, 2], "observations": True, "horizon": 2}),
    ("calibrate", {"horizon": -1}), ("forecast", {"until": 12, "init_sd": [-1, 0, 0]}),
    ("forecast", {"until": 12, "field": "mean", "draws": 5}),
]


def one_spelling(text):
    """Options and keywords alike, without the blank between a name and its value, the True of a
    switch and what only a command line knows."""
    text = re.sub(r"--([a-z-]+)[ ]?|([a-z_]+)=(?:True\b|[ ])?",
                  lambda m: (m[1] or m[2].rstrip("_")).replace("-", "_") + "=", text)
    text = text.replace("odecast: odecast ", "odecast: ").replace(", separated by commas", "")
    return text.replace("(odecast calibrate)", "(model.calibrate)")


@pytest.mark.parametrize("verb,options", MISTAKES, ids=str)
def test_the_same_message(files, program, tmp_path, verb, options):
    source = files / ("train.csv" if verb == "fit" else "model.json")
    truth = [files / "train.csv"] if verb in ("evaluate", "calibrate") else []
    output = [] if verb == "evaluate" else ["-o", tmp_path / "out"]
    theirs = program(verb, source, *truth, *output, *words(options), ok=False)
    assert theirs.returncode == 2
    with pytest.raises(ValueError) as mine:
        if verb == "fit":
            odecast.fit(source, **options)
        else:
            getattr(odecast.load(source), verb)(*truth, **options)
    assert one_spelling(f"odecast: {mine.value}\n") == one_spelling(theirs.stderr)
    assert "--" not in str(mine.value)


def test_the_keyword_is_named(train, model):
    with pytest.raises(ValueError,
                       match="degree=: found '0', expected a whole number from 1 to 20, or auto"):
        odecast.fit(train, degree=0)
    with pytest.raises(ValueError, match="members=: found it without effect by "
                                         "posterior=trajectory, expected posterior=ensemble"):
        odecast.fit(train, members=3, posterior="trajectory")
    with pytest.raises(ValueError, match="robust=: found 'yes', expected True or False"):
        odecast.fit(train, robust="yes")
    with pytest.raises(ValueError, match="max_steps=: found '0'"):
        model.forecast(until=12, max_steps=0)


def test_a_forecast_has_no_keywords_that_only_a_page_has(model):
    assert not {"lyapunov", "system"} & set(odecast.Model.forecast.__signature__.parameters)
    with pytest.raises(TypeError, match="unexpected keyword argument 'lyapunov'"):
        model.forecast(until=12, lyapunov=0.2)


def test_files_and_their_content(program, tmp_path):
    (tmp_path / "bad.csv").write_text("t,x\n0,1\n1,one\n")
    (tmp_path / "bad.json").write_text("{}")
    for call, verb, name, error in [
        (odecast.fit, "fit", "missing.csv", OSError),
        (odecast.fit, "fit", "bad.csv", ValueError),
        (odecast.load, "equations", "missing.json", OSError),
        (odecast.load, "equations", "bad.json", ValueError),
    ]:
        theirs = program(verb, tmp_path / name, *(["-o", tmp_path / "out"] if verb == "fit"
                                                  else []), ok=False)
        with pytest.raises(error) as mine:
            call(tmp_path / name)
        assert one_spelling(f"odecast: {mine.value}\n") == one_spelling(theirs.stderr)
    with pytest.raises(OSError, match="nowhere"):
        odecast.simulate("SprottB", until=1).save(tmp_path / "nowhere" / "out.csv")


def test_unknown_keywords_are_a_type_error(train, model):
    with pytest.raises(TypeError,
                       match=r"fit\(\) got an unexpected keyword argument 'degre'; perhaps degree"):
        odecast.fit(train, degre=2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'output'"):
        model.forecast(until=1, output="x.csv")


def test_what_is_not_to_be_trusted(files, program, tmp_path):
    theirs = program("fit", files / "train.csv", "--max-iterations", "2", "-o",
                     tmp_path / "cli.json", ok=False)
    assert theirs.returncode == 1
    with pytest.warns(odecast.NotTrusted, match="do not trust"):
        model = odecast.fit(files / "train.csv", max_iterations=2)
    model.save(tmp_path / "python.json")
    assert (tmp_path / "python.json").read_bytes() == (tmp_path / "cli.json").read_bytes()
    with pytest.warns(odecast.NotTrusted):
        fc = odecast.load(files / "model.json").forecast([-1, -1, -1], until=10, step=1, draws=200,
                                                         attempts=1)
    assert fc.summary["status"] == "too_few"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeError):
            odecast.load(files / "model.json").forecast([1e5, 1e5, 1e5], until=30, step=1, draws=50)


def test_noisy_truth_is_not_taken_for_the_state():
    train, late = odecast.simulate("SprottB", until=30, step=0.02, noise=0.05).split(holdout=0.2)
    model = odecast.fit(train)
    with pytest.warns(odecast.NotTrusted, match="observations=True"):
        judged = model.evaluate(late, starts=20, leads=5)
    # A quarter of the 6 that are late.
    assert judged["noisy_truth"] and judged["horizon"] == pytest.approx(1.495, abs=0.01)
    with pytest.warns(odecast.NotTrusted, match="observations=True"):
        model.calibrate(late, starts=20, leads=5)
    assert not model.evaluate(late, starts=20, leads=5, observations=True)["noisy_truth"]
