#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace odecast {

/// The character that a text begins with; length 0 where that is no UTF-8.
struct Utf8 {
  std::size_t length = 0;
  std::uint32_t point = 0;
};
Utf8 first_character(std::string_view text);
bool is_utf8(std::string_view text);

std::string_view trimmed(std::string_view text);  ///< without blanks and tabs at its ends

/// Text of others for a terminal, at most so many characters and then "…": what a terminal would
/// obey (control characters, those that turn the direction of writing, ends of lines) and bytes
/// that are no UTF-8 become '?'.
std::string printable(std::string_view text, std::size_t longest = std::string_view::npos);
/// The same for text of ours in which others' stands: its lines stay.
std::string printable_lines(std::string_view text);
/// The same for a message: short, in quotes.
std::string shown(std::string_view text);

/// A name or an id as a cell of CSV: quoted where it would be read as something else otherwise.
std::string csv_cell(std::string_view text);

/// A name as LaTeX shows it and never runs it: letters and digits in math, anything else as text
/// with what TeX obeys escaped.
std::string latex_name(const std::string& name);

/// The number of bytes to insert, delete or replace to turn one text into the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// What is wrong with the name of a column, for an error; null where every file of ours holds it
/// and gives it back.
const char* name_fault(std::string_view name);

std::vector<std::string> split(const std::string& text, char separator);
/// Names separated by commas; one that has a comma stands in quotes, as in a CSV file. Nothing
/// where a quote is not closed.
std::optional<std::vector<std::string>> split_list(const std::string& text);

/// How a face calls the fields of options: `degree` and `degree=3` stand in the library's messages
/// in backquotes, and become
enum class Spelling {
  names,     ///< degree, degree=3
  options,   ///< --degree, --degree 3; - for _
  keywords,  ///< degree=, degree=3
};
std::string spelled(std::string_view text, Spelling as);

}  // namespace odecast
