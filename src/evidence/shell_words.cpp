#include <algorithm>
#include <array>
#include <functional>

#include "base/text.h"
#include "evidence/input.h"
#include "evidence/shell.h"

// Words of a script and what they stand for: quotes, variables and arithmetic.

namespace harness::evidence {
namespace {

using Text = std::string_view;

constexpr char mark_begins = '\x01', mark_ends = '\x02';
constexpr Text blanks = " \t\n";
constexpr const char *given = "is given to the script", *left_open = "is not set in this script";

// The mark within a text, for a text that takes its place.
std::string mark_in(Text text) {
  const std::size_t begin = text.find(mark_begins);
  return std::string(text.substr(begin, text.find(mark_ends, begin) + 1 - begin));
}

using Integer = std::int64_t;
using Number = std::optional<Integer>;  // nothing where a part is unknown, not understood or too large

Number product(Integer a, Integer b) {
  Integer out = 0;
  return __builtin_mul_overflow(a, b, &out) ? std::nullopt : Number(out);
}
Number sum(Integer a, Integer b) {
  Integer out = 0;
  return __builtin_add_overflow(a, b, &out) ? std::nullopt : Number(out);
}
Number difference(Integer a, Integer b) {
  Integer out = 0;
  return __builtin_sub_overflow(a, b, &out) ? std::nullopt : Number(out);
}
Number power(Integer a, Integer b) {
  constexpr Integer most = 62;
  if (b < 0 || b > most || a < 0) return std::nullopt;
  Number out = 1;
  for (Integer i = 0; i < b && out; ++i) out = product(*out, a);
  return out;
}
Number quotient(Integer a, Integer b) {
  if (b == 0) return std::nullopt;
  return b == -1 ? difference(0, a) : Number(a / b);
}
Number remainder(Integer a, Integer b) {
  if (b == 0) return std::nullopt;
  return b == -1 ? 0 : a % b;
}

struct Operator {
  Text text;
  int level = 0;
  Number (*apply)(Integer, Integer) = nullptr;
};
constexpr std::array<Operator, 14> operators{{
    {"||", 0, [](Integer a, Integer b) -> Number { return a != 0 || b != 0; }},
    {"&&", 1, [](Integer a, Integer b) -> Number { return a != 0 && b != 0; }},
    {"==", 2, [](Integer a, Integer b) -> Number { return a == b; }},
    {"!=", 2, [](Integer a, Integer b) -> Number { return a != b; }},
    {"<=", 3, [](Integer a, Integer b) -> Number { return a <= b; }},
    {">=", 3, [](Integer a, Integer b) -> Number { return a >= b; }},
    {"<", 3, [](Integer a, Integer b) -> Number { return a < b; }},
    {">", 3, [](Integer a, Integer b) -> Number { return a > b; }},
    {"+", 5, sum},
    {"-", 5, difference},
    {"**", 7, power},
    {"*", 6, product},
    {"/", 6, quotient},
    {"%", 6, remainder},
}};

/// Integers as a shell computes them.
class Arithmetic {
 public:
  using Lookup = std::function<Number(Text)>;
  Arithmetic(Text text, Lookup lookup) : rest_(text), lookup_(std::move(lookup)) {}

  Number value() {
    const Number found = binary(0);
    blank();
    return rest_.empty() ? found : std::nullopt;
  }

 private:
  void blank() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n"), rest_.size())); }
  const Operator* next() {
    blank();
    const auto found = std::ranges::find_if(operators, [&](const Operator& o) { return rest_.starts_with(o.text); });
    return found == operators.end() ? nullptr : &*found;
  }
  Number binary(int level) {
    constexpr int deepest = 64;
    if (++depth_ > deepest) fail("its arithmetic is nested more than {} deep", deepest);
    Number left = unary();
    for (const Operator* op = next(); op != nullptr && op->level >= level; op = next()) {
      rest_.remove_prefix(op->text.size());
      const Number right = binary(op->level + 1);
      left = left && right ? op->apply(*left, *right) : std::nullopt;
    }
    --depth_;
    return left;
  }
  Number unary() {
    blank();
    if (rest_.empty()) return std::nullopt;
    const char c = rest_[0];
    if (c == '(' || c == '-' || c == '+' || c == '!') {
      constexpr int tightest = 8;  // no operator follows a sign before its operand
      rest_.remove_prefix(1);
      const Number inside = binary(c == '(' ? 0 : tightest);
      if (c == '(') {
        blank();
        if (!rest_.starts_with(')')) return std::nullopt;
        rest_.remove_prefix(1);
      }
      if (!inside || c == '+' || c == '(') return inside;
      return c == '-' ? difference(0, *inside) : Number(*inside == 0);
    }
    const auto end = static_cast<std::size_t>(std::ranges::find_if_not(rest_, is_name_character) - rest_.begin());
    const Text word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    if (word.empty()) return std::nullopt;
    return name_length(word) > 0 ? lookup_(word) : number_in<Integer>(word);
  }

  Text rest_;
  Lookup lookup_;
  int depth_ = 0;
};

}  // namespace

bool is_unknown(Text word) {
  return word.find(mark_begins) != Text::npos;
}

std::string Shell::unknown(const std::string& why) {
  std::size_t index = static_cast<std::size_t>(std::ranges::find(reasons_, why) - reasons_.begin());
  constexpr std::size_t most = 1000;
  index = std::min(index, most - 1);
  if (index == reasons_.size()) reasons_.push_back(why);
  return fmt::format("{}{}{}", mark_begins, index, mark_ends);
}

std::string Shell::why_unknown(Text word) const {
  if (!is_unknown(word)) return "";
  const std::string mark = mark_in(word);
  const auto index = number_in<std::size_t>(Text(mark).substr(1, mark.size() - 2));
  return index && *index < reasons_.size() ? reasons_[*index] : "it is not known";
}

bool Shell::is_left_open(Text word) const {
  const std::string why = why_unknown(word);
  constexpr std::array<Text, 4> launchers{" SLURM_", " PBS_", " OMPI_", " LSB_"};  // they do set theirs
  return (why.ends_with(given) || why.ends_with(left_open)) && word == mark_in(word) &&
         std::ranges::none_of(launchers, [&](Text name) { return contains(why, name); });
}

/// Makes words of what stands in a script, as bash does: unquoted values are split at blanks.
class ShellExpansion {
 public:
  ShellExpansion(Shell& shell, bool splits) : shell_(shell), splits_(splits) {}

  void add(Text raw, bool quoted = false) {
    constexpr int deepest = 32;
    if (++shell_.nesting_ > deepest) fail("line {}: it is nested more than {} deep", shell_.line_, deepest);
    while (!raw.empty()) raw.remove_prefix(std::min(part(raw, quoted), raw.size()));
    --shell_.nesting_;
  }
  std::vector<std::string> words() {
    end_word();
    return std::move(words_);
  }
  std::string text() { return std::move(word_); }

 private:
  // Adds what a text begins with, and returns how much that is.
  std::size_t part(Text raw, bool quoted) {
    const char c = raw[0];
    if (c == '\\') {
      const Text next = raw.substr(1, 1);
      if (quoted && !next.empty() && !contains("$`\"\\\n", next)) literal("\\");
      if (next != "\n") literal(next);
      return 2;
    }
    const bool plain = quoted && (c == '\'' || c == '"' || raw.starts_with("$'"));
    if (plain || !contains("$`'\"", raw.substr(0, 1))) {
      const std::size_t end = std::min(raw.find_first_of("\\$`'\"", 1), raw.size());
      literal(raw.substr(0, end));
      return end;
    }
    const std::size_t length = shell_span(raw, 0);
    const Text span = raw.substr(0, length);
    const auto inside = [&](std::size_t before, std::size_t after) {
      return span.substr(before, std::max(span.size(), before + after) - before - after);
    };
    const bool closed = span.size() > 1 && span.back() == c;
    if (c == '\'') {
      literal(inside(1, closed ? 1 : 0));
    } else if (c == '"') {
      open_ = true;
      add(inside(1, closed ? 1 : 0), true);
    } else if (span.starts_with("$((")) {
      const auto number = shell_.arithmetic(inside(3, 2));
      value(number ? std::to_string(*number) : shell_.unknown_of(inside(3, 2)), quoted);
    } else if (c == '`' || span.starts_with("$(")) {
      value(command_output(), quoted);
    } else if (span.starts_with("$'")) {
      value(unknown("$'…'"), quoted);
    } else if (span.starts_with("${")) {
      parameter(inside(2, 1), quoted);
    } else {
      const Text name = raw.substr(1, parameter_length(raw.substr(1)));
      name.empty() ? literal("$") : parameter(name, quoted);
      return 1 + name.size();
    }
    return length;
  }
  // A name, digits, or one character such as @.
  static std::size_t parameter_length(Text text) {
    if (const std::size_t length = name_length(text); length > 0 || text.empty()) return length;
    return Text("0123456789@*#?$!-").find(text[0]) == Text::npos ? 0 : 1;
  }
  void literal(Text text) {
    shell_.spend(text.size());
    word_ += text;
    open_ = true;
  }
  void value(Text text, bool quoted) {
    if (quoted || !splits_) return literal(text);
    shell_.spend(text.size());
    while (!text.empty()) {
      const std::size_t end = text.find_first_of(blanks);
      if (end > 0) literal(text.substr(0, end));
      if (end == Text::npos) return;
      end_word();
      text.remove_prefix(std::min(text.find_first_not_of(blanks, end), text.size()));
    }
  }
  void list(const std::vector<std::string>& items, bool quoted) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0 && splits_) end_word();
      if (i > 0 && !splits_) literal(" ");
      value(items[i], quoted);
    }
  }
  void end_word() {
    if (open_) words_.push_back(std::move(word_));
    word_.clear();
    open_ = false;
  }
  std::string unknown(const std::string& why) { return shell_.unknown(fmt::format("line {}: {}", shell_.line_, why)); }
  std::string command_output() {
    return unknown(shell_.assigning_.empty() ? "the output of a command"
                                             : fmt::format("{} is a command's output", shell_.assigning_));
  }
  std::string not_set(Text name) {
    const bool argument = contains("0123456789@*#", name.substr(0, 1));
    return unknown(argument ? fmt::format("${} {}", name, given) : fmt::format("{} {}", name, left_open));
  }

  // The values of "NAME", "NAME[i]", "NAME[@]", "1", "@", "#"; nothing where it is not set.
  std::optional<std::vector<std::string>> values(Text name, Text index) {
    const auto& arguments = shell_.state_.arguments;
    if (name == "@" || name == "*") return arguments;
    if (name == "#") return arguments ? std::optional(std::vector{std::to_string(arguments->size())}) : std::nullopt;
    if (const auto number = number_in<std::size_t>(name)) {
      if (!arguments || *number == 0 || *number > arguments->size()) return std::nullopt;
      return std::vector{(*arguments)[*number - 1]};
    }
    const Shell::Variable* found = shell_.find(name);
    if (found == nullptr) return std::nullopt;
    if (index == "@" || index == "*") return found->items;
    const auto at = index.empty() ? std::optional<std::int64_t>(0) : shell_.arithmetic(index);
    if (!at) return std::vector{shell_.unknown_of(index)};
    const std::int64_t n = *at < 0 ? *at + std::ssize(found->items) : *at;
    if (n < 0 || n >= std::ssize(found->items)) return std::nullopt;
    return std::vector{found->items[static_cast<std::size_t>(n)]};
  }

  // Takes what stands between the braces of "${…}".
  void parameter(Text inside, bool quoted) {
    const bool counts = inside.size() > 1 && inside[0] == '#';
    if (counts) inside.remove_prefix(1);
    std::size_t length = std::max<std::size_t>(name_length(inside), inside.empty() ? 0 : 1);
    while (number_in<std::size_t>(inside.substr(0, length + 1)) && length < inside.size()) ++length;
    const Text name = inside.substr(0, length);
    Text op = inside.substr(length), index = name == "@" || name == "*" ? name : Text();
    if (op.starts_with('[')) {
      const std::size_t close = std::min(op.find(']'), op.size() - 1);
      index = op.substr(1, close - 1);
      op.remove_prefix(close + 1);
    }
    const bool all = index == "@" || index == "*";
    auto found = values(name, index);
    if (counts) return value(found ? count(*found, all) : not_set(name), quoted);
    const bool colon = op.size() > 1 && op[0] == ':' && contains("-=?+", op.substr(1, 1));
    if (colon) op.remove_prefix(1);
    const bool empty = !found || (colon && join(*found, "").empty());
    const char first = op.empty() ? '\0' : op[0];
    if (first == '-' || first == '=' || first == '+') {
      if (empty == (first == '+')) {
        if (first == '+') return;
      } else {
        if (first == '=' && !name.empty()) shell_.set(std::string(name), shell_.text_of(op.substr(1)), false);
        return add(op.substr(1), quoted);
      }
    } else if (!found) {
      return all && shell_.find(name) != nullptr ? void() : value(not_set(name), quoted);
    } else if (!op.empty() && first != '?') {
      return value(cut_out(join(*found, " "), op), quoted);
    }
    if (index == "*" && quoted) return value(join(*found, " "), true);
    list(*found, quoted);
  }

  static std::string count(const std::vector<std::string>& found, bool all) {
    const auto unknown_item = std::ranges::find_if(found, is_unknown);
    if (unknown_item != found.end()) return mark_in(*unknown_item);
    return std::to_string(all ? found.size() : found.front().size());
  }
  // ${x%end}, ${x/a/b}, ${x:from:length}, ${x,,} and their kin are not followed.
  std::string cut_out(const std::string& text, Text op) {
    return is_unknown(text) ? mark_in(text) : unknown(fmt::format("${{{}}}", op.substr(0, 20)));
  }

  Shell& shell_;
  bool splits_;
  std::vector<std::string> words_;
  std::string word_;
  bool open_ = false;
};

std::vector<std::string> Shell::words_of(const std::vector<std::string>& raw, std::size_t first) {
  std::vector<std::string> words;
  for (std::size_t i = first; i < raw.size(); ++i) {
    ShellExpansion one(*this, true);
    one.add(raw[i]);
    for (std::string& word : one.words()) words.push_back(std::move(word));
  }
  return words;
}

std::string Shell::text_of(Text raw, bool quoted) {
  ShellExpansion expansion(*this, false);
  expansion.add(raw, quoted);
  return expansion.text();
}

std::optional<std::int64_t> integer_expression(Text expression) {
  return Arithmetic(expression, [](Text) { return Number(); }).value();
}

std::optional<std::int64_t> Shell::arithmetic(Text raw) {
  const std::string text = text_of(raw, true);
  if (is_unknown(text)) return std::nullopt;
  constexpr int deepest = 16;
  return Arithmetic(text,
                    [this](Text name) -> Number {
                      const Variable* found = find(name);
                      if (found == nullptr || found->items.empty() || depth_ > deepest) return std::nullopt;
                      const std::string value = found->items.front();
                      if (is_unknown(value)) return std::nullopt;
                      ++depth_;
                      const Number number = trim(value).empty() ? Number(0) : arithmetic(value);
                      --depth_;
                      return number;
                    })
      .value();
}

// A mark for what hangs on a text whose variables are not all known.
std::string Shell::unknown_of(Text raw) {
  const std::string text = text_of(raw);
  if (is_unknown(text)) return mark_in(text);
  for (Text rest = text; !rest.empty(); rest.remove_prefix(1)) {
    const std::size_t length = name_length(rest);
    if (length == 0) continue;
    const Variable* found = find(rest.substr(0, length));
    if (found == nullptr) return unknown(fmt::format("line {}: {} {}", line_, rest.substr(0, length), left_open));
    for (const std::string& item : found->items) {
      if (is_unknown(item)) return mark_in(item);
    }
    rest.remove_prefix(length - 1);
  }
  return unknown(fmt::format("line {}: arithmetic that is not understood", line_));
}

}  // namespace harness::evidence
