// The seeds and every finding of the fuzzers, replayed by the ordinary tests.
#include <gtest/gtest.h>

#include <filesystem>

#include "fuzz/fuzz.hpp"
#include "odecast/core/files.hpp"

TEST(CorpusTest, EveryInputIsReadOrRefused) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ODECAST_CORPUS)) {
    SCOPED_TRACE(entry.path().string());
    const std::string bytes = odecast::read_file(entry.path());
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    ++count;
  }
  EXPECT_GE(count, 3);
}
