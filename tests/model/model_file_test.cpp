#include "odecast/model/model_file.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "odecast/core/error.hpp"
#include "support/models.hpp"

namespace odecast {
namespace {

std::string refusal(const std::string& text) {
  try {
    model_from_text(text, "m.json");
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::data);
    return e.what();
  }
}

TEST(ModelFileTest, EveryNumberSurvivesBitForBit) {
  Model m = make_model(random_kernel(3, 10, 3, 0.15, true, 1));
  m.scaling = {Eigen::Vector3d(1e-9, 0.1, -1e300), Eigen::Vector3d(1e-12, 1.0 / 3, 1e12)};
  m.last_state_sd = Eigen::Vector3d(0.1, 0.2, 0.3);
  m.training.objective = 1.1785797;
  m.training.seed = ~0ull;
  const Model back = model_from_text(model_to_text(m), "m");
  EXPECT_EQ(back.variables, m.variables);
  EXPECT_EQ(back.scaling.offset, m.scaling.offset);
  EXPECT_EQ(back.scaling.scale, m.scaling.scale);
  EXPECT_EQ(parameters(back.network()), parameters(m.network()));
  EXPECT_EQ(back.network().layers[0].dropout, 0.15);
  EXPECT_EQ(back.network().layers[0].power, 3);
  EXPECT_TRUE(back.network().layers[0].rescale);
  EXPECT_EQ(back.last_state, m.last_state);
  EXPECT_EQ(*back.last_state_sd, *m.last_state_sd);
  EXPECT_EQ(back.training.seed, ~0ull);
  EXPECT_EQ(model_to_text(back), model_to_text(m));
}

TEST(ModelFileTest, NoiseThatGrowsWithTheStateIsKeptAndChecked) {
  Model m = forced_model(-1, 0.01, 0.1);
  m.noise = Vector::Constant(1, 0.1);
  m.relative_noise = Vector::Constant(1, 1.0 / 3);
  m.trajectory->precision = 1e-7 / 3;
  const Model back = model_from_text(model_to_text(m), "m");
  EXPECT_EQ(back.relative_noise, m.relative_noise);
  EXPECT_EQ(back.trajectory->precision, m.trajectory->precision);
  EXPECT_EQ(model_to_text(back), model_to_text(m));
  m.relative_noise[0] = 1.5;
  EXPECT_NE(refusal(model_to_text(m)).find("relative_noise"), std::string::npos);
  m.relative_noise[0] = 1;
  m.noise = {};
  EXPECT_NE(refusal(model_to_text(m)).find("relative_noise"), std::string::npos);
}

TEST(ModelFileTest, NoiseOfTheLogarithmIsKeptAndChecked) {
  Model m = forced_model(-1, 0.01, 0.1);
  m.noise = Vector::Constant(1, 0.1);
  m.relative_noise = Vector::Ones(1);
  m.log_noise = {true};
  const std::string text = model_to_text(m);
  EXPECT_NE(text.find("\"odecast_model\": 11"), std::string::npos);
  const Model back = model_from_text(text, "m");
  EXPECT_EQ(back.log_noise, m.log_noise);
  EXPECT_EQ(model_to_text(back), text);
  m.relative_noise[0] = 0.5;  // part of it constant
  EXPECT_NE(refusal(model_to_text(m)).find("log_noise"), std::string::npos);
  m.relative_noise[0] = 1;
  m.log_noise = {true, false};
  EXPECT_NE(refusal(model_to_text(m)).find("log_noise"), std::string::npos);
}

TEST(ModelFileTest, RowsOfTheFitAreKeptAndChecked) {
  Model m = make_model(random_kernel(2, 3, 2, 0.25, false, 1));
  EXPECT_FALSE(model_from_text(model_to_text(m), "m").observed.has_value()) << "as files of old";
  KeptRows kept{.from = -1,
                .until = 1e9 + 0.1,
                .low = Eigen::Vector2d(-3, 0),
                .high = Eigen::Vector2d(1, 0.5),
                .hashes = {3, ~0ull},
                .times = {0.1, 0.3},
                .states = Matrix(2, 2)};
  kept.states << 1e-300, 0.1, std::numeric_limits<double>::quiet_NaN(), -3;
  m.observed = kept;
  const Model back = model_from_text(model_to_text(m), "m");
  ASSERT_TRUE(back.observed.has_value());
  EXPECT_EQ(back.observed->from, -1);
  EXPECT_EQ(back.observed->until, kept.until);
  EXPECT_EQ(back.observed->hashes, kept.hashes);
  EXPECT_EQ(back.observed->times, kept.times);
  EXPECT_EQ(back.observed->states.row(0), kept.states.row(0));
  EXPECT_TRUE(std::isnan(back.observed->states(1, 0)));
  EXPECT_EQ(model_to_text(back), model_to_text(m));
  EXPECT_EQ(back.observed->low, kept.low);
  EXPECT_EQ(back.observed->high, kept.high);
  m.observed->sample = Matrix::Constant(3, 2, 0.25);
  EXPECT_EQ(model_from_text(model_to_text(m), "m").observed->sample, m.observed->sample);
  m.observed->sample = Matrix::Zero(kKeptSample + 1, 2);
  EXPECT_NE(refusal(model_to_text(m)).find("sample"), std::string::npos);
  m.observed->sample = {};
  m.observed->low[0] = 2;
  EXPECT_NE(refusal(model_to_text(m)).find("low"), std::string::npos);
  m.observed->low[0] = -3;
  m.observed->times = {0.3, 0.1};
  EXPECT_NE(refusal(model_to_text(m)).find("increase"), std::string::npos);
  m.observed->times = {0.3};
  EXPECT_NE(refusal(model_to_text(m)).find("states"), std::string::npos);
}

TEST(ModelFileTest, ForcingIsKeptAndChecked) {
  Model m = forced_model(-1, 0.25, 0.1);
  const Model back = model_from_text(model_to_text(m), "m");
  EXPECT_EQ(back.trajectory->forcing.sd, m.trajectory->forcing.sd);
  EXPECT_EQ(back.trajectory->forcing.interval, 0.1);
  m.trajectory->forcing.interval = 0;
  EXPECT_NE(refusal(model_to_text(m)).find("forcing"), std::string::npos);
}

TEST(ModelFileTest, TheColumnOfTimesIsKeptWhereItIsNotT) {
  Model m = make_model(random_kernel(2, 3, 2, 0.25, false, 1));
  EXPECT_EQ(model_to_text(m).find("\"name\""), std::string::npos);
  m.time_name = "Year";
  EXPECT_EQ(model_from_text(model_to_text(m), "m").time_name, "Year");
  for (const std::optional<int> offset : {std::optional<int>(), std::optional(-210)})
    for (const TimeUnit unit : {TimeUnit::second, TimeUnit::hour, TimeUnit::civil_year}) {
      m.calendar = Calendar{unit, {-5'000'000'000, 999'999'999}, offset, TimeDetail::month};
      EXPECT_EQ(model_from_text(model_to_text(m), "m").calendar, m.calendar);
    }
  m.calendar->offset = 5000;
  EXPECT_NE(refusal(model_to_text(m)).find("offset"), std::string::npos);
}

TEST(ModelFileTest, OffsetsPositiveVariablesAndEmbeddingsAreKeptAndOfVersion8) {
  const Model plain = forced_model(-1, 0.25, 0.1);
  EXPECT_NE(model_to_text(plain).find("\"odecast_model\": 7"), std::string::npos);
  Model m = plain;
  m.scaling.offset[0] = 300;
  EXPECT_EQ(model_from_text(model_to_text(m), "m").scaling.offset[0], 300);
  m = plain;
  m.positive = {true};
  EXPECT_NE(model_to_text(m).find("\"odecast_model\": 8"), std::string::npos);
  EXPECT_EQ(model_from_text(model_to_text(m), "m").positive, m.positive);
  m.positive = {true, false};
  EXPECT_NE(refusal(model_to_text(m)).find("positive"), std::string::npos);
  m = make_model(random_kernel(2, 3, 2, 0.25, false, 1));
  m.embedding = {EmbeddingKind::derivatives, 2, 4, 0.25};
  EXPECT_EQ(model_from_text(model_to_text(m), "m").embedding, m.embedding);
  m.embedding->count = 3;
  EXPECT_NE(refusal(model_to_text(m)).find("coordinates"), std::string::npos);
}

TEST(ModelFileTest, AnyChangedByteIsRefused) {
  const std::string text = model_to_text(make_model(random_kernel(2, 3, 2, 0.25, false, 1)));
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const int change : {1, 16, 128}) {
      std::string other = text;
      other[i] = static_cast<char>(other[i] ^ change);
      EXPECT_NE(refusal(other), "") << "byte " << i << " xor " << change;
    }
  }
}

TEST(ModelFileTest, AnyTruncationIsRefused) {
  const std::string text = model_to_text(make_model(random_kernel(2, 3, 2, 0.25, false, 1)));
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_NE(refusal(text.substr(0, size)), "") << size;
  EXPECT_NE(refusal(text + " "), "");
}

TEST(ModelFileTest, ANewerVersionIsNamed) {
  std::string text = model_to_text(make_model(random_kernel(2, 3, 2, 0.25, false, 1)));
  const auto at = text.find("\"odecast_model\": 7");
  text.replace(at, 18, "\"odecast_model\": 99");
  EXPECT_NE(refusal(text).find("newer"), std::string::npos) << refusal(text);
}

TEST(ModelFileTest, ForeignAndHostileTextsAreRefused) {
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{}"), std::string("null"),
        std::string("{\"odecast_model\": \"x\"}"), std::string(100'000, '['),
        std::string("{\"odecast_model\": 1}"), std::string("\xff\xfe\x00", 3)})
    EXPECT_NE(refusal(text), "");
}

TEST(ModelFileTest, WhatNoFitCanGiveIsRefused) {
  Model m = forced_model(-1, 0.25, 0.1);
  CoefficientSet& set = m.polynomial()->sets[0];
  set.support = {{0, 0}, {0, 1}};
  set.theta = Vector::Ones(2);
  set.covariance = Matrix::Identity(2, 2);
  ASSERT_EQ(refusal(model_to_text(m)), "");
  const auto refused = [&](auto change, const char* member) {
    Model other = m;
    change(other);
    EXPECT_NE(refusal(model_to_text(other)).find(member), std::string::npos)
        << member << ": " << refusal(model_to_text(other));
  };
  const auto covariance = [&](double a, double b, double c, double d) {
    refused([&](Model& o) { o.polynomial()->sets[0].covariance << a, b, c, d; }, "covariance");
  };
  covariance(-1e-300, 0, 0, 1);
  covariance(1, 2, 2, 1);       // correlation of 2
  covariance(1, 0.5, -0.5, 1);  // not symmetric
  refused([](Model& o) { o.last_state_sd = Vector::Constant(1, -1); }, "sd");
  refused([](Model& o) { o.size[0] = -1; }, "size");
  refused([](Model& o) { o.trajectory->noise_ratio = -1; }, "noise_ratio");
  refused(
      [](Model& o) {  // a last state of coefficients that are points
        CoefficientSet& one = o.polynomial()->sets[0];
        one.last_state = Vector::Ones(1);
        one.last_slope = Matrix::Zero(1, 2);
        one.last_covariance = Matrix::Identity(1, 1);
        one.covariance = Matrix();
      },
      "covariance");
  // Singular to round-off is not impossible: correlations of 1 are what data without noise give.
  set.covariance << 1e-20, 1e-10 * (1 + 1e-12), 1e-10 * (1 + 1e-12), 1;
  EXPECT_EQ(refusal(model_to_text(m)), "");
}

TEST(ModelFileTest, AKernelThatExpandsToHundredsOfMegabytesIsRefused) {
  Model m = make_model(random_kernel(20, 90, 5, 0.25, false, 1));
  for (std::size_t i = 0; i < 20; ++i) m.variables[i] = "x" + std::to_string(i);
  const std::string text = model_to_text(m);
  EXPECT_LT(text.size(), 500'000u);
  EXPECT_NE(refusal(text).find("power"), std::string::npos);
}

}  // namespace
}  // namespace odecast
