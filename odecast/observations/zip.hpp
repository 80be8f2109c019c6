#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace odecast {

/// The files in a zip archive; stored ones are views into its bytes, deflated ones are unpacked.
struct ZipArchive {
  struct Member {
    std::string name;
    std::string_view bytes;
  };
  std::vector<Member> members;
  std::deque<std::string> unpacked;
};

/// Throws Error (data) for an archive that is damaged, encrypted or whose sizes cannot be true.
ZipArchive read_zip(std::string_view bytes, const std::string& name);

/// An archive that stores its members as they are.
std::string format_zip(const std::vector<std::pair<std::string, std::string>>& members);

}  // namespace odecast
