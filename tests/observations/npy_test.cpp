#include "odecast/observations/npy.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "odecast/core/error.hpp"
#include "odecast/core/files.hpp"
#include "odecast/observations/reading.hpp"
#include "odecast/observations/zip.hpp"

namespace odecast {
namespace {

std::string message(std::string_view bytes, const ReadOptions& options = {}) {
  try {
    parse_observations(bytes, "file", options);
    return "no error";
  } catch (const Error& e) {
    return e.what();
  }
}

/// An array as NumPy writes it, from its parts.
std::string npy(const std::string& descr, bool fortran, const std::string& shape,
                const std::string& data, int version = 1) {
  std::string header = "{'descr': " + descr + ", 'fortran_order': " + (fortran ? "True" : "False") +
                       ", 'shape': (" + shape + "), }\n";
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  const std::size_t n = header.size();
  out += static_cast<char>(n & 255);
  out += static_cast<char>(n >> 8);
  if (version > 1) out += std::string(2, '\0');
  return out + header + data;
}

template <class T>
std::string bytes_of(const std::vector<double>& values, bool big_endian = false) {
  std::string out;
  for (const double v : values) {
    const T value = static_cast<T>(v);
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    if (big_endian) std::reverse(raw, raw + sizeof(T));
    out.append(raw, sizeof(T));
  }
  return out;
}

const std::vector<double> kRows = {0, 10, 20, 1, 11, 21, 2, 12, 22};     // t, x1, x2 by rows
const std::vector<double> kColumns = {0, 1, 2, 10, 11, 12, 20, 21, 22};  // the same by columns

void expect_table(const std::string& bytes, const std::string& what) {
  const Dataset d = parse_observations(bytes, what);
  ASSERT_EQ(d.trajectories.size(), 1u) << what;
  EXPECT_EQ(d.variables, (std::vector<std::string>{"x1", "x2"})) << what;
  EXPECT_EQ(d.trajectories[0].times, (std::vector<double>{0, 1, 2})) << what;
  EXPECT_EQ(d.trajectories[0].states(2, 0), 12) << what;
  EXPECT_EQ(d.trajectories[0].states(1, 1), 21) << what;
}

template <class T>
void every_order_of(const std::string& type) {
  for (const bool big : {false, true})
    for (const bool fortran : {false, true})
      for (const int version : {1, 2, 3}) {
        const std::string descr = std::string("'") +
                                  (sizeof(T) == 1 ? "|"
                                   : big          ? ">"
                                                  : "<") +
                                  type + "'";
        expect_table(
            npy(descr, fortran, "3, 3", bytes_of<T>(fortran ? kColumns : kRows, big), version),
            descr);
      }
}

TEST(NpyTest, EveryNumberTypeAndOrderReadsAlike) {
  every_order_of<double>("f8");
  every_order_of<float>("f4");
  every_order_of<std::int8_t>("i1");
  every_order_of<std::int16_t>("i2");
  every_order_of<std::int32_t>("i4");
  every_order_of<std::int64_t>("i8");
  every_order_of<std::uint8_t>("u1");
  every_order_of<std::uint16_t>("u2");
  every_order_of<std::uint32_t>("u4");
  every_order_of<std::uint64_t>("u8");
}

TEST(NpyTest, TimesComeFromTheFirstColumnOrAStep) {
  const std::string plain = npy("'<f8'", false, "3, 3", bytes_of<double>(kRows));
  const Dataset d = parse_observations(plain, "f", {.step = 0.5});
  EXPECT_EQ(d.variables, (std::vector<std::string>{"x1", "x2", "x3"}));
  EXPECT_EQ(d.trajectories[0].times, (std::vector<double>{0, 0.5, 1}));
  const std::string vector = npy("'<f8'", false, "3,", bytes_of<double>({4, 5, 6}));
  EXPECT_EQ(parse_observations(vector, "f", {.step = 2}).trajectories[0].states(2, 0), 6);
  EXPECT_NE(message(vector).find("sample_step H"), std::string::npos);
  // Three dimensions: trajectories.
  const Dataset two = parse_observations(
      npy("'<f8'", false, "2, 2, 2", bytes_of<double>({0, 1, 1, 2, 0, 3, 1, 4})), "f");
  ASSERT_EQ(two.trajectories.size(), 2u);
  EXPECT_EQ(two.trajectories[1].states(1, 0), 4);
}

TEST(NpyTest, WhatIsWrittenReadsBackBitForBit) {
  Dataset d = parse_observations(
      "id,t,x,y,u\nä1,0,0.1,-3,7\nä1,0.1,1e-300,4,8\nb,0,3,1e300,9\nb,0.25,5,6,10\n", "f",
      {.inputs = {"u"}});
  d.certified_until = 0.125;
  const Dataset back = parse_observations(format_npz(d), "f", {.inputs = {"u"}});
  EXPECT_EQ(back.variables, d.variables);
  EXPECT_EQ(back.certified_until, d.certified_until);
  ASSERT_EQ(back.trajectories.size(), 2u);
  for (std::size_t k = 0; k < 2; ++k) {
    EXPECT_EQ(back.trajectories[k].id, d.trajectories[k].id);
    EXPECT_EQ(back.trajectories[k].times, d.trajectories[k].times);
    EXPECT_EQ(back.trajectories[k].states, d.trajectories[k].states);
    EXPECT_EQ(back.trajectories[k].inputs, d.trajectories[k].inputs);
  }
  EXPECT_THROW(format_npy(d), Error);
  d.trajectories.pop_back();
  const Dataset one = parse_observations(format_npy(d), "f");
  EXPECT_EQ(one.trajectories[0].times, d.trajectories[0].times);
  EXPECT_EQ(one.trajectories[0].states.leftCols(2), d.trajectories[0].states);
  // Through files, told apart by their contents.
  for (const std::string name :
       {"odecast_arrays.npz", "odecast_arrays.npy", "odecast_arrays.csv"}) {
    const auto path = std::filesystem::temp_directory_path() / name;
    write_observations(path, d);
    EXPECT_EQ(read_observations(path).trajectories[0].times, d.trajectories[0].times) << name;
    std::filesystem::remove(path);
  }
}

/// A zip archive with deflated members, as np.savez_compressed writes.
std::string deflated_archive(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string out, directory;
  const auto put = [](std::string& to, std::uint64_t v, int n) {
    for (int i = 0; i < n; ++i) to += static_cast<char>(v >> (8 * i) & 255);
  };
  for (const auto& [name, bytes] : members) {
    std::string packed(compressBound(bytes.size()), '\0');
    z_stream z{};
    deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    z.avail_in = static_cast<uInt>(bytes.size());
    z.next_out = reinterpret_cast<Bytef*>(packed.data());
    z.avail_out = static_cast<uInt>(packed.size());
    deflate(&z, Z_FINISH);
    packed.resize(z.total_out);
    deflateEnd(&z);
    const auto at = out.size();
    std::string common;
    for (const int v : {20, 0, 8, 0, 0}) put(common, static_cast<std::uint64_t>(v), 2);
    put(common, crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()), 4);
    put(common, packed.size(), 4);
    put(common, bytes.size(), 4);
    put(common, name.size(), 2);
    put(common, 0, 2);
    out += "PK\x03\x04" + common + name + packed;
    directory += "PK\x01\x02";
    put(directory, 20, 2);
    directory += common;
    for (int i = 0; i < 5; ++i) put(directory, 0, 2);
    put(directory, at, 4);
    directory += name;
  }
  const auto at = out.size();
  out += directory + "PK\x05\x06";
  put(out, 0, 4);
  put(out, members.size(), 2);
  put(out, members.size(), 2);
  put(out, directory.size(), 4);
  put(out, at, 4);
  put(out, 0, 2);
  return out;
}

std::vector<std::pair<std::string, std::string>> members() {
  return {{"time.npy", npy("'<i8'", false, "3,", bytes_of<std::int64_t>({0, 1, 2}))},
          {"x.npy", npy("'<f8'", false, "3,", bytes_of<double>({4, 5, 6}))},
          {"u.npy", npy("'<f4'", true, "3, 2", bytes_of<float>({1, 2, 3, 7, 8, 9}))},
          {"dt.npy", npy("'<f8'", false, "", bytes_of<double>({0.5}))}};
}

TEST(NpzTest, StoredAndDeflatedArchivesReadAlike) {
  for (const std::string& bytes : {format_zip(members()), deflated_archive(members())}) {
    const Dataset d = parse_observations(bytes, "f");
    EXPECT_EQ(d.variables, (std::vector<std::string>{"x", "u1", "u2"}));
    EXPECT_EQ(d.trajectories[0].times, (std::vector<double>{0, 1, 2}));
    EXPECT_EQ(d.trajectories[0].states(2, 0), 6);
    EXPECT_EQ(d.trajectories[0].states(1, 1), 2);
    EXPECT_EQ(d.trajectories[0].states(1, 2), 8);
  }
}

TEST(NpzTest, ArraysOfTrajectoriesShareOrBringTheirTimes) {
  const auto u = npy("'<f8'", false, "2, 2, 1", bytes_of<double>({1, 2, 3, 4}));
  const Dataset shared = parse_observations(
      format_zip({{"t.npy", npy("'<f8'", false, "2,", bytes_of<double>({0, 1}))}, {"u.npy", u}}),
      "f");
  ASSERT_EQ(shared.trajectories.size(), 2u);
  EXPECT_EQ(shared.trajectories[1].times, (std::vector<double>{0, 1}));
  EXPECT_EQ(shared.trajectories[1].states(0, 0), 3);
  const Dataset own = parse_observations(
      format_zip(
          {{"t.npy", npy("'<f8'", false, "2, 2", bytes_of<double>({0, 1, 5, 6}))}, {"u.npy", u}}),
      "f");
  EXPECT_EQ(own.trajectories[1].times, (std::vector<double>{5, 6}));
}

TEST(NpzTest, ErrorsSayWhatIsWrong) {
  const auto vector = [](const char* shape, std::vector<double> v) {
    return npy("'<f8'", false, shape, bytes_of<double>(v));
  };
  const double nan = std::nan(""), inf = HUGE_VAL;
  const std::string t = vector("3,", {0, 1, 2});
  EXPECT_EQ(message(format_zip({{"t.npy", t}, {"x.npy", vector("2,", {1, 2})}})),
            "file, array 'x': found shape (2), expected 3 rows as in 't'.\n"
            "  1. Choose the arrays to read: variables A,B,….\n"
            "  2. Save arrays of equal length.");
  EXPECT_EQ(message(format_zip({{"t.npy", t}, {"x.npy", vector("3,", {1, nan, 2})}})),
            "file, row 2, column x: found 'nan', a missing value, expected a finite number.\n"
            "  1. Correct the value.\n"
            "  2. Leave such rows out and split the trajectory there: missing=drop.");
  EXPECT_EQ(message(vector("2, 2", {0, 1, 1, inf})),
            "file, row 2, column x1: found inf, expected a finite number. Correct the value or "
            "remove the row.");
  EXPECT_EQ(message(npy("'|O'", false, "1,", "12345678")),
            "file: found numbers of type '|O', expected float32, float64, integers or booleans. "
            "Python objects are "
            "not read: save with a numeric type.");
  const std::string whole = format_zip(members());
  std::string flipped = whole;
  flipped[whole.find("PK\x01\x02") - 1] ^= 1;
  for (const auto& [bytes, part] : std::vector<std::pair<std::string, std::string>>{
           {vector("2, 2", {0, 1, 0, 2}), "row 2, column t: found time 0 after 0 in row 1"},
           {npy("[('t', '<f8')]", false, "1,", "12345678"), "an array of records"},
           {npy("'<c16'", false, "1,", std::string(16, '\0')), "'<c16'"},
           {npy("'<f8'", false, "2, 2", std::string(31, '\0')),
            "31 bytes of numbers, expected shape (2, 2)"},
           {npy("'<f8'", false, "4611686018427387904, 4", ""), "0 bytes of numbers"},
           {npy("'<f8'", false, "1, 2", std::string(16, '\xff')), "row 1, column t: found 'nan'"},
           {npy("'<f8'", false, "1, 1, 1, 1", std::string(8, '\0')), "4 dimensions"},
           {npy("'<f8'", false, "0, 3", ""), "shape (0, 3), expected at least one row"},
           {npy("'<f8'", false, "1152921504606846976, 3, 0", ""), "at least one row"},
           {npy("'|S0'", false, "1152921504606846976,", ""), "'|S0'"},
           {npy("'<f8'", false, "1, 2", std::string(16, '\0')).substr(0, 40), "ends in its header"},
           {format_zip({{"x.npy", t}}), "no array of times"},
           {format_zip({{"sheet.xml", "x"}}), "no arrays"},
           {flipped, "wrong checksum"},
           {whole.substr(0, whole.size() - 3), "no directory"},
           {"PK\x03\x04", "ends too early"}})
    EXPECT_NE(message(bytes).find(part), std::string::npos) << part << " -> " << message(bytes);
  // A size that the file cannot have is refused before memory is taken for it.
  std::string lying = deflated_archive({{"t.npy", t}});
  const auto directory = lying.find("PK\x01\x02");
  lying.replace(directory + 24, 4, "\xff\xff\xff\x7f");
  EXPECT_NE(message(lying).find("impossible size"), std::string::npos) << message(lying);
  // So is one that it can have and no measurement has.
  const std::string zeros = npy("'<f8'", false, "9437184,", std::string(72 << 20, '\0'));
  EXPECT_NE(message(deflated_archive({{"t.npy", t}, {"x.npy", zeros}}))
                .find("unpack to more than 64 MiB"),
            std::string::npos);
}

TEST(NpzTest, NoDamageGoesUnnoticed) {
  const std::string whole = deflated_archive(members());
  const Dataset truth = parse_observations(whole, "f");
  int refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const int bit : {0, 3, 7}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ 1 << bit);
      try {
        // Names and dates are not under the checksum; the numbers are.
        const Dataset d = parse_observations(changed, "f");
        EXPECT_EQ(d.rows(), truth.rows()) << at;
        for (int j = 0; j < d.dimension(); ++j)
          for (int k = 0; k < truth.dimension(); ++k)
            if (d.variables[static_cast<std::size_t>(j)] ==
                truth.variables[static_cast<std::size_t>(k)]) {
              EXPECT_EQ(d.trajectories[0].states.col(j), truth.trajectories[0].states.col(k)) << at;
            }
      } catch (const Error&) {
        ++refused;
      }
    }
  EXPECT_GT(refused, 500);
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_THROW(parse_observations(whole.substr(0, size), "f"), Error) << size;
}

}  // namespace
}  // namespace odecast
