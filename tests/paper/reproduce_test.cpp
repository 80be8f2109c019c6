// `odecast reproduce`, with as little training as it takes: what does not depend on training is as
// in the full study.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/program.hpp"

namespace odecast::cli_test {
namespace {

class ReproduceTest : public ProgramTest {
 protected:
  std::vector<std::string> study(const std::string& folder, const std::string& seed) const {
    return {"reproduce", "--adam-seeds", "2",  "--batches", "2",
            "--seed",    seed,           "-o", folder,      "--quiet"};
  }
  nlohmann::json claims(const std::string& folder) const {
    return nlohmann::json::parse(read(folder + "/claims.json"));
  }
  nlohmann::json unit(const std::string& folder, const std::string& name) const {
    return nlohmann::json::parse(read(folder + "/units/" + name + ".json")).at("numbers");
  }
  std::map<std::string, std::string> files(const std::string& folder) const {
    std::map<std::string, std::string> inside;
    for (const auto& [name, bytes] : snapshot())
      if (name.starts_with(folder + "/")) inside[name.substr(folder.size())] = bytes;
    return inside;
  }
};

TEST_F(ReproduceTest, GoesOnAfterAKillAndHasTheKnownValues) {
  run_well(study("whole", "1"), {.limit = 250});
  const auto whole = files("whole");
  for (const double after : {0.3, 1.0, 2.0}) {
    const Result r = run(study("broken", "1"), {.signal = SIGKILL, .signal_after = after});
    EXPECT_EQ(r.code, -SIGKILL) << "the study was over before it was killed";
  }
  const auto some = files("broken").size();
  EXPECT_LT(some, whole.size());
  run_well(study("broken", "1"), {.limit = 250});
  EXPECT_EQ(files("broken"), whole);

  const Result other = run(study("whole", "2"));
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(contains(other.err, "other settings")) << other.err;

  // The exact column has no seed.
  run_well(study("seven", "7"), {.limit = 250});
  const auto one = claims("whole"), seven = claims("seven");
  ASSERT_EQ(one["claims"].size(), seven["claims"].size());
  EXPECT_GE(one["claims"].size(), 12u);
  bool seeds_differ = false;
  for (std::size_t k = 0; k < one["claims"].size(); ++k) {
    EXPECT_EQ(one["claims"][k]["readings"]["exact"], seven["claims"][k]["readings"]["exact"]);
    seeds_differ = seeds_differ ||
                   one["claims"][k]["readings"]["paper"] != seven["claims"][k]["readings"]["paper"];
  }
  EXPECT_TRUE(seeds_differ);
  for (const auto& [name, bytes] : whole)
    if (contains(name, "exact")) {
      const std::string other_bytes = read("seven" + name);
      if (!name.ends_with(".json")) {
        EXPECT_EQ(bytes, other_bytes) << name;
        continue;
      }
      // Units also have the hash of their settings, the seed among them.
      const auto unit_of_one = nlohmann::json::parse(bytes),
                 unit_of_seven = nlohmann::json::parse(other_bytes);
      for (const char* part : {"numbers", "curves"})
        EXPECT_EQ(unit_of_one[part], unit_of_seven[part]) << name;
    }
  int figures = 0;
  for (const auto& [name, bytes] : whole)
    figures += name.starts_with("/figures/") && name.ends_with(".svg");
  EXPECT_EQ(figures, 27);

  // Values of an independent implementation (reference/peer-numbers.md, section 2 and DESIGN
  // section 3).
  const auto base = unit("whole", "exact-h500-r25"), low = unit("whole", "exact-h500-r5");
  EXPECT_NEAR(base["objective"], 1.1785797, 1e-6);
  EXPECT_NEAR(base["second_minimum"], 1.1819124, 1e-5);
  EXPECT_NEAR(low["objective"], 0.2361778, 1e-6);
  EXPECT_NEAR(base["short_discard"], 0.10, 0.02);
  EXPECT_GE(base["short_cover_x"], 0.97);
  EXPECT_GE(base["short_width_x"], 3.3);
  EXPECT_LE(base["short_width_x"], 4.2);
  EXPECT_GE(low["short_cover_x"], 0.64);
  EXPECT_LE(low["short_cover_x"], 0.73);
  EXPECT_NEAR(base["mean_field_valid_lyapunov"], 0.56, 0.03);
  EXPECT_NEAR(base["yz_coefficient"], 0.63, 0.01);
  EXPECT_NEAR(base["bias_rms"], 0.51, 0.01);
  EXPECT_NEAR(base["mask_sd_rms"], 0.96, 0.01);
  const auto steps = unit("whole", "differences");
  EXPECT_NEAR(steps["error_250"], 0.0071, 5e-5);
  EXPECT_NEAR(steps["error_1000"], 0.0018, 5e-5);
  EXPECT_NEAR(unit("whole", "tolerance")["objective"], 1.1861, 1e-3);
}

}  // namespace
}  // namespace odecast::cli_test
