"""The catalogue, exponents, attractors and tuning are those of the command line."""

import json

import pytest

import odecast


@pytest.fixture(scope="module")
def lorenz(tmp_path_factory):
    place = tmp_path_factory.mktemp("lorenz")
    odecast.simulate("Lorenz", until=40, step=0.05).save(place / "data.csv")
    odecast.fit(place / "data.csv", posterior="regression").save(place / "model.json")
    return place


def test_systems(program):
    known = json.loads(program("systems", "--json").stdout)["systems"]
    assert odecast.systems() == [system["name"] for system in known]
    assert [odecast.systems(name) for name in odecast.systems()] == known
    with pytest.raises(ValueError, match="Lorens"):
        odecast.systems("Lorens")


def test_lyapunov(program, lorenz):
    words = ["--until", "60", "--transient", "5", "--interval", "0.2"]
    options = {"until": 60, "transient": 5, "interval": 0.2}
    theirs = json.loads(program("lyapunov", "Lorenz", "--init", "1,2,3", *words, "--json").stdout)
    assert odecast.lyapunov("Lorenz", [1, 2, 3], **options) == theirs
    theirs = json.loads(program("lyapunov", lorenz / "model.json", *words, "--draws", "2",
                                "--json").stdout)
    for of in (lorenz / "model.json", odecast.load(lorenz / "model.json")):
        assert {**odecast.lyapunov(of, **options, draws=2), "of": theirs["of"]} == theirs
    with pytest.raises(ValueError, match="init=: found 1 values, expected 3"):
        odecast.lyapunov("Lorenz", [1])
    with pytest.raises(ValueError, match="draws=: found it without effect here, expected a model"):
        odecast.lyapunov("Lorenz", draws=3)
    with pytest.warns(odecast.NotTrusted, match="Choose another init= or model"):
        assert odecast.lyapunov("SprottB", [1e9, 0, 0], **options)["status"] != "finished"


def test_attractor(program, lorenz):
    words = ["--draws", "2", "--pieces", "3", "--bins", "12", "--noise", "0.1", "--seed", "4"]
    theirs = json.loads(program("attractor", lorenz / "model.json", lorenz / "data.csv", *words,
                                "--json").stdout)
    for data in (lorenz / "data.csv", odecast.read(lorenz / "data.csv")):
        assert odecast.attractor(lorenz / "model.json", data, draws=2, pieces=3, bins=12, noise=0.1,
                                 seed=4) == theirs
    with pytest.raises(ValueError, match="pieces=: found '1'"):
        odecast.attractor(lorenz / "model.json", lorenz / "data.csv", pieces=1)


def test_tune(program, lorenz, tmp_path):
    words = ["--posterior", "regression,dropout", "--dropout", "0.05,0.2", "--starts", "6",
             "--draws", "10"]
    options = {"posterior": ["regression", "dropout"], "dropout": [0.05, 0.2], "starts": 6,
               "draws": 10}
    theirs = json.loads(program("tune", lorenz / "data.csv", *words, "-o", tmp_path / "cli",
                                "--json").stdout)
    for extra in ("command", "output"):
        theirs.pop(extra)
    best = odecast.tune(lorenz / "data.csv", output=tmp_path / "python", **options)
    assert best.summary == theirs
    for name in ("model.json", "table.csv", "tuning.svg"):
        assert (tmp_path / "python" / name).read_bytes() == (tmp_path / "cli" / name).read_bytes()
    best.model.save(tmp_path / "best.json")
    assert (tmp_path / "best.json").read_bytes() == (tmp_path / "cli" / "model.json").read_bytes()
    data = odecast.read(lorenz / "data.csv")
    again = odecast.tune(data, output=tmp_path / "python", **options).summary
    assert again["units_found"] == again["units"] > 0
    assert odecast.tune(data, **options).summary == theirs
    with pytest.raises(ValueError, match="horizon=: found -1"):
        odecast.tune(lorenz / "data.csv", horizon=-1)
    with pytest.raises(ValueError, match="posterior=: found 'guess'"):
        odecast.tune(lorenz / "data.csv", posterior="guess")
