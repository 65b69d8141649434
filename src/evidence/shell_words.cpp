#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"
#include "evidence/lines.h"
#include "evidence/shell.h"

// Words of a script and what they stand for: quotes, variables, arithmetic and tests.

namespace harness::evidence {
namespace {

constexpr char mark_begins = '\x01', mark_ends = '\x02';
constexpr std::string_view blanks = " \t\n";
constexpr const char *given = "is given to the script", *left_open = "is not set in this script";

// The mark within a text, for a text that takes its place.
std::string mark_in(std::string_view text) {
  const std::size_t begin = text.find(mark_begins);
  return std::string(text.substr(begin, text.find(mark_ends, begin) + 1 - begin));
}

// $'…': "\n" and "\t" are characters, and so are "\x2d" and "\055" by
// their number; any other one is itself.
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const bool escapes = text[i] == '\\' && i + 1 < text.size();
    i += escapes ? 1 : 0;
    const bool hex = escapes && text[i] == 'x';
    const std::string_view number = text.substr(i + (hex ? 1 : 0), hex ? 2 : 3);
    const std::size_t digits =
        std::min(number.find_first_not_of(hex ? "0123456789abcdefABCDEF" : "01234567"), number.size());
    if (escapes && digits > 0) {
      const unsigned code = number_in<unsigned>(number.substr(0, digits), hex ? 16 : 8).value_or(0) & 0xffu;
      if (code >= ' ') out += static_cast<char>(code);  // others would be taken for marks
      i += digits + (hex ? 1 : 0);
    } else {
      const char c = text[i++];
      const char as_it_is = escapes && c == 't' ? '\t' : c;
      out += escapes && c == 'n' ? '\n' : as_it_is;
    }
  }
  return out;
}

// ${x,}, ${x^^}: `op` is the character.
std::string in_case(std::string text, char op, bool all) {
  for (std::size_t i = 0; i < (all ? text.size() : std::min<std::size_t>(text.size(), 1)); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    text[i] = static_cast<char>(op == ',' ? std::tolower(c) : std::toupper(c));
  }
  return text;
}

// ${x%pattern}, ${x##pattern}: without the shortest or longest end or beginning that matches.
std::string without_end(const std::string& text, const std::string& pattern, bool from_end, bool longest) {
  for (std::size_t n = 0; n <= text.size(); ++n) {
    const std::size_t length = longest ? text.size() - n : n;
    const std::string part = text.substr(from_end ? text.size() - length : 0, length);
    if (matches_pattern(part, pattern)) return from_end ? text.substr(0, text.size() - length) : text.substr(length);
  }
  return text;
}

// ${x:from:length}, of characters or of items; below zero they count from the end.
template <class T>
T slice(const T& whole, std::int64_t from, std::int64_t length) {
  const std::int64_t n = std::ssize(whole), begin = std::clamp<std::int64_t>(from < 0 ? n + from : from, 0, n);
  const std::int64_t end = length < 0 ? n + length : begin + std::min(length, n - begin);
  return T(whole.begin() + begin, whole.begin() + std::max(begin, end));
}

}  // namespace

bool is_unknown(std::string_view word) {
  return word.find(mark_begins) != std::string_view::npos;
}

std::string Shell::unknown(const std::string& why) {
  std::size_t index = static_cast<std::size_t>(std::ranges::find(reasons_, why) - reasons_.begin());
  constexpr std::size_t most = 1000;
  if (index == reasons_.size()) {
    if (index < most) {
      reasons_.push_back(why);
    } else {
      index = most - 1;
    }
  }
  return fmt::format("{}{}{}", mark_begins, index, mark_ends);
}

std::string Shell::why_unknown(std::string_view word) const {
  if (!is_unknown(word)) return "";
  const std::string mark = mark_in(word);
  const auto index = number_in<std::size_t>(std::string_view(mark).substr(1, mark.size() - 2));
  return index && *index < reasons_.size() ? reasons_[*index] : "it is not known";
}

bool Shell::is_left_open(std::string_view word) const {
  const std::string why = why_unknown(word);
  constexpr std::array<std::string_view, 4> launchers{" SLURM_", " PBS_", " OMPI_", " LSB_"};  // they do set theirs
  return (why.ends_with(given) || why.ends_with(left_open)) && word == mark_in(word) &&
         std::ranges::none_of(launchers, [&](std::string_view name) { return contains(why, name); });
}

/// Makes words of what stands in a script, as bash does: unquoted values are split at blanks.
class ShellExpansion {
 public:
  ShellExpansion(Shell& shell, bool splits) : shell_(shell), splits_(splits) {}

  void add(std::string_view raw, bool quoted = false) {
    constexpr int deepest = 32;
    if (++shell_.nesting_ > deepest) fail("line {}: it is nested more than {} deep", shell_.line_, deepest);
    add_parts(raw, quoted);
    --shell_.nesting_;
  }
  std::vector<std::string> words() {
    end_word();
    return std::move(words_);
  }
  std::string text() { return std::move(word_); }

 private:
  void add_parts(std::string_view raw, bool quoted) {
    for (std::size_t i = 0; i < raw.size();) {
      const char c = raw[i];
      if (c == '\\') {
        const bool kept = quoted && i + 1 < raw.size() && std::string_view("$`\"\\\n").find(raw[i + 1]) == raw.npos;
        if (kept) literal("\\");
        if (i + 1 < raw.size() && raw[i + 1] != '\n') literal(raw.substr(i + 1, 1));
        i += 2;
        continue;
      }
      const bool special = c == '$' || c == '`' || (!quoted && (c == '\'' || c == '"'));
      if (!special) {
        const std::size_t end = std::min(raw.find_first_of("\\$`'\"", i + 1), raw.size());
        literal(raw.substr(i, end - i));
        i = end;
        continue;
      }
      const bool plain = quoted && raw.substr(i).starts_with("$'");
      const std::size_t length = plain ? 1 : shell_span(raw, i);
      const std::string_view part = raw.substr(i, length);
      i += length;
      if (c == '\'') {
        literal(part.substr(1, part.size() - (part.size() > 1 && part.ends_with('\'') ? 2 : 1)));
      } else if (c == '"') {
        open_ = true;
        add(part.substr(1, part.size() - (part.size() > 1 && part.ends_with('"') ? 2 : 1)), true);
      } else if (c == '`') {
        value(command_output(), quoted);
      } else {
        i += dollar(part, raw.substr(i), quoted);
      }
    }
  }
  void literal(std::string_view text) {
    shell_.spend(text.size());
    word_ += text;
    open_ = true;
  }
  void value(std::string_view text, bool quoted) {
    if (quoted || !splits_) return literal(text);
    shell_.spend(text.size());
    while (!text.empty()) {
      const std::size_t end = text.find_first_of(blanks);
      if (end > 0) literal(text.substr(0, end));
      if (end == std::string_view::npos) return;
      end_word();
      text.remove_prefix(std::min(text.find_first_not_of(blanks, end), text.size()));
    }
  }
  void end_word() {
    if (open_) words_.push_back(std::move(word_));
    word_.clear();
    open_ = false;
  }
  std::string command_output() {
    return shell_.unknown(shell_.assigning_.empty()
                              ? fmt::format("line {}: the output of a command", shell_.line_)
                              : fmt::format("line {}: {} is a command's output", shell_.line_, shell_.assigning_));
  }
  void list(const std::vector<std::string>& items, bool quoted, bool joined) {
    if (joined) return value(join(items, " "), quoted);
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0 && splits_) end_word();
      if (i > 0 && !splits_) literal(" ");
      value(items[i], quoted);
    }
  }

  // Returns how much of `rest` belongs to it as well: the name behind a bare dollar.
  std::size_t dollar(std::string_view part, std::string_view rest, bool quoted) {
    if (part.starts_with("$((")) {
      const std::string_view inside = part.substr(3, part.size() - std::min<std::size_t>(part.size(), 5));
      const auto number = shell_.arithmetic(inside);
      value(number ? std::to_string(*number) : shell_.unknown_of(inside), quoted);
      return 0;
    }
    if (part.starts_with("$(")) {
      value(command_output(), quoted);
      return 0;
    }
    if (part.starts_with("$'")) {
      literal(unescaped(part.substr(2, part.size() - std::min<std::size_t>(part.size(), 3))));
      return 0;
    }
    if (part.starts_with("${")) {
      parameter(part.substr(2, part.size() - std::min<std::size_t>(part.size(), 3)), quoted);
      return 0;
    }
    std::size_t length = name_length(rest);
    if (length == 0 && !rest.empty() && std::string_view("0123456789@*#?$!-").find(rest[0]) != rest.npos) length = 1;
    if (length == 0) {
      literal("$");
      return 0;
    }
    parameter(rest.substr(0, length), quoted);
    return length;
  }

  // The values of "NAME", "NAME[i]", "NAME[@]", "1", "@"; nothing where it is not set.
  std::optional<std::vector<std::string>> values(std::string_view name, std::string_view index) {
    const bool all = index == "@" || index == "*";
    if (name == "@" || name == "*") {
      if (shell_.state_.arguments) return *shell_.state_.arguments;
      return std::nullopt;
    }
    if (const auto number = number_in<std::size_t>(name)) {
      const auto& arguments = shell_.state_.arguments;
      if (*number == 0 || !arguments || *number > arguments->size()) return std::nullopt;
      return std::vector{(*arguments)[*number - 1]};
    }
    const Shell::Variable* found = shell_.find(name);
    if (found == nullptr) return std::nullopt;
    if (all) return found->items;
    const auto at = index.empty() ? std::optional<std::int64_t>(0) : shell_.arithmetic(index);
    if (!at) return std::vector{shell_.unknown_of(index)};
    const auto n = *at < 0 ? *at + std::ssize(found->items) : *at;
    if (n < 0 || n >= std::ssize(found->items)) return std::nullopt;
    return std::vector{found->items[static_cast<std::size_t>(n)]};
  }
  std::string not_set(std::string_view name) {
    const bool argument = !name.empty() && (std::isdigit(static_cast<unsigned char>(name[0])) != 0 || name == "@" ||
                                            name == "*" || name == "#");
    return shell_.unknown(argument ? fmt::format("line {}: ${} {}", shell_.line_, name, given)
                                   : fmt::format("line {}: {} {}", shell_.line_, name, left_open));
  }

  void parameter(std::string_view inside, bool quoted) {
    if (inside == "#") {
      const auto& arguments = shell_.state_.arguments;
      return value(arguments ? std::to_string(arguments->size()) : not_set("#"), quoted);
    }
    const bool counts = inside.size() > 1 && inside[0] == '#';
    if (counts) inside.remove_prefix(1);
    std::size_t length = name_length(inside);
    if (length == 0 && !inside.empty())
      length = std::isdigit(static_cast<unsigned char>(inside[0])) != 0
                   ? std::min(inside.find_first_not_of("0123456789"), inside.size())
                   : 1;
    const std::string_view name = inside.substr(0, length);
    std::string_view op = inside.substr(length), index = name == "@" || name == "*" ? name : std::string_view();
    if (op.starts_with('[')) {
      const std::size_t close = std::min(op.find(']'), op.size() - 1);
      index = op.substr(1, close - 1);
      op.remove_prefix(close + 1);
    }
    const bool all = index == "@" || index == "*";
    auto found = values(name, index);
    if (counts) {
      if (!found) return value(not_set(name), quoted);
      for (const std::string& item : *found) {
        if (is_unknown(item)) return value(mark_in(item), quoted);
      }
      return value(std::to_string(all ? found->size() : found->front().size()), quoted);
    }
    const bool colon = op.starts_with(':') && op.size() > 1 && std::string_view("-=?+").find(op[1]) != op.npos;
    if (colon) op.remove_prefix(1);
    const bool empty = !found || (colon && join(*found, "").empty());
    const char first = op.empty() ? '\0' : op[0];
    if (first == '-' || first == '=' || first == '+') {
      if (empty != (first == '+')) {
        if (first == '=' && !name.empty()) shell_.set(std::string(name), shell_.text_of(op.substr(1)), false);
        return add(op.substr(1), quoted);
      }
      if (first == '+') return;
    } else if (!found) {
      if (all && shell_.find(name) != nullptr) return;
      return list({not_set(name)}, quoted, false);
    } else if (first == ':') {
      const std::size_t second = std::min(op.find(':', 1), op.size());
      const auto from = shell_.arithmetic(op.substr(1, second - 1));
      const auto count = second < op.size() ? shell_.arithmetic(op.substr(second + 1)) : INT64_MAX;
      const std::string cut = join(*found, " ");
      if (!from || !count || is_unknown(cut)) return value(shell_.unknown_of(cut + std::string(op.substr(1))), quoted);
      const bool counts_from_one = index == name && *from > 0;  // "$@"
      if (all) found = slice(*found, *from - (counts_from_one ? 1 : 0), *count);
      if (!all) found->front() = slice(found->front(), *from, *count);
    } else if (!op.empty() && first != '?') {
      for (std::string& item : *found) item = changed(item, op);
    }
    list(*found, quoted, index == "*" && quoted);
  }

  std::string changed(const std::string& text, std::string_view op) {
    if (is_unknown(text)) return mark_in(text);
    constexpr std::size_t most = 4096;
    if (text.size() > most) return shell_.unknown(fmt::format("line {}: a long text that is cut", shell_.line_));
    const bool twice = op.size() > 1 && op[1] == op[0];
    const std::string_view rest = op.substr(twice ? 2 : 1);
    if (op[0] == '%' || op[0] == '#') shell_.spend(text.size() * text.size());  // each length is tried
    const auto pattern = [&](std::string_view raw) { return shell_.text_of(raw); };
    switch (op[0]) {
      case '%':
      case '#':
        return without_end(text, pattern(rest), op[0] == '%', twice);
      case '/': {  // ${x/a/b}, ${x//a/b}, ${x/#a/b} and ${x/%a/b} at one end
        const bool first = !twice && rest.starts_with('#'), last = !twice && rest.starts_with('%');
        std::size_t end = 0;
        while (end < rest.size() && rest[end] != '/') {
          const bool spans = std::string_view("$'\"`").find(rest[end]) != rest.npos;
          const std::size_t own = rest[end] == '\\' ? 2 : 1;
          end += spans ? shell_span(rest, end) : own;
        }
        end = std::min(end, rest.size());
        const std::string a = pattern(rest.substr(first || last ? 1 : 0, end - (first || last ? 1 : 0))),
                          b = pattern(rest.substr(std::min(end + 1, rest.size())));
        if (is_unknown(a + b)) return mark_in(a + b);
        if (a.empty() && !first && !last) return text;
        const auto places = shell_.places(text, (first ? "^" : "") + expression_of(a) + (last ? "$" : ""), twice);
        if (!places) break;
        shell_.spend(places->size() * b.size());
        std::string out;
        std::size_t at = 0;
        for (const auto& [from, to] : *places) {
          out.append(text, at, from - at) += b;
          at = to;
        }
        return out.append(text, at);
      }
      case ',':
      case '^':
        return in_case(text, op[0], twice);
      default:
        break;
    }
    return shell_.unknown(fmt::format("line {}: ${{…{}}}", shell_.line_, op.substr(0, 20)));
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

std::string Shell::text_of(std::string_view raw) {
  ShellExpansion expansion(*this, false);
  expansion.add(raw);
  return expansion.text();
}

std::string Shell::document_of(std::string_view raw) {
  ShellExpansion expansion(*this, false);
  expansion.add(raw, true);
  return expansion.text();
}

// A mark for what hangs on a text whose variables are not all known.
std::string Shell::unknown_of(std::string_view raw) {
  const std::string text = text_of(raw);
  if (is_unknown(text)) return mark_in(text);
  for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(1)) {
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
