#include "odecast/model/status.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace odecast {
namespace {

constexpr auto kLast = static_cast<int>(FitStatus::diverged);

TEST(StatusTest, EveryStatusHasANameOfItsOwnThatIsReadBack) {
  std::set<std::string> names;
  for (int k = 0; k <= kLast; ++k) {
    const auto status = static_cast<FitStatus>(k);
    EXPECT_EQ(fit_status_from_name(status_name(status)), status);
    names.emplace(status_name(status));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kLast) + 1);
  EXPECT_FALSE(fit_status_from_name("test").has_value());
  EXPECT_FALSE(fit_status_from_name("").has_value());
}

TEST(StatusTest, ExactlyWhatIsNotToBeTrustedHasASentence) {
  for (int k = 0; k <= kLast; ++k) {
    const auto status = static_cast<FitStatus>(k);
    const bool trusted = status <= FitStatus::schedule_done;
    EXPECT_EQ(distrust(status).empty(), trusted) << status_name(status);
    EXPECT_EQ(distrust(status_name(status)), distrust(status));
  }
  EXPECT_EQ(distrust("a status of a later version"), "");
}

}  // namespace
}  // namespace odecast
