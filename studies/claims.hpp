#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "studies/units.hpp"

namespace odecast {

/// The command that makes this study, without the folder.
std::string study_command(const StudyOptions& options);

/// A number with its standard error; n is how many independent values it is the mean of.
struct Measured {
  double value = 0, se = 0;
  int n = 0;
};

/// With two digits of the standard error; three digits where there is none.
std::string rounded(const Measured& estimate);

enum class Verdict { holds, fails, undecided };

/// A claim of the paper in one reading. No `estimate`: the reading has no such number.
struct ReadingResult {
  std::optional<Measured> estimate;
  Verdict verdict = Verdict::undecided;
};

/// A claim of the paper: what it says in our words, the statistic that decides it, and the rule. A
/// verdict needs two standard errors.
struct Claim {
  std::string id, claim, statistic, rule, unit;
  std::optional<double> yardstick;        ///< the statistic of the constant band, where it has one
  std::array<ReadingResult, 3> readings;  ///< in the order of kReadings

  /// holds, does not hold, depends on the reading, not decided
  std::string verdict() const;
};
std::string verdict_name(Verdict verdict);

std::vector<Claim> paper_claims(const Setting& setting, const StudyOptions& options,
                                const UnitResults& results);

/// Something that the text leaves out: a heading, what it means, and a table of numbers.
struct Finding {
  std::string id, heading, text;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};
std::vector<Finding> findings(const Setting& setting, const StudyOptions& options,
                              const UnitResults& results);

std::string claims_json(const Setting& setting, const StudyOptions& options,
                        const std::vector<Claim>& claims, const std::vector<Finding>& findings);
std::string claims_csv(const std::vector<Claim>& claims);
/// docs/reproduction.md, from nothing but what claims.json holds.
std::string claims_markdown(const std::string& claims_json);

}  // namespace odecast
