#pragma once

#include <string>
#include <string_view>

namespace odecast {

/// The text as content or attribute of XML and HTML. Names come from users' files and may hold
/// anything; what XML forbids becomes U+FFFD, line ends become spaces.
std::string escaped(std::string_view text);

}  // namespace odecast
