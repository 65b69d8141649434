#include <fnmatch.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "evidence/lines.h"
#include "evidence/shell.h"

// Arithmetic and tests of a script.

namespace harness::evidence {
namespace {

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
  std::string_view text;
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
  using Lookup = std::function<Number(std::string_view)>;
  Arithmetic(std::string_view text, Lookup lookup) : rest_(text), lookup_(std::move(lookup)) {}

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
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    if (word.empty()) return std::nullopt;
    return name_length(word) > 0 ? lookup_(word) : number_in<Integer>(word);
  }

  std::string_view rest_;
  Lookup lookup_;
  int depth_ = 0;
};

}  // namespace

std::optional<std::int64_t> integer_expression(std::string_view expression) {
  return Arithmetic(expression, [](std::string_view) { return Number(); }).value();
}

std::optional<std::int64_t> Shell::arithmetic(std::string_view raw) {
  const std::string text = document_of(raw);
  if (is_unknown(text)) return std::nullopt;
  constexpr int deepest = 16;
  return Arithmetic(text,
                    [this](std::string_view name) -> Number {
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

// "N = 4", "N *= 2", or a value: of let and (( )).
Shell::Status Shell::compute(std::string_view text) {
  text = trim(text);
  const std::string_view name = text.substr(0, name_length(text));
  const std::size_t equals = std::min(text.find_first_not_of(" \t+-*/%", name.size()), text.size());
  const bool assigns = !name.empty() && text.substr(equals).starts_with('=') && text.substr(equals, 2) != "==";
  const std::string_view right = assigns ? text.substr(equals + 1) : text,
                         op = trim(text.substr(name.size(), equals - name.size()));
  const Number value =
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
  if (std::ranges::any_of(words, is_unknown)) return std::nullopt;
  if (words.size() == 1) return !words.front().empty();
  if (of_length) return words[1].empty() == (words[0] == "-z");
  if (words.size() != 3) return std::nullopt;
  const std::string& op = words[1];
  if (op == "=" || op == "==" || op == "!=") {
    const bool same = double_brackets ? matches_pattern(words[0], words[2]) : words[0] == words[2];
    return same == (op != "!=");
  }
  const auto a = number_in<Integer>(words[0]), b = number_in<Integer>(words[2]);
  const auto compares = mapped("-eq===|-ne=!=|-lt=<|-le=<=|-gt=>|-ge=>=|<=<|>=>", op);
  if (!a || !b || !compares) return std::nullopt;
  return integer_expression(fmt::format("{} {} {}", *a, *compares, *b)) == 1;
}

bool matches_pattern(const std::string& text, const std::string& pattern) {
  return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

}  // namespace harness::evidence
