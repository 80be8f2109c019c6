#include "odecast/learning/fields.hpp"

#include <gtest/gtest.h>

#include "odecast/core/error.hpp"
#include "odecast/core/text.hpp"

namespace odecast {
namespace {

const std::map<std::string, Method> kMethods = {{"trajectory", TrajectoryMethod{}},
                                                {"regression", RegressionMethod{}},
                                                {"bootstrap", BootstrapMethod{}},
                                                {"dropout", DropoutMethod{}},
                                                {"ensemble", EnsembleMethod{}}};

TEST(FieldsTest, WhatAFieldPrintsItReadsBack) {
  for (const auto& [name, method] : kMethods)
    for (const Field& f : fit_fields()) {
      FitOptions o{.method = method};
      const auto text = f.get(o);
      if (!text || text->empty()) continue;
      f.set(o, *text);
      EXPECT_EQ(f.get(o), text) << name << ", " << f.name;
    }
}

TEST(FieldsTest, TheInitialValueIsTheStructs) {
  for (const auto& [name, method] : kMethods)
    for (const Field& f : fit_fields())
      if (const auto text = f.get(FitOptions{.method = method});
          text && !f.initial.empty() && f.name != "posterior") {
        EXPECT_EQ(*text, f.initial) << name << ", " << f.name;
      }
}

TEST(FieldsTest, EveryMethodHasItsName) {
  for (const auto& [name, method] : kMethods) {
    EXPECT_EQ(method_name(method), name);
    EXPECT_EQ(method_name(fit_options({{"posterior", name}}).method), name);
  }
}

TEST(FieldsTest, ValuesChooseTheMethod) {
  const auto chosen = [](const std::map<std::string, std::string>& given) {
    return std::string(method_name(fit_options(given).method));
  };
  EXPECT_EQ(chosen({}), "trajectory");
  EXPECT_EQ(chosen({{"scale", "standard"}, {"trainer", "auto"}}), "trajectory");
  EXPECT_EQ(chosen({{"dropout", "0.25"}}), "dropout");
  EXPECT_EQ(chosen({{"scale", "none"}}), "dropout");
  EXPECT_EQ(chosen({{"layers", "8,8"}}), "dropout");
  EXPECT_EQ(chosen({{"kind", "map"}}), "regression");
  EXPECT_EQ(chosen({{"degree", "auto"}}), "trajectory");
  EXPECT_EQ(chosen({{"degree", "auto"}, {"kind", "map"}}), "regression");
  EXPECT_EQ(chosen({{"kind", "map"}, {"dropout", "0"}}), "dropout");
}

/// What a refusal says, with fields as Python spells them.
std::string refusal(const std::map<std::string, std::string>& given) {
  try {
    fit_options(given);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::usage);
    return spelled(e.marked(), Spelling::keywords);
  }
  return {};
}

TEST(FieldsTest, WhatCannotBeIsRefusedByName) {
  for (const auto& [given, words] :
       std::vector<std::pair<std::map<std::string, std::string>, std::vector<std::string>>>{
           {{{"degree", "0"}}, {"degree=", "1 to 20"}},
           {{{"degree", "two"}}, {"degree=", "two"}},
           {{{"nonsense", "1"}}, {"nonsense="}},
           {{{"posterior", "regression"}, {"robust", "yes"}}, {"robust=", "posterior=trajectory"}},
           {{{"posterior", "dropout"}, {"degree", "auto"}},
            {"degree=", "trajectory", "regression"}},
           {{{"dropout", "0.1"}, {"batches", "5"}}, {"batches=", "trainer=adam"}},
           {{{"budget", "-1"}}, {"budget=", "> 0"}},
           {{{"layers", "1.5"}}, {"layers=", "whole"}},
           {{{"trainer", "adam"}, {"schedule", "1"}}, {"schedule=", "STEPS@RATE"}}}) {
    const std::string said = refusal(given);
    for (const auto& word : words)
      EXPECT_NE(said.find(word), std::string::npos) << word << ": " << said;
  }
}

TEST(FieldsTest, SettingsAreThoseThatHaveAnEffect) {
  const auto has = [](const FitOptions& o, const std::string& name) {
    for (const auto& [key, _] : settings(o))
      if (key == name) return true;
    return false;
  };
  EXPECT_TRUE(has({}, "degree") && has({}, "robust"));
  EXPECT_FALSE(has({}, "dropout") || has({}, "schedule") || has({}, "derivative"));
  const FitOptions exact{.method = DropoutMethod{}};
  EXPECT_TRUE(has(exact, "starts") && has(exact, "noise_order"));
  EXPECT_FALSE(has(exact, "schedule") || has(exact, "activation") || has(exact, "robust"));
}

}  // namespace
}  // namespace odecast
