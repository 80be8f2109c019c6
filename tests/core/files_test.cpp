#include "odecast/core/files.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "odecast/core/error.hpp"

namespace odecast {
namespace {

class FilesTest : public testing::Test {
 protected:
  FilesTest() {
    std::string name = (std::filesystem::temp_directory_path() / "odecast-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
  }
  ~FilesTest() override { std::filesystem::remove_all(directory_); }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory_),
                                                  std::filesystem::directory_iterator()));
  }
  std::filesystem::path directory_;
};

TEST_F(FilesTest, AFileAppearsWholeAndNothingElse) {
  const auto path = directory_ / "a.txt";
  const std::string text(3'000'000, 'x');
  write_file(path, text);
  EXPECT_EQ(read_file(path), text);
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FilesTest, WithoutCommitTheOldFileStays) {
  const auto path = directory_ / "a.txt";
  write_file(path, "old");
  {
    AtomicFile file(path);
    file.write(std::string(2'000'000, 'y'));  // enough to reach the disk
    EXPECT_EQ(entries(), 2u);
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FilesTest, ErrorsNameThePath) {
  const auto expect_error = [](auto&& action, const std::string& part) {
    try {
      action();
      ADD_FAILURE() << "no error for " << part;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::file);
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
  };
  expect_error([&] { read_file(directory_ / "missing.csv"); }, "missing.csv");
  expect_error([&] { check_writable(directory_ / "no" / "a.csv"); }, "no/a.csv");
  expect_error([&] { check_writable(directory_); }, "directory");
  expect_error([&] { write_file(directory_ / "no" / "a.csv", "x"); }, "no/a.csv");
  EXPECT_NO_THROW(check_writable(directory_ / "fine.csv"));
  EXPECT_EQ(entries(), 0u);
}

TEST_F(FilesTest, LinksToTheSameFileAreSeen) {
  write_file(directory_ / "a", "x");
  std::filesystem::create_symlink(directory_ / "a", directory_ / "b");
  EXPECT_TRUE(same_file(directory_ / "a", directory_ / "b"));
  EXPECT_FALSE(same_file(directory_ / "a", directory_ / "c"));
}

TEST_F(FilesTest, ALinkStaysAndItsTargetIsWritten) {
  std::filesystem::create_symlink("there", directory_ / "link");
  std::filesystem::create_symlink("link", directory_ / "chain");
  for (const char* text : {"new", "newer"}) {  // to what is not there yet, and to what is
    write_file(directory_ / "chain", text);
    EXPECT_EQ(read_file(directory_ / "there"), text);
  }
  EXPECT_EQ(std::filesystem::read_symlink(directory_ / "chain"), "link");
  EXPECT_EQ(std::filesystem::read_symlink(directory_ / "link"), "there");
  EXPECT_EQ(entries(), 3u);
}

TEST_F(FilesTest, OfSeveralFilesAllAreReplacedOrNone) {
  write_file(directory_ / "a", "old");
  EXPECT_THROW(write_files({{directory_ / "a", "new"}, {directory_ / "no" / "b", "new"}}), Error);
  EXPECT_EQ(read_file(directory_ / "a"), "old");
  write_files({{directory_ / "a", "new"}, {directory_ / "b", "new too"}});
  EXPECT_EQ(read_file(directory_ / "a") + read_file(directory_ / "b"), "newnew too");
  EXPECT_EQ(entries(), 2u);
}

TEST_F(FilesTest, AnEmptyNameIsNoPlaceToWrite) {
  EXPECT_THROW(check_writable(""), Error);
  EXPECT_THROW(check_writable(directory_ / ""), Error);
}

// In a process of its own: nothing is written after that.
TEST_F(FilesTest, TemporariesCanBeRemovedAtOnce) {
  const auto in_child = [&] {
    AtomicFile one(directory_ / "a");
    AtomicFile other(directory_ / "b");
    const auto made = entries();
    remove_temporaries();
    ::_exit(made == 2u && entries() == 0u ? 0 : 1);
  };
  EXPECT_EXIT(in_child(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace odecast
