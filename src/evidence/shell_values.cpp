#include <fnmatch.h>
#include <regex.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"
#include "evidence/lines.h"
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
    const Number found = choice();
    blank();
    return rest_.empty() ? found : std::nullopt;
  }

 private:
  struct Operator {
    std::string_view text;
    int level = 0;
  };
  void blank() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n"), rest_.size())); }
  bool eat(char c) {
    blank();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // "a ? b : c", or what stands before the mark.
  Number choice() {
    const Number holds = binary(0);
    if (!eat('?')) return holds;
    const Number yes = guarded([&] { return choice(); });
    if (!eat(':')) return std::nullopt;
    const Number no = guarded([&] { return choice(); });
    if (!holds) return std::nullopt;
    return *holds != 0 ? yes : no;
  }
  std::optional<Operator> next() {
    static constexpr std::array<std::string_view, 14> all{"||", "&&", "==", "!=", "<=", ">=", "**",
                                                          "<",  ">",  "+",  "-",  "*",  "/",  "%"};
    static constexpr std::array<int, 14> levels{0, 1, 2, 2, 3, 3, 7, 3, 3, 5, 5, 6, 6, 6};
    blank();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (rest_.starts_with(all[i])) return Operator{all[i], levels[i]};
    }
    return std::nullopt;
  }
  Number binary(int level) {
    Number left = unary();
    for (auto op = next(); op && op->level >= level; op = next()) {
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
      const Number inside = guarded([&] { return c == '(' ? choice() : unary(); });
      if (c == '(') return eat(')') ? inside : std::nullopt;
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

// "N = 4", "N *= 2", or a value: of let and (( )).
Shell::Status Shell::compute(std::string_view text) {
  text = trim(text);
  const std::string_view name = text.substr(0, name_length(text));
  const std::size_t equals = std::min(text.find_first_not_of(" \t+-*/%", name.size()), text.size());
  const bool assigns = !name.empty() && text.substr(equals).starts_with('=') && text.substr(equals, 2) != "==";
  const std::string_view right = assigns ? text.substr(equals + 1) : text,
                         op = trim(text.substr(name.size(), equals - name.size()));
  const auto value =
      arithmetic(assigns && !op.empty() ? fmt::format("{} {} ({})", name, op, right) : std::string(right));
  if (assigns) set(std::string(name), value ? std::to_string(*value) : unknown_of(right), false);
  return value ? Status(*value != 0) : std::nullopt;
}

// test, [ ] and [[ ]]: files are never looked at.
Shell::Status Shell::test(std::vector<std::string> words, bool double_brackets) {
  constexpr std::size_t most = 64;
  if (words.empty()) return false;
  if (words.size() > most) return std::nullopt;
  for (const std::string_view either : {"||", "-o", "&&", "-a"}) {
    const auto at = std::ranges::find(words, either);
    if (double_brackets == (either[0] == '-') || at == words.end() || at == words.begin()) continue;
    const Status left = test({words.begin(), at}, double_brackets),
                 right = test({at + 1, words.end()}, double_brackets);
    const bool decides = either == "||" || either == "-o";
    if (left == decides || right == decides) return decides;
    return left && right ? Status(!decides) : std::nullopt;
  }
  if (words.front() == "!") {
    const Status inside = test({words.begin() + 1, words.end()}, double_brackets);
    return inside ? Status(!*inside) : std::nullopt;
  }
  if (words.front() == "(" && words.back() == ")" && words.size() > 2)
    return test({words.begin() + 1, words.end() - 1}, double_brackets);
  const bool of_length = words.size() == 2 && (words[0] == "-z" || words[0] == "-n");
  if (of_length && is_left_open(words[1])) return words[0] == "-z";  // as "${X:-8}" takes it
  if (words.size() == 3 && words[2].empty() && words[1].ends_with('=') && is_left_open(words[0]))
    return words[1] != "!=";
  const bool searches = words.size() == 3 && words[1] == "=~";
  if (searches)
    state_.variables["BASH_REMATCH"].items.assign(10, unknown(fmt::format("line {}: what =~ finds", line_)));
  if (std::ranges::any_of(words, is_unknown)) return std::nullopt;
  if (searches) {
    const auto found = places(words[0], words[2], false);
    return found ? Status(!found->empty()) : std::nullopt;
  }
  if (words.size() == 1) return !words.front().empty();
  if (of_length) return words[1].empty() == (words[0] == "-z");
  if (words.size() != 3) return std::nullopt;
  const std::string& op = words[1];
  if (op == "=" || op == "==" || op == "!=") {
    const bool same = double_brackets ? matches_pattern(words[0], words[2]) : words[0] == words[2];
    return same == (op != "!=");
  }
  const auto a = number_in<std::int64_t>(words[0]), b = number_in<std::int64_t>(words[2]);
  if (!a || !b) return std::nullopt;
  const auto compares = mapped("-eq===|-ne=!=|-lt=<|-le=<=|-gt=>|-ge=>=|<=<|>=>", op);
  return compares ? Status(integer_expression(fmt::format("{} {} {}", *a, *compares, *b)) == 1) : std::nullopt;
}

bool matches_pattern(const std::string& text, const std::string& pattern) {
  return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

std::string expression_of(std::string_view pattern) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    std::size_t close = c == '[' ? pattern.find(']', i + 2) : pattern.npos;
    while (close != pattern.npos && pattern[close - 1] == ':') close = pattern.find(']', close + 1);  // "[[:digit:]]"
    if (close != pattern.npos) {
      const std::string_view inside = pattern.substr(i + 1, close - i);
      out += inside.starts_with('!') ? fmt::format("[^{}", inside.substr(1)) : fmt::format("[{}", inside);
      i = close;
    } else if (c == '*' || c == '?') {
      out += c == '*' ? ".*" : ".";
    } else {
      if (std::string_view(".[]()^$+{}|\\").find(c) != pattern.npos) out += '\\';
      out += c;
    }
  }
  return out;
}

std::optional<Shell::Places> Shell::places(const std::string& text, const std::string& expression, bool all) {
  constexpr std::size_t longest = 256, longest_text = 4096;
  for (std::size_t i = 0; i < expression.size(); ++i) {  // \1 and {1,9} may take time without bounds
    const bool escaped = expression[i] == '\\' && ++i < expression.size();
    if (escaped ? std::isdigit(static_cast<unsigned char>(expression[i])) != 0 : expression[i] == '{')
      return std::nullopt;
  }
  regex_t compiled;
  if (expression.size() > longest || text.size() > longest_text ||
      ::regcomp(&compiled, expression.c_str(), REG_EXTENDED) != 0)
    return std::nullopt;
  Places found;
  regmatch_t match;
  std::size_t at = 0;
  while ((found.empty() || (all && at < text.size() && found.back().second > found.back().first)) &&
         ::regexec(&compiled, text.c_str() + at, 1, &match, at > 0 ? REG_NOTBOL : 0) == 0) {
    found.emplace_back(at + static_cast<std::size_t>(match.rm_so), at + static_cast<std::size_t>(match.rm_eo));
    at = found.back().second;
  }
  ::regfree(&compiled);
  // Each place may be tried up to the end of the text, and a short expression may take long to prepare.
  spend(text.size() * text.size() / 4 + 16 * expression.size() * expression.size());
  return found;
}

}  // namespace harness::evidence
