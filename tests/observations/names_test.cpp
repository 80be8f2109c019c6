#include "support/names.hpp"

#include <gtest/gtest.h>

#include "odecast/core/error.hpp"
#include "odecast/observations/csv.hpp"
#include "odecast/observations/npy.hpp"
#include "odecast/observations/reading.hpp"
#include "odecast/observations/rows.hpp"

namespace odecast {
namespace {

/// Two rows for each trajectory; of the names the last may be an input.
Dataset table(std::vector<std::string> names, const std::vector<std::string>& ids, bool input) {
  Dataset d;
  if (input && names.size() > 1) {
    d.inputs = {names.back()};
    names.pop_back();
  }
  d.variables = std::move(names);
  const auto n = static_cast<Eigen::Index>(d.variables.size()),
             m = static_cast<Eigen::Index>(d.inputs.size());
  for (const auto& id : ids) {
    d.trajectories.push_back({ids.size() > 1 ? id : "",
                              {0, 0.5},
                              Matrix::Random(2, n),
                              m > 0 ? Matrix(Matrix::Random(2, m)) : Matrix()});
  }
  return d;
}

ReadOptions same_columns(const Dataset& d) {
  ReadOptions o{.time = time_column(d), .variables = d.variables, .inputs = d.inputs};
  const std::string id = id_column(d);
  if (d.trajectories.size() > 1 && id != "trajectory" && id != "series" && id != "id") o.id = id;
  return o;
}

RC_GTEST_PROP(NamesTest, AnyNameSurvivesEveryFileOfObservations, ()) {
  const Dataset d = table(*any_names(), *any_names(), *rc::gen::arbitrary<bool>());
  for (const std::string& bytes : {format_csv(d), format_npz(d)}) {
    const Dataset back = parse_observations(bytes, "f", same_columns(d));
    RC_ASSERT(back.variables == d.variables);
    RC_ASSERT(back.inputs == d.inputs);
    RC_ASSERT(back.trajectories.size() == d.trajectories.size());
    for (std::size_t k = 0; k < d.trajectories.size(); ++k) {
      RC_ASSERT(back.trajectories[k].id == d.trajectories[k].id);
      RC_ASSERT(back.trajectories[k].times == d.trajectories[k].times);
      RC_ASSERT(back.trajectories[k].states == d.trajectories[k].states);
      RC_ASSERT(back.trajectories[k].inputs == d.trajectories[k].inputs);
    }
  }
}

RC_GTEST_PROP(NamesTest, NamesThatNoFileCanHoldAreRefused, ()) {
  const std::string name =
      *rc::gen::suchThat(any_text(), [](const std::string& s) { return name_fault(s) != nullptr; });
  const Dataset d = table({name}, {"a"}, false);
  RC_ASSERT_THROWS_AS(parse_observations(format_npz(d), "f"), Error);
  RC_ASSERT_THROWS_AS(format_csv(table({"x"}, {name, name + "b"}, false)), Error);
}

TEST(NamesTest, TimeAndIdColumnsKeepOutOfTheWay) {
  Dataset d = table({"t", "trajectory"}, {"a", "b"}, false);
  EXPECT_TRUE(format_csv(d).starts_with("series,time,t,trajectory\n"));
  d.time_name = "clock";
  EXPECT_TRUE(format_csv(d).starts_with("series,clock,t,trajectory\n"));
  EXPECT_EQ(time_column(table({"t", "time", "time_"}, {"a"}, false)), "time__");
  // A driven system whose input is called t: the time keeps the name it was read with.
  const Dataset driven =
      parse_observations("clock,x,t\n0,1,2\n1,2,3\n", "f", {.time = "clock", .inputs = {"t"}});
  EXPECT_TRUE(format_csv(driven).starts_with("clock,x,t\n"));
}

}  // namespace
}  // namespace odecast
