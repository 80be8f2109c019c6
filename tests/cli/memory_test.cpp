#include "cli/bad_input.hpp"

namespace odecast::cli_test {
namespace {

constexpr double kConstant = 64;  // MB that no file has to pay for

class MemoryTest : public BadInputTest {};

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

}  // namespace
}  // namespace odecast::cli_test
