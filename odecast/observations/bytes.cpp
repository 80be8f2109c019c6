#include "odecast/observations/bytes.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "odecast/core/error.hpp"

namespace odecast {

struct ByteReader::Inflater {
  z_stream stream{};
  std::vector<char> input = std::vector<char>(1 << 16);
  bool ended = false;  // after the last byte of a member

  Inflater() {
    if (inflateInit2(&stream, 15 + 16) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream); }
};

ByteReader::ByteReader(const std::filesystem::path& path) : path_(path), file_(path) {
  raw_.resize(2);
  raw_.resize(read_raw(raw_.data(), 2));
  if (raw_ == "\x1f\x8b") inflater_ = std::make_unique<Inflater>();
  head_.resize(8);
  std::size_t got = 0;
  while (got < 8) {
    const std::size_t more = read_some(head_.data() + got, 8 - got);
    if (more == 0) break;
    got += more;
  }
  head_.resize(got);
}

ByteReader::~ByteReader() = default;

std::size_t ByteReader::read_raw(char* to, std::size_t size) {
  std::size_t got = 0;
  while (got < size) {
    const std::size_t more = file_.read(to + got, size - got);
    if (more == 0) break;
    got += more;
  }
  return got;
}

std::size_t ByteReader::read_some(char* to, std::size_t size) {
  if (!inflater_) {
    const std::size_t early = std::min(size, raw_.size());
    std::memcpy(to, raw_.data(), early);
    raw_.erase(0, early);
    return early > 0 ? early : file_.read(to, size);
  }
  const auto broken = [&](const char* found) {
    throw_data(
        {path_.string(), found, "a whole gzip file", "Compress or transfer the file again."});
  };
  z_stream& z = inflater_->stream;
  z.next_out = reinterpret_cast<Bytef*>(to);
  z.avail_out = static_cast<uInt>(std::min<std::size_t>(size, 1u << 30));
  const uInt asked = z.avail_out;
  while (z.avail_out == asked) {
    if (z.avail_in == 0) {
      auto& input = inflater_->input;
      std::size_t got = std::min(raw_.size(), input.size());
      std::memcpy(input.data(), raw_.data(), got);
      raw_.erase(0, got);
      got += file_.read(input.data() + got, input.size() - got);
      if (got == 0) {
        if (!inflater_->ended) broken("a gzip file that ends too early");
        return 0;
      }
      z.next_in = reinterpret_cast<Bytef*>(input.data());
      z.avail_in = static_cast<uInt>(got);
      packed_ += got;
    }
    if (inflater_->ended) {  // files may be written one after the other
      inflateReset(&z);
      inflater_->ended = false;
    }
    const int status = inflate(&z, Z_NO_FLUSH);
    if (status == Z_STREAM_END)
      inflater_->ended = true;
    else if (status == Z_MEM_ERROR)
      throw std::bad_alloc();
    else if (status != Z_OK && status != Z_BUF_ERROR)
      broken("damaged gzip data");
  }
  return asked - z.avail_out;
}

std::size_t ByteReader::read(char* to, std::size_t size) {
  std::size_t got = std::min(size, head_.size() - head_used_);
  std::memcpy(to, head_.data() + head_used_, got);
  head_used_ += got;
  while (got < size) {
    const std::size_t more = read_some(to + got, size - got);
    if (more == 0) break;
    got += more;
  }
  return got;
}

WholeFile::WholeFile(const std::filesystem::path& path, ByteReader& reader) {
  const bool plain = path != "-" && !reader.inflates();
  if (const int file = plain ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC) : -1; file >= 0) {
    struct stat status;
    if (::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
      const auto size = static_cast<std::size_t>(status.st_size);
      void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
      if (at != MAP_FAILED) {
        mapped_ = at;
        bytes_ = {static_cast<const char*>(at), size};
      }
    }
    ::close(file);
  }
  if (mapped_) return;
  constexpr std::size_t chunk = 1 << 20;
  for (;;) {
    const std::size_t used = held_.size();
    held_.resize(used + chunk);
    const std::size_t got = reader.read(held_.data() + used, chunk);
    held_.resize(used + got);
    if (got < chunk) break;
    if (reader.inflates() && held_.size() > most_unpacked(reader.packed()))
      throw_data(
          {path.string(),
           "an array that unpacks to more than " + std::to_string(held_.size() >> 20) + " MiB",
           "no more than 100 times the file, or 64 MiB", "Unpack it first: gunzip."});
  }
  bytes_ = held_;
}

WholeFile::~WholeFile() {
  if (mapped_) ::munmap(mapped_, bytes_.size());
}

}  // namespace odecast
