#include "odecast/observations/zip.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "odecast/core/error.hpp"
#include "odecast/core/text.hpp"
#include "odecast/observations/bytes.hpp"
#include "odecast/observations/rows.hpp"

namespace odecast {
namespace {

/// Little-endian numbers at a place in the bytes; an Error where there are too few bytes.
class Reader {
 public:
  Reader(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  std::string_view part(std::uint64_t at, std::uint64_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) damaged("an archive that ends too early");
    return bytes_.substr(at, size);
  }
  std::uint64_t number(std::uint64_t at, int size) const {
    const std::string_view b = part(at, static_cast<std::uint64_t>(size));
    std::uint64_t value = 0;
    for (int i = size; i-- > 0;)
      value = value << 8 | static_cast<unsigned char>(b[static_cast<std::size_t>(i)]);
    return value;
  }
  bool is(std::uint64_t at, std::string_view signature) const {
    return at <= bytes_.size() && bytes_.substr(at).starts_with(signature);
  }
  std::size_t size() const { return bytes_.size(); }

  [[noreturn]] void damaged(const std::string& found) const {
    throw_data({name_, found, "a whole .npz archive", "Write or transfer the file again."});
  }

 private:
  std::string_view bytes_;
  const std::string& name_;
};

struct Directory {
  std::uint64_t entries, at;
};

Directory find_directory(const Reader& r) {
  constexpr std::uint64_t tail = 22;
  if (r.size() < tail) r.damaged("an archive that ends too early");
  const std::uint64_t lowest = r.size() - std::min<std::uint64_t>(r.size(), tail + 0xffff);
  for (std::uint64_t at = r.size() - tail + 1; at-- > lowest;) {
    if (!r.is(at, "PK\x05\x06") || at + tail + r.number(at + 20, 2) != r.size()) continue;
    Directory d{r.number(at + 10, 2), r.number(at + 16, 4)};
    if ((d.entries == 0xffff || d.at == 0xffffffff) && at >= 20 && r.is(at - 20, "PK\x06\x07")) {
      const std::uint64_t wide = r.number(at - 12, 8);
      if (!r.is(wide, "PK\x06\x06")) r.damaged("no directory");
      d = {r.number(wide + 32, 8), r.number(wide + 48, 8)};
    }
    return d;
  }
  r.damaged("no directory at its end");
}

std::string inflated(const Reader& r, std::string_view packed, std::uint64_t size,
                     const std::string& member) {
  std::string out(size, '\0');
  z_stream z{};
  if (inflateInit2(&z, -15) != Z_OK) throw std::bad_alloc();
  int status = Z_OK;
  std::uint64_t in = 0, done = 0;
  while (status == Z_OK) {
    constexpr std::uint64_t most = 1u << 30;
    const auto give = static_cast<uInt>(std::min<std::uint64_t>(packed.size() - in, most));
    const auto room = static_cast<uInt>(std::min<std::uint64_t>(size - done, most));
    char none;
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + in));
    z.avail_in = give;
    z.next_out = reinterpret_cast<Bytef*>(room > 0 ? out.data() + done : &none);
    z.avail_out = room;
    status = inflate(&z, Z_NO_FLUSH);
    in += give - z.avail_in;
    done += room - z.avail_out;
    if (status == Z_OK && z.avail_in == give && z.avail_out == room) break;
  }
  inflateEnd(&z);
  if (status != Z_STREAM_END || done != size || in != packed.size())
    r.damaged("damaged data of " + member);
  return out;
}

}  // namespace

ZipArchive read_zip(std::string_view bytes, const std::string& name) {
  const Reader r(bytes, name);
  const Directory directory = find_directory(r);
  ZipArchive archive;
  std::uint64_t at = directory.at, packed_total = 0, unpacked_total = 0;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    if (!r.is(at, "PK\x01\x02")) r.damaged("a broken directory");
    const std::uint64_t flags = r.number(at + 8, 2), method = r.number(at + 10, 2),
                        crc = r.number(at + 16, 4);
    const std::uint64_t name_size = r.number(at + 28, 2), extra = r.number(at + 30, 2);
    std::uint64_t fields[] = {r.number(at + 24, 4), r.number(at + 20, 4), r.number(at + 42, 4)};
    const std::string member(r.part(at + 46, name_size));
    // Sizes that do not fit stand in the extra field 1, in this order.
    for (std::uint64_t e = at + 46 + name_size, end = e + extra; e + 4 <= end;) {
      const std::uint64_t id = r.number(e, 2), length = r.number(e + 2, 2);
      std::uint64_t value = e + 4;
      if (id == 1)
        for (std::uint64_t& field : fields)
          if (field == 0xffffffff && value + 8 <= e + 4 + length) {
            field = r.number(value, 8);
            value += 8;
          }
      e += 4 + length;
    }
    const auto [size, packed_size, local] = std::tie(fields[0], fields[1], fields[2]);
    const std::string shown_name = shown(member);
    if (flags & 1) r.damaged(shown_name + " encrypted");
    if (!r.is(local, "PK\x03\x04")) r.damaged("no data of " + shown_name);
    const std::uint64_t begin = local + 30 + r.number(local + 26, 2) + r.number(local + 28, 2);
    const std::string_view packed = r.part(begin, packed_size);
    // Members that share bytes are how small files unpack to huge ones; long runs of one value are
    // the other way.
    packed_total += packed_size;
    if (packed_total > bytes.size()) r.damaged("members that overlap");
    // No deflate stream grows by more than 1032.
    if (method == 8 && size / 1032 > packed_size + 1)
      r.damaged("an impossible size of " + shown_name);
    if (method == 8 && (unpacked_total += size) > most_unpacked(bytes.size()))
      throw_data(
          {name,
           fmt::format("arrays that unpack to more than {} MiB", most_unpacked(bytes.size()) >> 20),
           "no more than 100 times the file, or 64 MiB",
           "Save them by np.savez, which does not compress."});
    if (method == 0 && size == packed_size)
      archive.members.push_back({member, packed});
    else if (method == 8)
      archive.members.push_back(
          {member, archive.unpacked.emplace_back(inflated(r, packed, size, shown_name))});
    else
      r.damaged(fmt::format("{} packed by method {}", shown_name, method));
    const std::string_view whole = archive.members.back().bytes;
    if (crc32_z(0, reinterpret_cast<const Bytef*>(whole.data()), whole.size()) != crc)
      r.damaged("a wrong checksum of " + shown_name);
    at += 46 + name_size + extra + r.number(at + 32, 2);
  }
  return archive;
}

std::string format_zip(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string out, directory;
  const auto put = [](std::string& to, std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) to += static_cast<char>(value >> (8 * i) & 0xff);
  };
  for (const auto& [name, bytes] : members) {
    if (name.size() > std::numeric_limits<std::uint16_t>::max())
      throw_usage({"output", "a name of more than 65535 bytes",
                   "what an archive of this kind holds", "Write a .csv file instead."});
    if (out.size() + bytes.size() > std::numeric_limits<std::uint32_t>::max())
      throw_usage({"output", "more than 4 GiB", "what an archive of this kind holds",
                   "Write a .npy or a .csv file instead."});
    const std::uint64_t at = out.size();
    std::string common;
    put(common, 20, 2);          // version needed
    put(common, 0x0800, 2);      // names are UTF-8
    put(common, 0, 2);           // stored
    put(common, 0x00210000, 4);  // 1980-01-01: same data, same bytes
    put(common, crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()), 4);
    put(common, bytes.size(), 4);
    put(common, bytes.size(), 4);
    put(common, name.size(), 2);
    put(common, 0, 2);
    out += "PK\x03\x04" + common + name + bytes;
    directory += "PK\x01\x02";
    put(directory, 20, 2);
    directory += common;
    put(directory, 0, 2);  // comment
    put(directory, 0, 2);  // disk
    put(directory, 0, 2);
    put(directory, 0, 4);
    put(directory, at, 4);
    directory += name;
  }
  const std::uint64_t at = out.size();
  out += directory + "PK\x05\x06";
  put(out, 0, 4);
  put(out, members.size(), 2);
  put(out, members.size(), 2);
  put(out, directory.size(), 4);
  put(out, at, 4);
  put(out, 0, 2);
  return out;
}

}  // namespace odecast
