#include "cli/bad_input.hpp"

namespace odecast::cli_test {
namespace {

constexpr double kConstant = 64;  // MB that no file has to pay for

class MemoryTest : public BadInputTest {
 protected:
  void SetUp() override {
#ifdef ODECAST_SANITIZED
    GTEST_SKIP() << "sanitizers take memory of their own";
#endif
  }
};

TEST_F(MemoryTest, ManyShortNumbersAreRefusedBeforeTheyAreKept) {
  std::string numbers = "{\"odecast_model\":1,\"unused\":[1";
  while (numbers.size() < 10'000'000) numbers += ",1,1,1,1,1,1,1,1";
  write("many.json", numbers + "]}");
  const Result r = refused({"equations", "many.json"}, kBadData, {"many.json", "more values"});
  EXPECT_LT(r.megabytes, 4 * 10 + kConstant);
}

TEST_F(MemoryTest, FilesWithoutAnEndAreRefused) {
  EXPECT_LT(refused({"equations", "/dev/zero"}, kBadData, {"/dev/zero"}).megabytes, kConstant);
  write("sparse.json", "{");
  fs::resize_file(path("sparse.json"), std::uintmax_t{1} << 36);
  const Result r = run({"equations", "sparse.json"});
  fs::remove(path("sparse.json"));
  EXPECT_EQ(r.code, kBadData);
  EXPECT_TRUE(contains(r.err, "more than 256 MiB")) << r.err;
  EXPECT_LT(r.megabytes, kConstant);
}

TEST_F(MemoryTest, RegressionTakesFourTimesItsNumbers) {
  const int rows = 100'001;
  run_well({"simulate", "Lorenz", "--until", "1000", "--step", "0.01", "--noise", "0.01", "-o",
            "train.csv"});
  const double numbers = rows * 4 * 8 / 1048576.0;  // times and three columns
  const Result even =
      run({"fit", "train.csv", "--posterior", "regression", "-o", "m.json", "--threads", "1"});
  EXPECT_EQ(even.code, 0) << even.err;
  EXPECT_LT(even.megabytes, 4 * numbers + kConstant);
  // Without every tenth row times are uneven, and rules of integration are polynomials fitted
  // around each interval.
  const Words lines = split(read("train.csv"), '\n');
  std::string uneven;
  for (std::size_t k = 0; k < lines.size(); ++k)
    if (k % 10 != 5) uneven += lines[k] + (k + 1 < lines.size() ? "\n" : "");
  write("uneven.csv", uneven);
  const Result other =
      run({"fit", "uneven.csv", "--posterior", "regression", "-o", "m.json", "--threads", "1"});
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_LT(other.megabytes, 4 * numbers + kConstant);
}

}  // namespace
}  // namespace odecast::cli_test
