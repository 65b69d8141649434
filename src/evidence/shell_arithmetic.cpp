#include <algorithm>
#include <array>

#include "base/text.h"
#include "evidence/input.h"
#include "evidence/shell.h"

// Shell arithmetic: $(( )), let, indices.

namespace harness::evidence {
namespace {

using Integer = std::int64_t;
using Number = std::optional<Integer>;  // nothing if a part is unknown, not understood or too large

__extension__ using Wide = __int128;  // holds any sum, difference or product of two integers
Number in_range(Wide n) {
  return n == static_cast<Integer>(n) ? Number(static_cast<Integer>(n)) : std::nullopt;
}
Number power(Integer a, Integer b) {
  constexpr Integer most = 62;
  if (b < 0 || b > most || a < 0) return std::nullopt;
  Number out = 1;
  for (Integer i = 0; i < b && out; ++i) out = in_range(Wide{*out} * a);
  return out;
}

// "0x1f" is hexadecimal, and "010" octal.
Number literal(Text word) {
  constexpr int hexadecimal = 16, octal = 8, decimal = 10;
  if (word.starts_with("0x") || word.starts_with("0X")) return number_in<Integer>(word.substr(2), hexadecimal);
  return number_in<Integer>(word, word.size() > 1 && word[0] == '0' ? octal : decimal);
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
    {"+", 5, [](Integer a, Integer b) { return in_range(Wide{a} + b); }},
    {"-", 5, [](Integer a, Integer b) { return in_range(Wide{a} - b); }},
    {"**", 7, power},
    {"*", 6, [](Integer a, Integer b) { return in_range(Wide{a} * b); }},
    {"/", 6, [](Integer a, Integer b) { return b == 0 ? std::nullopt : in_range(Wide{a} / b); }},
    {"%", 6, [](Integer a, Integer b) { return b == 0 ? std::nullopt : in_range(Wide{a} % b); }},
}};

/// Evaluates integers as a shell does.
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
      constexpr int tightest = 8;  // a sign binds tighter than any operator
      rest_.remove_prefix(1);
      const Number inside = binary(c == '(' ? 0 : tightest);
      if (c == '(') {
        blank();
        if (!rest_.starts_with(')')) return std::nullopt;
        rest_.remove_prefix(1);
      }
      if (!inside || c == '+' || c == '(') return inside;
      return c == '-' ? in_range(-Wide{*inside}) : Number(*inside == 0);
    }
    const auto end = static_cast<std::size_t>(std::ranges::find_if_not(rest_, is_name_character) - rest_.begin());
    const Text word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    if (word.empty()) return std::nullopt;
    return name_length(word) > 0 ? lookup_(word) : literal(word);
  }

  Text rest_;
  Lookup lookup_;
  int depth_ = 0;
};

}  // namespace

std::optional<std::int64_t> integer_expression(Text expression) {
  return Arithmetic(expression, [](Text) { return Number(); }).value();
}

// expr takes each number as a word of its own, and all of them as decimal.
std::optional<std::int64_t> result_of_expr(Text command) {
  std::string expression;
  for (const Text word : words_of(command.substr(Text("expr").size()))) {
    const Number number = number_in<Integer>(word);
    const bool sign = word.size() == 1 && contains("+-*/%()", word);
    if (!number && !sign) return std::nullopt;
    expression += fmt::format(" {}", number ? std::to_string(*number) : std::string(word));
  }
  return integer_expression(expression);
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

}  // namespace harness::evidence
