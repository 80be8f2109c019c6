#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numbers>

#include "odecast/core/error.hpp"
#include "odecast/core/text.hpp"
#include "odecast/field/detail/expression_names.hpp"
#include "odecast/field/expression.hpp"

namespace odecast {

bool is_name_character(std::uint32_t c, bool first) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_') return true;
  if (c >= '0' && c <= '9') return !first;
  if (c < 0xc0) return c == 0xaa || c == 0xb5 || c == 0xba;  // ª µ º
  if (c == 0xd7 || c == 0xf7) return false;                  // × ÷
  // Blanks, punctuation, superscripts, operators, arrows, shapes; not subscripts and ℝ or ℓ.
  const bool sign = (c >= 0x2000 && c < 0x2080) || (c >= 0x20a0 && c < 0x2100) ||
                    (c >= 0x2190 && c < 0x2c00) || (c >= 0x3000 && c < 0x3005) || c == 0xfeff;
  return !sign;
}

bool is_plain_name(std::string_view name) {
  if (name.empty()) return false;
  for (bool first = true; !name.empty(); first = false) {
    const Utf8 c = first_character(name);
    if (c.length == 0 || !is_name_character(c.point, first)) return false;
    name.remove_prefix(c.length);
  }
  return true;
}

namespace {

/// Functions that people write, and those that are made of others.
constexpr std::array<std::string_view, 3> kMade = {"hill", "ln", "logistic"};

bool is_function(std::string_view name) {
  return std::find(kMade.begin(), kMade.end(), name) != kMade.end() ||
         std::any_of(kFunctionNames.begin(), kFunctionNames.end(),
                     [&](const auto& f) { return f.name == name; });
}

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

class Parser {
 public:
  Parser(std::string_view text, Tape& tape, const std::string& where)
      : text_(text), tape_(tape), where_(where) {}

  int parse() {
    if (text_.size() > static_cast<std::size_t>(kLongestExpression))
      throw_usage({where_, "an expression of " + std::to_string(text_.size()) + " bytes",
                   "at most " + std::to_string(kLongestExpression),
                   "Write it as several shorter ones."});
    const int node = sum();
    if (!at_end()) fail_after_value();
    if (expression_size(tape_, node) > kLargestExpression) too_large();
    if (expression_depth(tape_, node) > kDeepestExpression) too_deep(0);
    return node;
  }

 private:
  /// Goes back at the end of what it counts.
  struct Deeper {
    Parser& parser;
    explicit Deeper(Parser& p) : parser(p) {
      if (++parser.depth_ > kDeepestExpression) parser.too_deep(parser.at_);
    }
    ~Deeper() { --parser.depth_; }
  };

  int sum() {
    int left = product();
    for (;;) {
      if (take('+'))
        left = tape_.make(Op::add, left, product());
      else if (take('-'))
        left = tape_.make(Op::subtract, left, product());
      else
        return left;
    }
  }

  int product() {
    int left = factor();
    for (;;) {
      if (take('*'))
        left = tape_.make(Op::multiply, left, factor());
      else if (take('/'))
        left = tape_.make(Op::divide, left, factor());
      else
        return left;
    }
  }

  int factor() {
    const Deeper deeper(*this);
    if (take('-')) return tape_.make(Op::negate, factor());
    if (take('+')) return factor();
    const int base = value();
    if (!next_is_power()) return base;
    at_ += text_[at_] == '^' ? 1 : 2;
    return tape_.make(Op::power, base, factor());
  }

  int value() {
    skip_blanks();
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if ((c >= '0' && c <= '9') || c == '.') return number();
    if (c == '"' || c == '`') return quoted_name(c);
    const std::size_t begin = at_;
    if (take('(')) {
      const int inside = sum();
      close(begin);
      return inside;
    }
    const std::string_view name = word();
    if (name.empty()) fail_before_value();
    return next_is('(') ? call(name, begin) : named(name, begin);
  }

  int number() {
    double value = 0;
    const char *begin = text_.data() + at_, *end = text_.data() + text_.size();
    const auto [stop, error] = std::from_chars(begin, end, value);
    const auto length = static_cast<std::size_t>(stop - begin);
    if (error == std::errc::invalid_argument) fail_before_value();
    // Too small to be told from 0 is an error of from_chars, too.
    if (error == std::errc::result_out_of_range)
      fail(at_, "the number " + shown(text_.substr(at_, length)),
           "one between 1e-307 and 1e308 in size", "Write it in other units.");
    at_ += length;
    return tape_.number(value);
  }

  /// A name of an argument in quotes, with a quote inside it doubled.
  int quoted_name(char quote) {
    const std::size_t begin = at_++;
    std::string name;
    for (;; ++at_) {
      if (at_ >= text_.size())
        fail(begin, "a quote that is not closed", std::string("a ") + quote + " behind the name",
             "Close it.");
      if (text_[at_] == quote) {
        if (at_ + 1 >= text_.size() || text_[at_ + 1] != quote) break;
        ++at_;
      }
      name += text_[at_];
    }
    ++at_;
    const auto& all = tape_.arguments();
    const auto at = std::find(all.begin(), all.end(), name);
    if (at == all.end())
      fail(begin, "the name " + shown(name), "one of the data",
           all.empty() ? "Unknown numbers stand without quotes."
                       : "The nearest is " + shown(nearest(name, all)) +
                             ". Unknown numbers stand without quotes.");
    return tape_.argument(static_cast<int>(at - all.begin()));
  }

  int named(std::string_view name, std::size_t begin) {
    const auto& all = tape_.arguments();
    const auto at = std::find(all.begin(), all.end(), name);
    if (at != all.end()) return tape_.argument(static_cast<int>(at - all.begin()));
    if (name == kPiName) return tape_.number(std::numbers::pi);
    if (is_function(name))
      fail(begin, "the function " + quoted(name) + " without an argument", "a '(' behind it",
           "Write " + std::string(name) + "(x).");
    return tape_.parameter(std::string(name));
  }

  int call(std::string_view name, std::size_t begin) {
    const auto& all = tape_.arguments();
    if (!is_function(name)) {
      if (name == kPiName || std::find(all.begin(), all.end(), name) != all.end())
        fail(at_, "'(' behind " + shown(name), "an operator",
             "Write * between factors: " + printable(name, 60) + "*(…).");
      std::vector<std::string> known(kMade.begin(), kMade.end());
      for (const auto& f : kFunctionNames) known.emplace_back(f.name);
      std::sort(known.begin(), known.end());
      std::string list;
      for (const auto& f : known) list += (list.empty() ? "" : ", ") + f;
      fail(begin, "the function " + shown(name), "one of " + list,
           "The nearest is " + nearest(std::string(name), known) + "; for a product write " +
               printable(name, 60) + "*(…).");
    }
    const std::size_t bracket = at_;
    take('(');
    std::vector<int> inside = {sum()};
    while (take(',')) inside.push_back(sum());
    close(bracket);
    const std::size_t expected = name == "hill" ? 3 : 1;
    if (inside.size() != expected)
      fail(begin, std::to_string(inside.size()) + " arguments of " + quoted(name),
           expected == 3 ? "3: hill(x, k, n) = x^n/(k^n + x^n)" : "1",
           "Write " + std::string(name) + (expected == 3 ? "(x, k, n)." : "(x)."));
    if (name == "hill") {
      const int up = tape_.make(Op::power, inside[0], inside[2]);
      const int down = tape_.make(Op::power, inside[1], inside[2]);
      return tape_.make(Op::divide, up, tape_.make(Op::add, down, up));
    }
    if (name == "logistic") {
      const int power = tape_.make(Op::exponential, tape_.make(Op::negate, inside[0]));
      return tape_.make(Op::divide, tape_.number(1), tape_.make(Op::add, tape_.number(1), power));
    }
    if (name == "ln") return tape_.make(Op::logarithm, inside[0]);
    for (const auto& f : kFunctionNames)
      if (f.name == name) return tape_.make(f.op, inside[0]);
    return inside[0];  // not reached: is_function(name)
  }

  void skip_blanks() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }
  bool at_end() {
    skip_blanks();
    return at_ >= text_.size();
  }
  bool next_is(char c) { return !at_end() && text_[at_] == c; }
  bool next_is_power() { return next_is('^') || (next_is('*') && text_.substr(at_, 2) == "**"); }
  bool take(char c) {
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }
  void close(std::size_t opened) {
    if (take(')')) return;
    if (!at_end()) fail_after_value();
    fail(opened, "a '(' that is not closed", "a ')'", "Close the bracket.");
  }
  /// The name that begins here; empty where none does.
  std::string_view word() {
    const std::size_t begin = at_;
    while (at_ < text_.size()) {
      const Utf8 c = first_character(text_.substr(at_));
      if (c.length == 0 || !is_name_character(c.point, at_ == begin)) break;
      at_ += c.length;
    }
    return text_.substr(begin, at_ - begin);
  }

  std::string nearest(const std::string& name, const std::vector<std::string>& all) {
    return *std::min_element(all.begin(), all.end(), [&](const auto& a, const auto& b) {
      return edit_distance(name, a) < edit_distance(name, b);
    });
  }

  std::string what_is_here() {
    if (at_end()) return "the end of the text";
    const Utf8 c = first_character(text_.substr(at_));
    return c.length == 0 ? "a byte that is no UTF-8" : shown(text_.substr(at_, c.length));
  }
  [[noreturn]] void fail_before_value() {
    const std::string found = what_is_here();
    fail(at_, found, "a number, a name or '('",
         at_end() && trimmed(text_).empty() ? "Write an expression, such as x*y/(k + x)."
                                            : "Names with other signs stand in quotes: \"x'\".");
  }
  [[noreturn]] void fail_after_value() {
    const std::string found = what_is_here();
    const bool bracket = found == "')'", comma = found == "','";
    fail(at_, found, "an operator (+ - * / ^) or the end",
         bracket ? "Open the bracket before it."
         : comma ? "A decimal has a point; one expression stands here."
                 : "Write * between factors: 2*x.");
  }
  [[noreturn]] void too_large() {
    throw_usage({where_,
                 "an expression of more than " + std::to_string(kLargestExpression) +
                     " operations, numbers and names",
                 "fewer", "Write it as several shorter ones."});
  }

  [[noreturn]] void too_deep(std::size_t place) {
    fail(place,
         "more than " + std::to_string(kDeepestExpression) +
             " brackets, signs and powers inside each other",
         "fewer", "Write it as several shorter ones.");
  }

  /// With the text around the place, and a caret under it.
  [[noreturn]] void fail(std::size_t place, const std::string& found, const std::string& expected,
                         const std::string& remedy) {
    constexpr std::size_t before = 50, shown_at_most = 76;
    // In characters: bytes that are no UTF-8 are shown as one each.
    std::vector<std::size_t> begins;
    std::size_t column = 0;
    for (std::size_t at = 0; at < text_.size();) {
      if (at <= place) column = begins.size();
      begins.push_back(at);
      at += std::max<std::size_t>(1, first_character(text_.substr(at)).length);
    }
    if (place >= text_.size()) column = begins.size();
    const std::size_t first = column > before ? column - before : 0;
    std::string line(text_.substr(first < begins.size() ? begins[first] : text_.size()));
    line = (first > 0 ? "…" : "") + printable(line, shown_at_most);
    std::replace(line.begin(), line.end(), '`', '\'');  // which would name a field
    throw_usage({where_ + ", character " + std::to_string(column + 1),
                 found,
                 expected,
                 remedy,
                 line,
                 {},
                 std::string(column - first + (first > 0 ? 1 : 0), ' ') + "^"});
  }

  std::string_view text_;
  Tape& tape_;
  const std::string& where_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

int parse_expression(std::string_view text, Tape& tape, const std::string& where) {
  return Parser(text, tape, where).parse();
}

}  // namespace odecast
