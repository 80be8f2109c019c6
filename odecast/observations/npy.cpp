#include "odecast/observations/npy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>

#include "odecast/core/error.hpp"
#include "odecast/core/numbers.hpp"
#include "odecast/core/text.hpp"
#include "odecast/observations/formats.hpp"
#include "odecast/observations/rows.hpp"
#include "odecast/observations/zip.hpp"

namespace odecast {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kLongestHeader = 10'000;  // NumPy's own limit

using Load = double (*)(const char*);

template <class T, bool swapped>
double load(const char* at) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, at, sizeof(T));
  if constexpr (swapped) std::reverse(bytes, bytes + sizeof(T));
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return static_cast<double>(value);
}

template <class T>
Load loader(bool swapped) {
  return swapped ? load<T, true> : load<T, false>;
}

/// An array in the bytes of a file.
struct Array {
  char kind = 'f';  // f, i, u, b numbers; U, S text
  std::size_t item = 8;
  bool swapped = false;
  std::vector<std::size_t> shape, strides;  // strides in bytes
  std::string_view data;

  /// Null for text.
  Load number() const {
    if (kind == 'f') return item == 8 ? loader<double>(swapped) : loader<float>(swapped);
    if (kind == 'b') return loader<std::uint8_t>(false);
    if (kind == 'i')
      return item == 8   ? loader<std::int64_t>(swapped)
             : item == 4 ? loader<std::int32_t>(swapped)
             : item == 2 ? loader<std::int16_t>(swapped)
                         : loader<std::int8_t>(false);
    if (kind == 'u')
      return item == 8   ? loader<std::uint64_t>(swapped)
             : item == 4 ? loader<std::uint32_t>(swapped)
             : item == 2 ? loader<std::uint16_t>(swapped)
                         : loader<std::uint8_t>(false);
    return nullptr;
  }
};

/// The Python dictionary at the head of an array.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  struct Header {
    std::string descr;
    std::optional<bool> fortran;
    std::optional<std::vector<std::size_t>> shape;
  };

  Header parse() {
    Header h;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        if (peek() == '[')
          throw_data({where_, "an array of records", "an array of numbers",
                      "Save its columns as arrays: np.savez(file, t=a['t'], x=a['x'])."});
        h.descr = string();
      } else if (key == "fortran_order") {
        h.fortran = boolean();
      } else if (key == "shape") {
        h.shape = tuple();
      } else {
        fail();
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (h.descr.empty() || !h.fortran || !h.shape) fail();
    return h;
  }

 private:
  char peek() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n'))
      text_.remove_prefix(1);
    return text_.empty() ? '\0' : text_.front();
  }
  bool accept(char c) {
    if (peek() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail();
  }
  std::string string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail();
    const auto end = text_.find(quote, 1);
    if (end == text_.npos) fail();
    const std::string value(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return value;
  }
  bool boolean() {
    peek();
    const bool yes = text_.starts_with("True");
    if (!yes && !text_.starts_with("False")) fail();
    text_.remove_prefix(yes ? 4 : 5);
    return yes;
  }
  std::vector<std::size_t> tuple() {
    std::vector<std::size_t> values;
    expect('(');
    while (!accept(')')) {
      peek();
      std::uint64_t value = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
      if (error != std::errc{}) fail();
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      accept('L');  // as Python 2 wrote it
      values.push_back(value);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return values;
  }
  [[noreturn]] void fail() const {
    throw_data({where_, "a broken array header at " + shown(text_), "a .npy header",
                "Save the array again."});
  }

  std::string_view text_;
  const std::string& where_;
};

Array read_array(std::string_view bytes, const std::string& where) {
  const auto truncated = [&](const std::string& found) {
    throw_data({where, found, "a whole .npy array", "Write or transfer the file again."});
  };
  if (!bytes.starts_with(kMagic)) truncated("bytes that are no .npy array");
  if (bytes.size() < 12) truncated("an array that ends in its header");
  const auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(bytes[i]));
  };
  const std::size_t version = byte(6), begin = version == 1 ? 10 : 12;
  if (version < 1 || version > 3) truncated(fmt::format(".npy version {}", version));
  const std::size_t length = version == 1
                                 ? byte(8) | byte(9) << 8
                                 : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  if (length > kLongestHeader) truncated(fmt::format("a header of {} bytes", length));
  if (length > bytes.size() - begin) truncated("an array that ends in its header");
  const auto header = HeaderParser(bytes.substr(begin, length), where).parse();

  Array a;
  const std::string& d = header.descr;
  const auto unknown = [&] {
    throw_data({where, "numbers of type " + shown(d), "float32, float64, integers or booleans",
                d.find('O') != d.npos ? "Python objects are not read: save with a numeric type."
                                      : "Save them as float64: a.astype('float64')."});
  };
  const bool ordered = !d.empty() && std::string_view("<>|=").find(d[0]) != std::string_view::npos;
  if (!ordered || d.size() < 3) unknown();
  a.swapped = d[0] == '>';
  a.kind = d[1];
  const auto [end, error] = std::from_chars(d.data() + 2, d.data() + d.size(), a.item);
  if (error != std::errc{} || end != d.data() + d.size()) unknown();
  const bool text = a.kind == 'U' || a.kind == 'S';
  const bool whole = (a.kind == 'i' || a.kind == 'u') &&
                     (a.item == 1 || a.item == 2 || a.item == 4 || a.item == 8);
  const bool real = a.kind == 'f' && (a.item == 4 || a.item == 8);
  if (!(whole || real || (a.kind == 'b' && a.item == 1) || (text && a.item >= 1 && a.item <= 4096)))
    unknown();
  if (a.kind == 'U') a.item *= 4;

  a.shape = *header.shape;
  if (a.shape.size() > 3)
    throw_data({where, fmt::format("{} dimensions", a.shape.size()),
                "at most trajectories × rows × columns", "Save the array in that shape."});
  // Without numbers the other dimensions could be anything, and nothing would bound the work.
  if (std::count(a.shape.begin(), a.shape.end(), 0u) > 0)
    throw_data({where, fmt::format("shape ({})", fmt::join(a.shape, ", ")),
                "at least one row and one column",
                "Check that the array was filled before it was saved."});
  a.data = bytes.substr(begin + length);
  // The size is proved before it is believed: each factor divides what is left.
  std::size_t size = a.item;
  bool fits = true;
  for (const std::size_t n : a.shape) {
    fits = fits && size <= a.data.size() / n;
    size = fits ? size * n : 0;
  }
  if (!fits || size != a.data.size())
    throw_data({where, fmt::format("{} bytes of numbers", a.data.size()),
                fmt::format("shape ({}) of {} bytes each", fmt::join(a.shape, ", "), a.item),
                "Write or transfer the file again."});
  a.strides.resize(a.shape.size());
  std::size_t stride = a.item;
  for (std::size_t i = 0; i < a.shape.size(); ++i) {
    const std::size_t k = *header.fortran ? i : a.shape.size() - 1 - i;
    a.strides[k] = stride;
    stride *= a.shape[k];
  }
  return a;
}

/// One column of the table; `base` null for times that a step makes.
struct Column {
  std::string name;
  const char* base = nullptr;
  std::size_t row_stride = 0, trajectory_stride = 0;
  Load number = nullptr;  // null for text
  Array text = {};
};

struct Columns {
  std::vector<Column> columns;
  std::size_t trajectories = 1, rows = 0;
};

Column column_of(const Array& a, std::string name, std::size_t column) {
  // Dimensions from the last: columns, rows, trajectories; an array of one dimension has rows only.
  const std::size_t dimensions = a.shape.size();
  Column c{std::move(name), a.data.data(), 0, 0, a.number(), a};
  if (dimensions == 1) {
    c.row_stride = a.strides[0];
  } else {
    c.row_stride = a.strides[dimensions - 2];
    c.base += column * a.strides[dimensions - 1];
    if (dimensions == 3) c.trajectory_stride = a.strides[0];
  }
  return c;
}

/// All columns of an array of rows, named name1, name2, …
void add_columns(Columns& all, const Array& a, const std::string& name, std::size_t first = 0) {
  const std::size_t count = a.shape.size() == 1 ? 1 : a.shape.back();
  for (std::size_t c = first; c < count; ++c)
    all.columns.push_back(
        column_of(a, a.shape.size() == 1 ? name : fmt::format("{}{}", name, c + 1 - first), c));
}

std::size_t rows_of(const Array& a) { return a.shape.size() == 3 ? a.shape[1] : a.shape[0]; }

/// Widths are bounded so that a wrongly transposed array is an error and not a table of names.
void check_width(const Array& a, const std::string& where) {
  if (a.shape.size() >= 2 && a.shape.back() > 10'000)
    throw_data({where, fmt::format("shape ({})", fmt::join(a.shape, ", ")),
                "rows × at most 10000 columns", "Save the array the other way round: a.T."});
}

Columns npy_columns(std::string_view bytes, const std::string& name, const ReadOptions& o) {
  const Array a = read_array(bytes, name);
  check_width(a, name);
  if (!a.number()) throw_data({name, "text", "numbers", "Save the array with a numeric type."});
  if (a.shape.empty() || (o.step == 0 && (a.shape.size() == 1 || a.shape.back() < 2)))
    throw_data(
        {name,
         fmt::format("shape ({})", fmt::join(a.shape, ", ")),
         "rows × columns, the first column being the time",
         "Give the spacing of the rows: `sample_step` H.",
         "",
         {"Save the times as the first column, or in an archive: np.savez(file, t=t, x=x)."}});
  Columns all;
  all.rows = rows_of(a);
  if (a.shape.size() == 3) all.trajectories = a.shape[0];
  if (o.step == 0)
    all.columns.push_back(column_of(a, "t", 0));
  else
    all.columns.push_back({"t"});
  if (a.shape.size() == 1)
    all.columns.push_back(column_of(a, "x1", 0));
  else
    add_columns(all, a, "x", o.step == 0 ? 1 : 0);
  return all;
}

Columns npz_columns(const ZipArchive& archive, const std::string& name, const ReadOptions& o,
                    std::optional<double>& certified) {
  struct Named {
    std::string name;
    Array array;
  };
  std::vector<Named> arrays;
  for (const auto& member : archive.members) {
    if (!member.name.ends_with(".npy")) continue;
    const std::string key = member.name.substr(0, member.name.size() - 4);
    const std::string where = name + ", array " + shown(key);
    Array a = read_array(member.bytes, where);
    if (key == "certified_until" && a.shape.empty() && a.number()) {
      certified = a.number()(a.data.data());
      if (!std::isfinite(*certified))
        throw_data({where, format_number(*certified), "a time", "Remove the array."});
      continue;
    }
    if (a.shape.empty()) continue;
    check_width(a, where);
    arrays.push_back({key, std::move(a)});
  }
  if (arrays.empty())
    throw_data({name,
                "no arrays",
                "an .npz archive with t and the variables",
                "Save it by np.savez(file, t=t, x=x).",
                "",
                {"From a spreadsheet, export CSV UTF-8."}});
  const auto is_time = [&](const Named& n) {
    return o.time.empty() ? lower_case(n.name) == "t" || lower_case(n.name) == "time"
                          : n.name == o.time;
  };
  auto time = std::find_if(arrays.begin(), arrays.end(), [&](const Named& n) {
    return o.time.empty() && n.name == o.likely_time;
  });
  if (time == arrays.end()) time = std::find_if(arrays.begin(), arrays.end(), is_time);
  if (time == arrays.end() && o.step == 0)
    throw_data({name,
                "no array of times",
                "an array t or time",
                "Name it: `time` NAME.",
                "",
                {"Give the spacing of the rows: `sample_step` H."}});
  if (time != arrays.end() && o.step > 0)
    throw_usage({"option `sample_step`", "it beside the times of " + name, "one of them",
                 "Remove the option."});
  Columns all;
  for (const auto& n : arrays)
    if (n.array.shape.size() == 3) all.trajectories = n.array.shape[0];
  const Named& leader = time != arrays.end() ? *time : arrays.front();
  const auto& lead = leader.array.shape;
  // Times are rows, rows × 1, or, beside arrays of trajectories, trajectories × rows.
  const bool each = all.trajectories > 1 && lead.size() == 2 && lead[0] == all.trajectories;
  all.rows = each ? lead[1] : rows_of(leader.array);
  if (time == arrays.end()) all.columns.push_back({"t"});
  for (const auto& n : arrays) {
    const auto& shape = n.array.shape;
    if (&n == &leader && time != arrays.end()) {
      if (!n.array.number() || (shape.size() == 2 && !each && shape[1] != 1) || shape.size() > 2)
        throw_data({name + ", array " + shown(n.name),
                    fmt::format("shape ({})", fmt::join(shape, ", ")), "one time per row",
                    "Save the times as a vector of numbers."});
      Column c = column_of(n.array, n.name, 0);
      if (each) {
        c.row_stride = n.array.strides[1];
        c.trajectory_stride = n.array.strides[0];
      }
      all.columns.push_back(c);
      continue;
    }
    const bool alike =
        rows_of(n.array) == all.rows && (shape.size() != 3 || shape[0] == all.trajectories);
    if (!alike) {
      if (!o.variables.empty()) continue;  // not among those asked for, or found missing below
      throw_data({name + ", array " + shown(n.name),
                  fmt::format("shape ({})", fmt::join(shape, ", ")),
                  fmt::format("{} rows as in {}", all.rows, shown(leader.name)),
                  "Choose the arrays to read: `variables` A,B,….",
                  "",
                  {"Save arrays of equal length."}});
    }
    add_columns(all, n.array, n.name);
  }
  return all;
}

/// A name out of a text array: UTF-32 or bytes, filled up with zeros.
std::string text_at(const Array& a, const char* at) {
  std::string text;
  if (a.kind == 'S') {
    text.assign(at, a.item);
  } else {
    for (std::size_t i = 0; i < a.item; i += 4) {
      std::uint32_t c = 0;
      for (std::size_t b = 0; b < 4; ++b)
        c |= static_cast<std::uint32_t>(static_cast<unsigned char>(at[i + (a.swapped ? 3 - b : b)]))
             << (8 * b);
      if (c < 0x80) {
        text += static_cast<char>(c);
      } else if (c < 0x800) {
        text += static_cast<char>(0xc0 | c >> 6);
        text += static_cast<char>(0x80 | (c & 0x3f));
      } else if (c < 0x10000) {
        text += static_cast<char>(0xe0 | c >> 12);
        text += static_cast<char>(0x80 | (c >> 6 & 0x3f));
        text += static_cast<char>(0x80 | (c & 0x3f));
      } else {
        text += static_cast<char>(0xf0 | (c >> 18 & 7));
        text += static_cast<char>(0x80 | (c >> 12 & 0x3f));
        text += static_cast<char>(0x80 | (c >> 6 & 0x3f));
        text += static_cast<char>(0x80 | (c & 0x3f));
      }
    }
  }
  while (text.ends_with('\0')) text.pop_back();
  return text;
}

}  // namespace

TableInfo stream_arrays(std::string_view bytes, const std::string& name, const ReadOptions& options,
                        const RowVisitor& visit) {
  TableInfo table;
  table.source = name;
  const bool single = bytes.starts_with(kMagic);
  ZipArchive archive;
  Columns all;
  if (single) {
    all = npy_columns(bytes, name, options);
  } else {
    archive = read_zip(bytes, name);
    all = npz_columns(archive, name, options, table.certified_until);
  }
  Rows rows(table, options, visit, "row");
  std::vector<std::string> names;
  for (const Column& c : all.columns) names.push_back(c.name);
  rows.name_columns(std::move(names), {});
  const auto& places = rows.places();
  for (std::size_t c = 0; c < all.columns.size(); ++c)
    if (places[c] && !all.columns[c].number && all.columns[c].base)
      throw_data({name + ", array " + shown(all.columns[c].name),
                  "text",
                  "numbers",
                  "Choose the arrays to read: `variables` A,B,….",
                  "",
                  {"Name the one of the ids: `id` NAME."}});

  std::string id;
  for (std::size_t k = 0; k < all.trajectories; ++k) {
    rows.new_block();
    for (std::size_t i = 0; i < all.rows && !rows.stopped(); ++i) {
      const Place place{static_cast<long>(k * all.rows + i + 1)};
      std::optional<std::size_t> missing;
      for (std::size_t c = 0; c < places.size(); ++c) {
        const Column& column = all.columns[c];
        const char* at = column.base + k * column.trajectory_stride + i * column.row_stride;
        if (places[c]) {
          const double value =
              column.base ? column.number(at) : static_cast<double>(i) * options.step;
          *places[c] = value;
          if (std::isfinite(value)) continue;
          if (!std::isnan(value))
            throw_data({rows.where(place, c), format_number(value), "a finite number",
                        "Correct the value or remove the row."});
          if (!missing || places[c] == rows.time_place()) missing = c;
        } else if (c == rows.id_column()) {
          id = column.number ? format_number(column.number(at)) : text_at(column.text, at);
        }
      }
      if (missing)
        rows.missing(*missing, "nan", id, place);
      else
        rows.row(id, place);
    }
  }
  if (rows.count() == 0)
    throw_data({name, fmt::format("{} rows, each with a missing cell", table.dropped),
                "rows of numbers", "Check that the file was written completely."});
  rows.finish();
  return table;
}

namespace {

std::string npy_bytes(const std::string& descr, const std::string& shape, std::string_view data) {
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  const std::size_t unpadded = 10 + header.size() + 1;
  header += std::string((64 - unpadded % 64) % 64, ' ') + '\n';
  std::string out(kMagic);
  out += '\x01';
  out += '\0';
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  return out.append(header).append(data);
}

std::string_view raw(const std::vector<double>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double)};
}

std::string vector_bytes(const std::vector<double>& values) {
  return npy_bytes("<f8", fmt::format("{},", values.size()), raw(values));
}

/// Code points of UTF-8 that is known to be well formed.
std::vector<std::uint32_t> code_points(const std::string& text) {
  std::vector<std::uint32_t> points;
  for (const char ch : text) {
    const auto byte = static_cast<unsigned char>(ch);
    if (byte >> 6 == 2 && !points.empty())
      points.back() = points.back() << 6 | (byte & 0x3fu);
    else
      points.push_back(byte < 0x80   ? byte
                       : byte < 0xe0 ? byte & 0x1fu
                       : byte < 0xf0 ? byte & 0xfu
                                     : byte & 7u);
  }
  return points;
}

}  // namespace

std::string format_npy(const Dataset& data) {
  if (data.trajectories.size() != 1)
    throw_usage({"output", fmt::format("{} trajectories for a .npy file", data.trajectories.size()),
                 "one", "Write a .npz or a .csv file instead."});
  const Trajectory& t = data.trajectories[0];
  std::vector<double> values;
  for (int i = 0; i < t.rows(); ++i) {
    values.push_back(t.times[static_cast<std::size_t>(i)]);
    for (const Matrix* part : {&t.states, &t.inputs})
      for (Eigen::Index j = 0; j < part->cols(); ++j) values.push_back((*part)(i, j));
  }
  const std::size_t columns = 1 + data.variables.size() + data.inputs.size();
  return npy_bytes("<f8", fmt::format("{}, {}", t.rows(), columns), raw(values));
}

std::string format_npz(const Dataset& data) {
  std::vector<std::pair<std::string, std::string>> members;
  const bool several = data.trajectories.size() > 1;
  if (several) {
    std::size_t longest = 1;
    for (const Trajectory& t : data.trajectories)
      longest = std::max(longest, code_points(t.id).size());
    std::string ids;
    for (const Trajectory& t : data.trajectories) {
      std::vector<std::uint32_t> points = code_points(t.id);
      points.resize(longest);
      for (int i = 0; i < t.rows(); ++i)
        ids.append(reinterpret_cast<const char*>(points.data()), points.size() * 4);
    }
    members.emplace_back(id_column(data) + ".npy", npy_bytes(fmt::format("<U{}", longest),
                                                             fmt::format("{},", data.rows()), ids));
  }
  std::vector<double> values;
  const auto add = [&](const std::string& name) {
    members.emplace_back(name + ".npy", vector_bytes(values));
    values.clear();
  };
  for (const Trajectory& t : data.trajectories)
    values.insert(values.end(), t.times.begin(), t.times.end());
  add(time_column(data));
  for (const bool inputs : {false, true}) {
    const auto& names = inputs ? data.inputs : data.variables;
    for (std::size_t j = 0; j < names.size(); ++j) {
      for (const Trajectory& t : data.trajectories)
        for (int i = 0; i < t.rows(); ++i)
          values.push_back((inputs ? t.inputs : t.states)(i, static_cast<Eigen::Index>(j)));
      add(names[j]);
    }
  }
  if (data.certified_until)
    members.emplace_back("certified_until.npy", npy_bytes("<f8", "", raw({*data.certified_until})));
  return format_zip(members);
}

namespace {

TableInfo stream_whole(const ByteSource& from, const std::string& name, const ReadOptions& options,
                       const RowVisitor& visit) {
  if (!from.file) return stream_arrays(from.memory, name, options, visit);
  const WholeFile whole(from.path, *from.file);
  return stream_arrays(whole.bytes(), name, options, visit);
}

}  // namespace

const Format kNpy = {.name = "npy",
                     .extension = ".npy",
                     .matches = [](std::string_view head) { return head.starts_with(kMagic); },
                     .stream = stream_whole,
                     .write = format_npy};

const Format kNpz = {.name = "npz",
                     .extension = ".npz",
                     .matches =
                         [](std::string_view head) {
                           return head.starts_with("PK\x03\x04") || head.starts_with("PK\x05\x06");
                         },
                     .stream = stream_whole,
                     .write = format_npz};

}  // namespace odecast
