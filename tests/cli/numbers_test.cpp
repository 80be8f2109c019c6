#include <nlohmann/json.hpp>

#include "cli/bad_input.hpp"
#include "cli/sealed.hpp"

namespace odecast::cli_test {
namespace {

using Json = nlohmann::ordered_json;

/// What looks like a number and is none does not leave with exit 0.
class NumbersTest : public BadInputTest {
 protected:
  void SetUp() override {
    run_well({"simulate", "SprottB", "--until", "4", "--step", "0.01", "--noise", "0.001", "-o",
              "train.csv"});
  }

  /// model.json with something in it changed and sealed again.
  template <class Change>
  void change_model(Change change) const {
    Json json = Json::parse(read("model.json"));
    change(json);
    json["checksum"] = "fnv1a64:";
    write("model.json", sealed(json.dump(2)));
  }
};

TEST_F(NumbersTest, AnOverflowingNetworkIsNamed) {
  run_well({"fit", "train.csv", "--dropout", "0.25", "-o", "model.json"});
  change_model([](Json& j) {
    for (Json& layer : j["law"]["layers"])
      for (Json& w : layer["weights"]["values"]) w = 1e150;
  });
  refused({"predict", "model.json", "--at=1,1,1"}, kBadData, {"prediction of dx/dt", "overflows"});
  refused({"predict", "model.json", "--at=1,1,1", "--json"}, kBadData, {"prediction of dx/dt"});
  refused({"predict", "model.json", "--at=1,1,1", "--draws", "10"}, kBadData,
          {"prediction of dx/dt"});
  for (const char* format : {"text", "latex", "c", "json"})
    refused({"equations", "model.json", "--format", format}, kBadData,
            {"equations, dx/dt", "overflows"});
  EXPECT_EQ(run({"forecast", "model.json", "--until", "5", "-o", "f.csv"}).code, kNotTrusted);
  EXPECT_EQ(run({"lyapunov", "model.json"}).code, kNotTrusted);
}

TEST_F(NumbersTest, AMatrixThatIsNoCovarianceIsRefused) {
  run_well({"fit", "train.csv", "--posterior", "regression", "-o", "model.json"});
  change_model([](Json& j) { j["law"]["sets"][0]["covariance"][0] = -1; });
  for (const Words& verb :
       {Words{"predict", "model.json", "--at=1,1,1"}, Words{"equations", "model.json"},
        Words{"forecast", "model.json", "--until", "5", "-o", "old.out"}})
    refused(verb, kBadData, {"covariance", "no covariance"});
}

TEST_F(NumbersTest, ALevelWhoseQuantileIsInfiniteIsRefused) {
  run_well({"fit", "train.csv", "--posterior", "regression", "-o", "model.json"});
  refused({"predict", "model.json", "--at=1,1,1", "--level", "0.9999999999999999"}, kUsage,
          {"--level"});
  refused(
      {"forecast", "model.json", "--until", "5", "--level", "0.9999999999999999", "-o", "old.out"},
      kUsage, {"--level"});
  refused({"evaluate", "model.json", "train.csv", "--level", "0.9999999999999999"}, kUsage,
          {"--level"});
}

TEST_F(NumbersTest, NoiseThatOverflowsIsRefused) {
  refused({"simulate", "Lorenz", "--until", "1", "--noise", "1e308", "-o", "old.out"}, kUsage,
          {"--noise", "overflows"});
}

TEST_F(NumbersTest, SquaresThatOverflowAreNamed) {
  write("large.csv", "t,x,y\n0,1e200,1\n1,-1e200,2\n2,1e200,3\n3,2e200,4\n");
  refused({"inspect", "large.csv"}, kBadData, {"large.csv, column x", "whose squares overflow"});
  refused({"inspect", "large.csv", "--json"}, kBadData, {"large.csv"});
  write("forecast.csv",
        "t,x_mean,x_sd,x_lower,x_upper\n0,1,1,0,2\n1,1,1,0,2\n2,1,1,0,2\n3,1,1,0,2\n");
  refused({"score", "forecast.csv", "large.csv"}, kBadData, {"scores", "overflows"});
}

TEST_F(NumbersTest, WhatIsNotKnownIsSaidInWords) {
  write("empty.csv", "t,x,y\n0,1,\n1,2,\n2,4,\n3,8,\n");
  const Result inspected = run({"inspect", "empty.csv"});
  EXPECT_FALSE(contains(inspected.out, "nan")) << inspected.out;
  write("forecast.csv",
        "t,x_mean,x_sd,x_lower,x_upper,y_mean,y_sd,y_lower,y_upper\n0,1,1,0,2,1,1,0,2\n1,1,1,0,2,1,"
        "1,0,2\n2,1,1,0,2,1,1,0,2\n");
  write("truth.csv", "t,x,y\n0,1,1\n1,2,1\n2,3,1\n");
  const Result scored = run_well({"score", "forecast.csv", "truth.csv"});
  EXPECT_FALSE(contains(scored.out, "nan")) << scored.out;
  EXPECT_TRUE(contains(scored.out, "constant")) << scored.out;
}

}  // namespace
}  // namespace odecast::cli_test
