#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"
#include "evidence/shell.h"

// Arithmetic and tests of a script.

namespace harness::evidence {
namespace {

/// Integers as a shell computes them; nothing where a part is unknown, not understood or too large.
class Arithmetic {
 public:
  using Number = std::optional<std::int64_t>;
  using Lookup = std::function<Number(std::string_view)>;
  Arithmetic(std::string_view text, Lookup lookup) : rest_(text), lookup_(std::move(lookup)) {}

  Number value() {
    const Number found = binary(0);
    blank();
    return rest_.empty() ? found : std::nullopt;
  }

 private:
  struct Operator {
    std::string_view text;
    int level;
  };
  void blank() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n"), rest_.size())); }
  const Operator* next() {
    static constexpr std::array<Operator, 14> all{{{"||", 0},
                                                   {"&&", 1},
                                                   {"==", 2},
                                                   {"!=", 2},
                                                   {"<=", 3},
                                                   {">=", 3},
                                                   {"**", 7},
                                                   {"<", 3},
                                                   {">", 3},
                                                   {"+", 5},
                                                   {"-", 5},
                                                   {"*", 6},
                                                   {"/", 6},
                                                   {"%", 6}}};
    blank();
    for (const Operator& one : all) {
      if (rest_.starts_with(one.text)) return &one;
    }
    return nullptr;
  }
  Number binary(int level) {
    Number left = unary();
    for (const Operator* op = next(); op != nullptr && op->level >= level; op = next()) {
      rest_.remove_prefix(op->text.size());
      const Number right = guarded([&] { return binary(op->level + 1); });
      left = left && right ? apply(op->text, *left, *right) : std::nullopt;
    }
    return left;
  }
  static Number apply(std::string_view op, std::int64_t a, std::int64_t b) {
    std::int64_t out = 0;
    if (op == "+") return __builtin_add_overflow(a, b, &out) ? std::nullopt : Number(out);
    if (op == "-") return __builtin_sub_overflow(a, b, &out) ? std::nullopt : Number(out);
    if (op == "*") return __builtin_mul_overflow(a, b, &out) ? std::nullopt : Number(out);
    if (op == "/" || op == "%") {
      if (b == 0) return std::nullopt;
      if (b == -1) return op == "%" ? Number(0) : apply("-", 0, a);
      return op == "/" ? a / b : a % b;
    }
    if (op == "**") {
      constexpr std::int64_t most = 62;
      if (b < 0 || b > most || a < 0) return std::nullopt;
      Number power = 1;
      for (std::int64_t i = 0; i < b && power; ++i) power = apply("*", *power, a);
      return power;
    }
    if (op == "==") return a == b ? 1 : 0;
    if (op == "!=") return a != b ? 1 : 0;
    if (op == "<=") return a <= b ? 1 : 0;
    if (op == ">=") return a >= b ? 1 : 0;
    if (op == "<") return a < b ? 1 : 0;
    if (op == ">") return a > b ? 1 : 0;
    const bool holds = op == "&&" ? a != 0 && b != 0 : a != 0 || b != 0;
    return holds ? 1 : 0;
  }
  Number unary() {
    blank();
    if (rest_.empty()) return std::nullopt;
    const char c = rest_[0];
    if (c == '(' || c == '-' || c == '+' || c == '!') {
      rest_.remove_prefix(1);
      const Number inside = guarded([&] { return c == '(' ? binary(0) : unary(); });
      if (c == '(') {
        blank();
        if (!rest_.starts_with(')')) return std::nullopt;
        rest_.remove_prefix(1);
        return inside;
      }
      if (!inside || c == '+') return inside;
      if (c == '-') return apply("-", 0, *inside);
      return *inside == 0 ? 1 : 0;
    }
    const auto end = static_cast<std::size_t>(std::ranges::find_if_not(rest_, is_name_character) - rest_.begin());
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    if (word.empty()) return std::nullopt;
    return name_length(word) > 0 ? lookup_(word) : number_in<std::int64_t>(word);
  }
  Number guarded(const std::function<Number()>& inner) {
    constexpr int deepest = 64;
    if (++depth_ > deepest) fail("its arithmetic is nested more than {} deep", deepest);
    const Number found = inner();
    --depth_;
    return found;
  }

  std::string_view rest_;
  Lookup lookup_;
  int depth_ = 0;
};

}  // namespace

std::optional<std::int64_t> integer_expression(std::string_view expression) {
  return Arithmetic(expression, [](std::string_view) { return std::optional<std::int64_t>(); }).value();
}

std::optional<std::int64_t> Shell::arithmetic(std::string_view raw) {
  const std::string text = document_of(raw);
  if (is_unknown(text)) return std::nullopt;
  constexpr int deepest = 16;
  return Arithmetic(text,
                    [this](std::string_view name) -> std::optional<std::int64_t> {
                      const Variable* found = find(name);
                      if (found == nullptr || found->items.empty() || depth_ > deepest) return std::nullopt;
                      const std::string value = found->items.front();
                      if (is_unknown(value)) return std::nullopt;
                      ++depth_;
                      const auto number = trim(value).empty() ? std::optional<std::int64_t>(0) : arithmetic(value);
                      --depth_;
                      return number;
                    })
      .value();
}

// test, [ ] and [[ ]]: files are never looked at.
Shell::Status Shell::test(std::vector<std::string> words, bool double_brackets) {
  constexpr std::size_t most = 64;
  if (words.empty()) return Shell::Status::no;
  if (words.size() > most) return Shell::Status::unknown;
  for (const std::string_view either : {"||", "&&"}) {
    const auto at = std::ranges::find(words, either);
    if (!double_brackets || at == words.end()) continue;
    const Shell::Status left = test({words.begin(), at}, double_brackets),
                        right = test({at + 1, words.end()}, double_brackets);
    const Shell::Status decides = either == "||" ? Shell::Status::yes : Shell::Status::no;
    if (left == decides || right == decides) return decides;
    return left == Shell::Status::unknown || right == Shell::Status::unknown ? Shell::Status::unknown
                                                                             : inverse(decides);
  }
  if (words.front() == "!") return inverse(test({words.begin() + 1, words.end()}, double_brackets));
  if (words.front() == "(" && words.back() == ")" && words.size() > 2)
    return test({words.begin() + 1, words.end() - 1}, double_brackets);
  const bool of_length = words.size() == 2 && (words[0] == "-z" || words[0] == "-n");
  if (of_length && is_left_open(words[1])) return status_of(words[0] == "-z");  // as "${X:-8}" takes it
  if (words.size() == 3 && words[2].empty() && words[1].ends_with('=') && is_left_open(words[0]))
    return status_of(words[1] != "!=");
  if (std::ranges::any_of(words, is_unknown)) return Shell::Status::unknown;
  if (words.size() == 1) return status_of(!words.front().empty());
  if (of_length) return status_of(words[1].empty() == (words[0] == "-z"));
  if (words.size() != 3) return Shell::Status::unknown;
  const std::string& op = words[1];
  if (op == "=" || op == "==" || op == "!=") {
    const bool same = double_brackets ? matches_pattern(words[0], words[2]) : words[0] == words[2];
    return status_of(same == (op != "!="));
  }
  const auto a = number_in<std::int64_t>(words[0]), b = number_in<std::int64_t>(words[2]);
  if (!a || !b) return Shell::Status::unknown;
  if (op == "-eq") return status_of(*a == *b);
  if (op == "-ne") return status_of(*a != *b);
  if (op == "-lt" || op == "<") return status_of(*a < *b);
  if (op == "-le") return status_of(*a <= *b);
  if (op == "-gt" || op == ">") return status_of(*a > *b);
  return op == "-ge" ? status_of(*a >= *b) : Shell::Status::unknown;
}

// Texts of a script, whatever its variables hold.

namespace {

// Between brackets of one kind; quotes and comments hide them.
std::size_t bracket_span(std::string_view text, std::size_t at, char open, char close, int nesting) {
  std::size_t depth = 0, i = at;
  while (i < text.size()) {
    const char c = text[i];
    if (c == '\\') {
      i += 2;
    } else if (c == '\'' || c == '"' || c == '`') {
      i += shell_span(text, i, nesting + 1);
    } else if (c == '#' && open == '(' && i > 0 && (text[i - 1] == ' ' || text[i - 1] == '\n' || text[i - 1] == '\t')) {
      i = std::min(text.find('\n', i), text.size());
    } else {
      ++i;
      if (c == open) ++depth;
      if (c == close && --depth == 0) return i - at;
    }
  }
  return text.size() - at;
}

}  // namespace

std::size_t name_length(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) != 0) return 0;
  return static_cast<std::size_t>(std::ranges::find_if_not(text, is_name_character) - text.begin());
}

std::size_t shell_span(std::string_view text, std::size_t at, int depth) {
  constexpr int deepest = 32;
  if (depth > deepest) return text.size() - at;
  const char first = text[at];
  if (first == '\'') {
    const std::size_t end = text.find('\'', at + 1);
    return (end == std::string_view::npos ? text.size() : end + 1) - at;
  }
  if (first == '(') return bracket_span(text, at, '(', ')', depth);
  if (first == '$') {
    if (at + 1 >= text.size()) return 1;
    if (text[at + 1] == '(') return 1 + bracket_span(text, at + 1, '(', ')', depth);
    if (text[at + 1] == '{') return 1 + bracket_span(text, at + 1, '{', '}', depth);
    if (text[at + 1] == '\'') {
      for (std::size_t i = at + 2; i < text.size(); ++i) {
        if (text[i] == '\\') {
          ++i;
        } else if (text[i] == '\'') {
          return i + 1 - at;
        }
      }
      return text.size() - at;
    }
    return 1;
  }
  for (std::size_t i = at + 1; i < text.size();) {  // double quotes and back quotes
    if (text[i] == '\\') {
      i += 2;
    } else if (text[i] == first) {
      return i + 1 - at;
    } else {
      const bool nests = first == '"' && text[i] == '$' && i + 1 < text.size() && text[i + 1] != '\'';
      i += nests ? shell_span(text, i, depth + 1) : 1;
    }
  }
  return text.size() - at;
}

std::string in_case(std::string text, char op, bool all) {
  for (std::size_t i = 0; i < (all ? text.size() : std::min<std::size_t>(text.size(), 1)); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    text[i] = static_cast<char>(op == ',' ? std::tolower(c) : std::toupper(c));
  }
  return text;
}

std::string without_end(const std::string& text, std::string_view pattern, bool from_end, bool longest) {
  for (std::size_t n = 0; n <= text.size(); ++n) {
    const std::size_t length = longest ? text.size() - n : n;
    const std::string_view part = std::string_view(text).substr(from_end ? text.size() - length : 0, length);
    if (matches_pattern(part, pattern)) return from_end ? text.substr(0, text.size() - length) : text.substr(length);
  }
  return text;
}

bool matches_pattern(std::string_view text, std::string_view pattern) {
  std::size_t t = 0, p = 0, star = std::string_view::npos, from = 0;
  const auto one = [&]() -> std::size_t {  // how much of the pattern takes text[t]; 0: it does not
    if (p >= pattern.size()) return 0;
    const std::size_t close = pattern[p] == '[' ? pattern.find(']', p + 2) : std::string_view::npos;
    if (close != std::string_view::npos) {
      const std::string_view set = pattern.substr(p + 1, close - p - 1);
      const bool inverse = set[0] == '!' || set[0] == '^';
      bool in = false;
      for (std::size_t i = inverse ? 1 : 0; i < set.size(); ++i) {
        const bool range = i + 2 < set.size() && set[i + 1] == '-';
        in = in || (range ? text[t] >= set[i] && text[t] <= set[i + 2] : text[t] == set[i]);
        if (range) i += 2;
      }
      return in != inverse ? close - p + 1 : 0;
    }
    if (pattern[p] == '\\' && p + 1 < pattern.size()) return pattern[p + 1] == text[t] ? 2 : 0;
    return pattern[p] == '?' || pattern[p] == text[t] ? 1 : 0;
  };
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      from = t;
    } else if (const std::size_t taken = one(); taken > 0) {
      p += taken;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star;
      t = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace harness::evidence
