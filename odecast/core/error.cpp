#include "odecast/core/error.hpp"

#include "odecast/core/text.hpp"

namespace odecast {

namespace {

/// One line, or with a text to show or a choice of remedies: that line and indented ones below it.
/// What it is made of may come from anywhere, such as a header of half a million names, or a
/// path of 5000 characters.
std::string message(const Complaint& c) {
  const auto part = [](const std::string& text) { return printable(text, 500); };
  std::string text = printable(c.where, 1000) + ": found " + part(c.found) + ", expected " +
                     part(c.expected) + ".";
  if (c.line.empty() && c.others.empty()) return text + " " + part(c.remedy);
  if (!c.line.empty()) text += "\n  " + part(c.line);
  if (!c.under.empty()) text += "\n  " + part(c.under);
  if (c.others.empty()) return text + "\n  " + part(c.remedy);
  text += "\n  1. " + part(c.remedy);
  for (std::size_t i = 0; i < c.others.size(); ++i)
    text += "\n  " + std::to_string(i + 2) + ". " + part(c.others[i]);
  return text;
}

}  // namespace

Error::Error(ErrorKind kind, const Complaint& c) : Error(kind, message(c)) {}

Error::Error(ErrorKind kind, const std::string& marked)
    : std::runtime_error(spelled(marked, Spelling::names)),
      kind_(kind),
      marked_(std::make_shared<const std::string>(marked)) {}

void throw_usage(const Complaint& complaint) { throw Error(ErrorKind::usage, complaint); }
void throw_data(const Complaint& complaint) { throw Error(ErrorKind::data, complaint); }
void throw_file(const Complaint& complaint) { throw Error(ErrorKind::file, complaint); }

void require_option(bool good, const std::string& option, const std::string& found,
                    const std::string& expected, const std::string& remedy) {
  if (!good) throw_usage({option, found, expected, remedy});
}

void require_finite(bool finite, const std::string& where, const std::string& found,
                    const std::string& remedy) {
  if (!finite) throw_data({where, found, "finite numbers", remedy});
}

}  // namespace odecast
