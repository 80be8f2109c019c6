#include "odecast/core/work.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>

#include "odecast/core/error.hpp"
#include "odecast/core/files.hpp"

namespace odecast {
namespace {

namespace fs = std::filesystem;

class WorkTest : public testing::Test {
 protected:
  WorkTest() {
    std::string name = (fs::temp_directory_path() / "odecast-work-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary directory");
    base = name;
    folder = base / "study";
  }
  ~WorkTest() override { fs::remove_all(base); }

  /// Every file below, with its bytes; links as what they point to.
  std::map<std::string, std::string> all() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(base))
      files[entry.path().string()] = entry.is_symlink()
                                         ? "-> " + fs::read_symlink(entry.path()).string()
                                     : entry.is_regular_file() ? read_file(entry.path())
                                                               : "";
    return files;
  }
  void refuses(ErrorKind kind, const std::string& settings = "odecast test\n") const {
    const auto before = all();
    try {
      const FolderClaim claim(folder, settings);
      FAIL() << "claimed";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), kind) << e.what();
    }
    EXPECT_EQ(all(), before) << "a refused run touches nothing";
  }
  void claims() const { const FolderClaim claim(folder, "odecast test\n"); }

  fs::path base, folder;
};

/// A process number that nobody has.
pid_t dead_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return child;
}

TEST_F(WorkTest, NewAndEmptyFoldersAndOurOwnAreClaimed) {
  claims();
  claims();
  fs::remove_all(folder);
  fs::create_directory(folder);
  claims();
  // What a run leaves that was killed in its first moments.
  fs::remove(folder / "units" / "settings");
  write_file(folder / "units" / (".settings." + std::to_string(dead_process()) + "-0.tmp"), "odec");
  claims();
  EXPECT_EQ(read_file(folder / "units" / "settings"), "odecast test\n");
  // Its name in the lock makes the folder ours, whatever its user has put there since.
  fs::remove(folder / "units" / "settings");
  write_file(folder / "units" / "lock", "process 1 on a host");
  write_file(folder / "notes.txt", "precious");
  claims();
  EXPECT_EQ(read_file(folder / "notes.txt"), "precious");
}

TEST_F(WorkTest, FoldersOfOthersAreRefused) {
  fs::create_directories(folder / "units");
  write_file(folder / "units" / "notes.txt", "precious");
  refuses(ErrorKind::usage);
  fs::remove(folder / "units" / "notes.txt");
  write_file(folder / "units" / "lock", "precious");
  refuses(ErrorKind::usage);
  fs::remove_all(folder / "units");
  write_file(folder / "thesis.tex", "precious");
  refuses(ErrorKind::usage);
  fs::remove(folder / "thesis.tex");
  write_file(folder / "units", "a file");
  refuses(ErrorKind::usage);
  fs::remove(folder / "units");
  fs::create_directories(folder / "units");
  write_file(folder / "units" / "settings", "of another program\n");
  refuses(ErrorKind::usage);
  fs::remove_all(folder);
  write_file(folder, "a file");
  refuses(ErrorKind::usage);
}

TEST_F(WorkTest, NothingGoesThroughALink) {
  claims();
  fs::rename(folder / "units", base / "elsewhere");
  fs::create_directory_symlink(base / "elsewhere", folder / "units");
  write_file(base / "elsewhere" / "v.txt", "precious");
  refuses(ErrorKind::usage);
}

TEST_F(WorkTest, OtherSettingsAreRefused) {
  claims();
  refuses(ErrorKind::usage, "odecast test of something else\n");
}

TEST_F(WorkTest, OneProcessAtATime) {
  const FolderClaim claim(folder, "odecast test\n");
  refuses(ErrorKind::file);
  refuses(ErrorKind::usage, "odecast test of something else\n");
  try {
    claims();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("process " + std::to_string(::getpid()) + " on "),
              std::string::npos)
        << e.what();
  }
}

TEST_F(WorkTest, OnlyLeftoversOfTheDeadAreRemoved) {
  claims();
  const std::string dead = std::to_string(dead_process()), alive = std::to_string(::getppid());
  const fs::path units = folder / "units";
  const std::vector<std::string> foreign = {"notes.txt",
                                            "data.csv",
                                            ".a.json.swp",
                                            "a.json.tmp",
                                            "." + dead + "-0.tmp",
                                            ".x.txt." + dead + "-0.tmp",
                                            ".a.json." + alive + "-0.tmp",
                                            ".a.json." + dead + "-.tmp"};
  for (const auto& name : foreign) write_file(units / name, "precious");
  write_file(base / "kept.txt", "precious");
  fs::create_symlink(base / "kept.txt", units / (".b.json." + dead + "-0.tmp"));
  fs::create_directory(units / (".c.json." + dead + "-0.tmp"));
  const auto before = all();
  write_file(units / (".a.json." + dead + "-3.tmp"), "half a");
  write_file(units / (".settings." + dead + "-0.tmp"), "half a");
  claims();
  EXPECT_EQ(all(), before);
}

TEST_F(WorkTest, InterruptedWorkGoesOnWithTheSameResults) {
  const auto unit = [](double x) {
    return Unit{"unit" + std::to_string(static_cast<int>(x)), 1, [x](const Observer&) {
                  Values v;
                  v.numbers["x"] = x / 3;
                  return v;
                }};
  };
  const WorkOptions options{folder, "odecast test\n", "testing", 2};
  EXPECT_EQ(run_units({unit(1), unit(2)}, options, ignore_progress).found, 0);
  const Work more = run_units({unit(1), unit(2), unit(3)}, options, ignore_progress);
  EXPECT_EQ(more.found, 2);
  EXPECT_EQ(more.results.at("unit2").numbers.at("x"), 2.0 / 3);
}

// An observer that throws on the calling thread ends the others too, and its exception is the one
// that arrives.
TEST_F(WorkTest, AnInterruptionArrivesAsItIs) {
  for (int round = 0; round < 50; ++round) {
    std::vector<Unit> units;
    for (int k = 0; k < 4; ++k)
      units.push_back({"u" + std::to_string(k), 1, [](const Observer& watch) -> Values {
                         for (;;) watch("working", 0);
                       }});
    int calls = 0;
    try {
      run_units(units, {folder, "odecast test\n", "testing", 4}, [&](std::string_view, double) {
        if (++calls == 100 + round) throw Interrupted(15);
      });
      FAIL();
    } catch (const Interrupted& e) {
      EXPECT_EQ(e.signal(), 15);
    }
  }
}

}  // namespace
}  // namespace odecast
