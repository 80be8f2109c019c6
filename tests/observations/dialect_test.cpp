// One table in many spellings, after the pollutions of the Pollock benchmark: each gives the same
// numbers bit for bit or an error that names the line and the column, never other numbers.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "odecast/core/error.hpp"
#include "odecast/core/files.hpp"
#include "odecast/observations/reading.hpp"

namespace odecast {
namespace {

using Cells = std::vector<std::vector<std::string>>;

const Cells& table() {
  static const Cells cells = {{"t", "x", "y"},
                              {"0", "1.5", "-0.25"},
                              {"0.1", "1e-3", "3.0e2"},
                              {"0.30000000000000004", "-7.125", "12.5"},
                              {"4.5", "0.1", "1234.0625"},
                              {"5", "2.2250738585072014e-308", "-1.7976931348623157e308"}};
  return cells;
}

std::vector<std::vector<double>> numbers() {
  std::vector<std::vector<double>> rows;
  for (std::size_t i = 1; i < table().size(); ++i) {
    rows.emplace_back();
    for (const auto& cell : table()[i]) rows.back().push_back(std::strtod(cell.c_str(), nullptr));
  }
  return rows;
}

struct Spelling {
  std::string separator = ",", end = "\n", before_cell = "", after_cell = "", mark = "",
              last_end = "*";
  bool header = true, comma = false;
  std::function<void(Cells&)> cells = [](Cells&) {};
  std::function<void(std::vector<std::string>&)> lines = [](std::vector<std::string>&) {};

  std::string text() const {
    Cells c = table();
    if (!header) c.erase(c.begin());
    cells(c);
    std::vector<std::string> rows;
    for (std::size_t i = 0; i < c.size(); ++i) {
      std::string row;
      for (std::size_t j = 0; j < c[i].size(); ++j) {
        std::string cell = c[i][j];
        if (comma && (i > 0 || !header))
          for (char& ch : cell)
            if (ch == '.') ch = ',';
        row += (j > 0 ? separator : "") + before_cell + cell + after_cell;
      }
      rows.push_back(row);
    }
    lines(rows);
    std::string text = mark;
    for (std::size_t i = 0; i < rows.size(); ++i)
      text += rows[i] + (i + 1 < rows.size() || last_end == "*" ? end : last_end);
    return text;
  }
};

struct Variation {
  std::string name, text;
  bool readable;  // what Pollock's authors expect of a good reader; else an error
};

std::vector<Variation> variations() {
  std::vector<Variation> all;
  const auto add = [&](std::string name, const Spelling& s, bool readable = true) {
    all.push_back({std::move(name), s.text(), readable});
  };
  // Separator × decimal mark × line end × header: the dialects proper.
  for (const std::string separator : {",", ";", "\t", "|"})
    for (const bool comma : {false, true})
      for (const std::string end : {"\n", "\r\n", "\r"})
        for (const bool header : {true, false}) {
          if (comma && separator == ",") continue;
          Spelling s;
          s.separator = separator, s.comma = comma, s.end = end, s.header = header;
          const std::string ends = end == "\n" ? "LF" : end == "\r" ? "CR" : "CRLF";
          add("separator '" + separator + (comma ? "' comma " : "' point ") + ends +
                  (header ? "" : " no header"),
              s);
        }
  // All cells quoted, with the separators.
  for (const std::string separator : {",", ";", "\t", "|"}) {
    Spelling s;
    s.separator = separator, s.before_cell = s.after_cell = "\"";
    add("quoted, separator '" + separator + "'", s);
    s = {};
    s.separator = separator == "\t" ? "\t " : separator + " ";
    add("blank after separator '" + separator + "'", s);
    s = {};
    s.separator = separator, s.last_end = "";
    add("no final line end, separator '" + separator + "'", s);
    s = {};
    s.separator = separator, s.mark = "\xef\xbb\xbf";
    add("byte order mark, separator '" + separator + "'", s);
  }
  Spelling s;
  s.end = "\r\r\n";
  add("CR CR LF", s);
  s = {}, s.before_cell = " ", s.after_cell = "  ";
  add("blanks around cells", s);
  s = {}, s.before_cell = " \"", s.after_cell = "\" ";
  add("blanks around quotes", s);
  s = {}, s.lines = [](auto& l) { l.insert(l.begin(), {"# made by hand", ""}); };
  add("comment and blank line above", s);
  s = {}, s.lines = [](auto& l) { l.insert(l.begin() + 1, "# units: s, m, m"); };
  add("comment below the header", s);
  s = {}, s.lines = [](auto& l) { l.insert(l.begin() + 3, "  # a pause"); };
  add("comment among the rows", s);
  s = {}, s.lines = [](auto& l) { l.insert(l.end(), {"", " ", "# end", ""}); };
  add("blank lines below", s);
  s = {}, s.cells = [](auto& c) { c[2][1] = "+0.001"; };
  add("plus sign", s);
  s = {}, s.cells = [](auto& c) { c[0] = {"TIME", "x", "y"}; };
  add("time in capitals", s);
  s = {}, s.cells = [](auto& c) {
    for (auto& row : c) std::rotate(row.begin(), row.begin() + 1, row.end());
  };
  add("time last", s);
  s = {}, s.cells = [](auto& c) { c[1][0] = "0.000", c[4][1] = "1E-1", c[3][2] = "1.25e+01"; };
  add("numbers spelt otherwise", s);
  s = {}, s.lines = [](auto& l) { l[2] += "\r", l[4] += "\r"; };
  add("mixed line ends", s);
  s = {}, s.cells = [](auto& c) { c[3][1] = "\"-7.125\""; };
  add("one quoted cell", s);
  // Tables that are broken: refused.
  const auto broken = [&](
                          std::string name, std::function<void(Cells&)> cells,
                          std::function<void(std::vector<std::string>&)> lines = [](auto&) {}) {
    Spelling b;
    b.cells = std::move(cells), b.lines = std::move(lines);
    add(std::move(name), b, false);
  };
  const auto same = [](Cells&) {};
  for (std::size_t row = 1; row < table().size(); ++row) {
    const std::string at = " in row " + std::to_string(row);
    broken("cell too many" + at, [=](Cells& c) { c[row].push_back("1"); });
    broken("cell too few" + at, [=](Cells& c) { c[row].pop_back(); });
    broken("separator too many" + at, same, [=](auto& l) { l[row] += ","; });
    broken("separator doubled" + at, same, [=](auto& l) { l[row].insert(l[row].find(','), ","); });
    broken("quote opened" + at, [=](Cells& c) { c[row][1] = "\"" + c[row][1]; });
    broken("quote closed" + at, [=](Cells& c) { c[row][1] += "\""; });
    broken("quote inside" + at, [=](Cells& c) { c[row][1].insert(1, "\""); });
    broken("other quotes" + at, [=](Cells& c) { c[row][1] = "'" + c[row][1] + "'"; });
    broken("other separator" + at, same,
           [=](auto& l) { std::replace(l[row].begin(), l[row].end(), ',', ';'); });
    broken("empty cell" + at, [=](Cells& c) { c[row][2] = ""; });
    broken("word" + at, [=](Cells& c) { c[row][2] = "none yet"; });
    broken("unit" + at, [=](Cells& c) { c[row][2] += " mm"; });
    broken("decimal comma" + at, [=](Cells& c) { c[row][1] = "1,5"; });
    broken("thousands" + at, [=](Cells& c) { c[row][1] = "\"1,234.5\""; });
    broken("time again" + at,
           [=](Cells& c) { c.insert(c.begin() + static_cast<std::ptrdiff_t>(row), c[row]); });
    broken("escape" + at, [=](Cells& c) { c[row][1] = "\\" + c[row][1]; });
    broken("hexadecimal" + at, [=](Cells& c) { c[row][1] = "0x1p3"; });
    broken("letter O" + at, [=](Cells& c) { c[row][1] = "O.5"; });
    broken("unicode minus" + at, [=](Cells& c) {
      c[row][1] =
          "\xe2\x88\x92"
          "1";
    });
    broken("no-break space" + at, [=](Cells& c) {
      c[row][1] =
          "1\xc2\xa0"
          "000";
    });
  }
  broken("names missing", [](Cells& c) { c[0].pop_back(); });
  broken("name too many", [](Cells& c) { c[0].push_back("z"); });
  broken("names twice", [](Cells& c) { c[0][2] = "x"; });
  broken("second header", [](Cells& c) { c.insert(c.begin() + 3, c[0]); });
  broken("foot note", same, [](auto& l) { l.push_back("Source: laboratory"); });
  return all;
}

/// "" when the numbers are those of the table, an error message, or what differs.
std::string outcome(const std::string& text, bool& read) {
  Dataset d;
  read = false;
  try {
    d = parse_observations(text, "file.csv");
  } catch (const Error& e) {
    return e.what();
  }
  read = true;
  const auto expected = numbers();
  if (d.trajectories.size() != 1 || d.dimension() != 2) return "other shape";
  const Trajectory& t = d.trajectories[0];
  if (t.rows() != static_cast<int>(expected.size())) return "other number of rows";
  for (int i = 0; i < t.rows(); ++i) {
    const auto& row = expected[static_cast<std::size_t>(i)];
    if (t.times[static_cast<std::size_t>(i)] != row[0] || t.states(i, 0) != row[1] ||
        t.states(i, 1) != row[2])
      return "other numbers in row " + std::to_string(i);
  }
  return "";
}

void all_spellings_read_alike() {
  int readable = 0, refused = 0;
  for (const auto& v : variations()) {
    bool read = false;
    const std::string result = outcome(v.text, read);
    if (read) {
      EXPECT_EQ(result, "") << v.name << "\n" << v.text;
      ++readable;
    } else {
      EXPECT_NE(result.find("file.csv, line"), std::string::npos) << v.name << "\n" << result;
      ++refused;
    }
    EXPECT_EQ(read, v.readable) << v.name << "\n" << v.text << "\n" << result;
  }
  EXPECT_GE(readable, 60);
  EXPECT_GE(refused, 100);
}

TEST(DialectTest, SpellingsReadAlikeOrAreRefused) { all_spellings_read_alike(); }

TEST(DialectTest, ACommaLocaleChangesNothing) {
  // Made for the test, so that it does not depend on what the machine has.
  const auto place = std::filesystem::temp_directory_path() / "odecast_locale";
  std::filesystem::create_directories(place);
  const std::string command =
      "localedef -i de_DE -f UTF-8 " + (place / "de_DE.UTF-8").string() + " > /dev/null 2>&1";
  if (std::system(command.c_str()) != 0) GTEST_SKIP() << "no localedef to make a locale with";
  ::setenv("LOCPATH", place.c_str(), 1);
  ASSERT_NE(std::setlocale(LC_ALL, "de_DE.UTF-8"), nullptr);
  char text[8];
  std::snprintf(text, sizeof text, "%.1f", 0.5);
  EXPECT_STREQ(text, "0,5") << "the locale has no decimal comma";
  const Dataset d = parse_observations("t,x\n0,1.5\n1,2.5\n", "f");
  EXPECT_EQ(d.trajectories[0].states(0, 0), 3.0 / 2);
  std::setlocale(LC_NUMERIC, "de_DE.UTF-8");
  for (const auto& v : variations()) {
    bool read = false;
    std::setlocale(LC_ALL, "de_DE.UTF-8");
    try {
      const Dataset under = parse_observations(v.text, "file.csv");
      std::setlocale(LC_ALL, "C");
      EXPECT_EQ(outcome(v.text, read), "") << v.name;
      EXPECT_EQ(under.trajectories[0].states,
                parse_observations(v.text, "f").trajectories[0].states)
          << v.name;
    } catch (const Error&) {
      std::setlocale(LC_ALL, "C");
      outcome(v.text, read);
      EXPECT_FALSE(read) << v.name;
    }
  }
  std::setlocale(LC_ALL, "C");
  std::filesystem::remove_all(place);
}

TEST(DialectTest, PiecesOfAnySizeReadAlike) {
  // Line ends, quotes and marks may fall on any border between two reads.
  const auto path = std::filesystem::temp_directory_path() / "odecast_pieces.csv";
  std::string text = "\xef\xbb\xbft;x\r\n";
  for (int i = 0; i < 60'000; ++i)
    text += std::to_string(i) + ";0,5" + (i % 3 ? "\r\n" : i % 2 ? "\r" : "\n");
  for (int pad = 0; pad < 3; ++pad) {
    write_file(path, text);
    const Dataset d = read_observations(path), m = parse_observations(text, "f");
    ASSERT_EQ(d.rows(), 60'000);
    EXPECT_EQ(d.trajectories[0].times, m.trajectories[0].times);
    text.insert(text.find('x') + 1, "x");
  }
  std::filesystem::remove(path);
}

/// What is read of a table as people have them, and what is said of it.
struct Understood {
  Dataset data;
  std::string notes;
};

Understood understood(const std::string& text, const ReadOptions& options = {}) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("odecast-" + std::to_string(::getpid()) + "-table.csv");
  write_file(path, text);
  TableInfo table;
  Understood u{read_observations({path}, options, &table), ""};
  for (const auto& note : table.notes) u.notes += note + "\n";
  std::filesystem::remove(path);
  return u;
}

TEST(TablesTest, AnIndexAndAnEmptyColumnAreLeftOut) {
  const auto index = understood(",time,lynx\n0,1,5\n1,2,6\n2,3,8\n");
  EXPECT_EQ(index.data.variables, std::vector<std::string>{"lynx"});
  EXPECT_EQ(index.data.trajectories[0].times, (std::vector<double>{1, 2, 3}));
  EXPECT_NE(index.notes.find("counts the rows"), std::string::npos) << index.notes;
  const auto empty = understood("t,x,\n0,1,\n1,2,\n2,4,\n");
  EXPECT_EQ(empty.data.variables, std::vector<std::string>{"x"});
  // A column without a name that is neither is not guessed at.
  EXPECT_THROW(understood(",time,lynx\n0.5,1,5\n7,2,6\n2,3,8\n"), Error);
  EXPECT_THROW(understood("t,x,\n0,1,\n1,2,3\n"), Error);
}

TEST(TablesTest, TheColumnWhoseNameSpeaksOfTimeIsTheTime) {
  for (const std::string name : {"year", "Year", "Day", "Time (s)", "date", "Zeit", "t [s]"}) {
    const auto u = understood(name + ",x\n1900,1\n1901,2\n1903,4\n");
    EXPECT_EQ(u.data.trajectories[0].times, (std::vector<double>{1900, 1901, 1903})) << name;
    EXPECT_NE(u.notes.find("The time is the column '" + name + "'"), std::string::npos) << u.notes;
    EXPECT_EQ(time_column(u.data), name);
  }
  for (const char* text :
       {"year,day,x\n1,1,1\n2,2,2\n", "T_in,x\n1,1\n2,2\n", "yearly,x\n1,1\n2,2\n"})
    EXPECT_THROW(understood(text), Error) << text;
  ReadOptions both;
  both.variables = {"day", "x"};
  const auto read = understood("year,day,x\n1,5,1\n2,6,2\n", both);
  EXPECT_EQ(time_column(read.data), "t");  // so that what is written can be read
  // A column called t goes before.
  EXPECT_EQ(understood("year,t\n1,5\n2,6\n").data.variables, std::vector<std::string>{"year"});
}

TEST(TablesTest, OfSeveralFilesAllIsSaidOnce) {
  std::vector<std::filesystem::path> paths;
  for (const std::string name : {"a", "b", "c"}) {
    paths.push_back(std::filesystem::temp_directory_path() /
                    ("odecast-" + std::to_string(::getpid()) + name + ".csv"));
    write_file(paths.back(),
               name == "b" ? "year,note,x\n1,one,1\n2,two,2\n" : "year,x\n1,1\n2,2\n3,5\n");
  }
  TableInfo table;
  read_observations(paths, {}, &table);
  EXPECT_EQ(table.notes.size(), 2u);  // the time, and the column of text of one
  for (const auto& path : paths) std::filesystem::remove(path);
}

TEST(TablesTest, PreamblesAndUnitsAreFoundAndSaid) {
  const std::string rows = "0,1,2\n1,2,4\n2,3,9\n3,3,7\n";
  const auto logger = understood("Logger 7\nSerial: 1234\n\nt,x,y\ns,K,bar\n" + rows);
  EXPECT_EQ(logger.data.variables, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(logger.data.rows(), 4);
  EXPECT_NE(logger.notes.find("begins in line 4"), std::string::npos) << logger.notes;
  EXPECT_NE(logger.notes.find("Line 5 has units"), std::string::npos) << logger.notes;
  ReadOptions skip;
  skip.skip = 2;
  EXPECT_EQ(understood("a,b,c\n1,2,3\nt,x,y\n" + rows, skip).data.rows(), 4);
  skip.skip = 100;
  EXPECT_THROW(understood("t,x,y\n" + rows, skip), Error);
  // A header that is too short is no preamble.
  EXPECT_THROW(understood("t,x\n" + rows), Error);
}

TEST(TablesTest, ColumnsOfTextAreLeftOutAndNumbersThatAreNoneAreNot) {
  const auto u = understood("t,station,x\n0,north,1\n1,north,2\n2,south,3\n");
  EXPECT_EQ(u.data.variables, std::vector<std::string>{"x"});
  EXPECT_NE(u.notes.find("Left out, being text: column station"), std::string::npos) << u.notes;
  for (const char* cell : {"12 kg", "$1.5",
                           "\xe2\x88\x92"
                           "1.5",
                           "-"})
    EXPECT_THROW(understood(std::string("t,mass,x\n0,") + cell + ",1\n1,2,2\n"), Error) << cell;
  for (const char* cell : {"12 kg", "$1.5",
                           "\xe2\x88\x92"
                           "1.5"})
    EXPECT_THROW(understood(std::string("t,mass,x\n0,") + cell + ",1\n1," + cell + ",2\n"), Error)
        << cell;
  try {
    understood("t,station,x\n0,north,1\n1,north,2\n0,south,3\n");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("station"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace odecast
