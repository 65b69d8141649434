#include <algorithm>
#include <array>

#include "base/text.h"
#include "evidence/input.h"
#include "evidence/shell.h"

// Expands the words of a script: quotes and variables.

namespace harness::evidence {
namespace {

constexpr char mark_begins = '\x01', mark_ends = '\x02';
constexpr Text blanks = " \t\n";
constexpr const char *given = "is given to the script", *left_open = "is not set in this script";

// Returns the mark within a text, for a text that replaces it.
std::string mark_in(Text text) {
  const std::size_t begin = text.find(mark_begins);
  return std::string(text.substr(begin, text.find(mark_ends, begin) + 1 - begin));
}

// $'…': "\n" and "\t" are special, any other character stands for itself.
std::string unescaped(Text text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escapes = text[i] == '\\' && i + 1 < text.size();
    const char c = text[escapes ? ++i : i];
    const char blank = c == 'n' ? '\n' : '\t';
    out += escapes && (c == 'n' || c == 't') ? blank : c;
  }
  return out;
}

// ${x%pattern}, ${x##pattern}: removes the shortest or longest matching end or beginning.
std::string without_end(const std::string& text, const std::string& pattern, bool from_end, bool longest) {
  for (std::size_t n = 0; n <= text.size(); ++n) {
    const std::size_t length = longest ? text.size() - n : n;
    const std::string part = text.substr(from_end ? text.size() - length : 0, length);
    if (matches_pattern(part, pattern)) return from_end ? text.substr(0, text.size() - length) : text.substr(length);
  }
  return text;
}

// ${x:from:length}, in characters or items; negative values count from the end.
template <class T>
T slice(const T& whole, std::int64_t from, std::int64_t length) {
  const std::int64_t n = std::ssize(whole), begin = std::clamp<std::int64_t>(from < 0 ? n + from : from, 0, n);
  const std::int64_t end = length < 0 ? n + length : begin + std::min(length, n - begin);
  return T(whole.begin() + begin, whole.begin() + std::max(begin, end));
}

// Returns the length of the "[key]=" that begins an item of "([a]=1 [b]=2)"; 0: it has none.
std::size_t key_length(Text item) {
  const std::size_t end = item.starts_with('[') ? item.find("]=") : Text::npos;
  return end == Text::npos ? 0 : end + 2;
}

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
  constexpr std::array<Text, 4> launchers{" SLURM_", " PBS_", " OMPI_", " LSB_"};  // set by launchers
  return (why.ends_with(given) || why.ends_with(left_open)) && word == mark_in(word) &&
         std::ranges::none_of(launchers, [&](Text name) { return contains(why, name); });
}

/// Expands script text into words as bash does: unquoted values are split at blanks.
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
  // Adds the first part of a text and returns its length.
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
      const auto number = shell_.computed(inside(3, 2));
      value(number ? std::to_string(*number) : shell_.unknown_of(inside(3, 2)), quoted);
    } else if (c == '`' || span.starts_with("$(")) {
      value(command_output(inside(c == '`' ? 1 : 2, 1)), quoted);
    } else if (span.starts_with("$'")) {
      literal(unescaped(inside(2, 1)));
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
  std::string command_output(Text command) {
    const Text plain = trim(command);
    if (auto text = shell_.output_of_cat(plain)) return *text;
    if (plain.starts_with("expr ")) {
      const std::string text = shell_.text_of(plain);
      if (is_unknown(text)) return mark_in(text);
      if (const auto number = result_of_expr(text)) return std::to_string(*number);
    }
    return unknown(shell_.assigning_.empty() ? "the output of a command"
                                             : fmt::format("{} is a command's output", shell_.assigning_));
  }
  std::string not_set(Text name) {
    const bool argument = contains("0123456789@*#", name.substr(0, 1));
    return unknown(argument ? fmt::format("${} {}", name, given) : fmt::format("{} {}", name, left_open));
  }

  // Returns the values of "NAME", "NAME[i]", "NAME[@]", "1", "@", "#"; nothing if not set.
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
    const bool all = index == "@" || index == "*";
    if (found->array && std::ranges::any_of(found->items, [](Text item) { return key_length(item) > 0; }))
      return keyed(found->items, all, index);
    const bool assigned_by_item = !found->array && !found->items.empty() && is_unknown(found->items.front());
    if (all || assigned_by_item) return found->items;
    const auto at = index.empty() ? std::optional<std::int64_t>(0) : shell_.arithmetic(index);
    if (!at) return std::vector{shell_.unknown_of(index)};
    const std::int64_t n = *at < 0 ? *at + std::ssize(found->items) : *at;
    if (n < 0 || n >= std::ssize(found->items)) return std::nullopt;
    return std::vector{found->items[static_cast<std::size_t>(n)]};
  }

  // Returns the values of an array that is written with keys, or the one of a key.
  std::optional<std::vector<std::string>> keyed(std::vector<std::string> items, bool all, Text index) {
    if (!all) {
      const std::string key = index.empty() ? "0" : shell_.text_of(index);
      if (is_unknown(key)) return std::vector{mark_in(key)};
      std::erase_if(items, [&](const std::string& item) { return !item.starts_with(fmt::format("[{}]=", key)); });
      if (items.empty()) return std::nullopt;
      items = {items.back()};
    }
    for (std::string& item : items) item.erase(0, key_length(item));
    return items;
  }

  // Expands the text between the braces of "${…}".
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
    } else if (first == ':') {
      found = part_of(*found, op.substr(1), all, index == name);
    } else if (!op.empty() && first != '?') {
      for (std::string& item : *found) item = changed(item, op);
    }
    if (index == "*" && quoted) return value(join(*found, " "), true);
    list(*found, quoted);
  }

  static std::string count(const std::vector<std::string>& found, bool all) {
    const auto unknown_item = std::ranges::find_if(found, is_unknown);
    if (unknown_item != found.end()) return mark_in(*unknown_item);
    return std::to_string(all ? found.size() : found.front().size());
  }
  // ${x:from:length}; "$@" counts from one.
  std::vector<std::string> part_of(std::vector<std::string> found, Text op, bool all, bool arguments) {
    const std::size_t second = std::min(op.find(':'), op.size());
    const auto from = shell_.arithmetic(op.substr(0, second));
    const auto length = second < op.size() ? shell_.arithmetic(op.substr(second + 1)) : INT64_MAX;
    const std::string whole = join(found, " ");
    if (!from || !length || is_unknown(whole)) return {shell_.unknown_of(whole + std::string(op))};
    if (all) return slice(found, *from - (arguments && *from > 0 ? 1 : 0), *length);
    return {slice(found.front(), *from, *length)};
  }

  std::string changed(const std::string& text, Text op) {
    if (is_unknown(text)) return mark_in(text);
    constexpr std::size_t most = 4096;
    if (text.size() > most) return unknown("a long text that is cut");
    const bool twice = op.size() > 1 && op[1] == op[0];
    const Text rest = op.substr(twice ? 2 : 1);
    if (op[0] == '%' || op[0] == '#') {
      shell_.spend(text.size() * text.size());  // tries each length
      return without_end(text, shell_.text_of(rest), op[0] == '%', twice);
    }
    if (op[0] == '/') {
      if (const auto replaced = with_replaced(text, rest, twice)) return *replaced;
    } else if (twice && (op[0] == ',' || op[0] == '^')) {
      return op[0] == ',' ? lower(text) : upper(text);
    }
    return unknown(fmt::format("${{{}}}", op.substr(0, 20)));
  }

  // ${x/a/b} and, for all occurrences, ${x//a/b}; nothing for a pattern with wildcards.
  std::optional<std::string> with_replaced(std::string text, Text op, bool all) {
    std::size_t end = 0;
    while (end < op.size() && op[end] != '/') {
      const std::size_t own = op[end] == '\\' ? 2 : 1;
      end += contains("$'\"`", op.substr(end, 1)) ? shell_span(op, end) : own;
    }
    end = std::min(end, op.size());
    const std::string a = shell_.text_of(op.substr(0, end)),
                      b = shell_.text_of(op.substr(std::min(end + 1, op.size())));
    if (is_unknown(a + b)) return mark_in(a + b);
    if (a.empty() || a.find_first_of("*?[#%") != std::string::npos) return std::nullopt;
    for (std::size_t at = text.find(a); at != std::string::npos;
         at = all ? text.find(a, at + b.size()) : std::string::npos) {
      shell_.spend(text.size() + b.size());
      text.replace(at, a.size(), b);
    }
    return text;
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

// Returns a mark for a result that depends on unknown variables in a text.
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

std::string with_stars(Text word) {
  std::string text;
  for (; is_unknown(word); word.remove_prefix(std::min(word.find(mark_ends), word.size() - 1) + 1))
    text += fmt::format("{}*", word.substr(0, word.find(mark_begins)));
  return text + std::string(word);
}

// Follows "IFS=, read -r A B <<< TEXT": each name gets a part of the text, the last one the rest. With -d '' these are
// all its lines. Returns false if it reads something else. `before`: assignments in front of the command.
bool Shell::read_names(const std::vector<std::string>& words, const std::vector<ShellRedirect>& redirects,
                       const NameValues& before) {
  std::vector<std::string> names(words.begin() + 1, words.end());
  std::erase(names, "-r");
  const bool all = std::erase_if(names, [](Text name) { return name == "-d" || name == "-rd"; }) > 0;
  if (all) std::erase(names, "");
  const bool is_plain = !names.empty() && std::ranges::all_of(names, [](Text name) { return is_name(name); });
  if (!is_plain || redirects.size() != 1 || !redirects.front().here_document) return false;
  const Variable* set_before = find("IFS");
  std::string separators = value_of(before, "IFS");
  if (separators.empty() && set_before != nullptr) separators = join(set_before->items, "");
  if (separators.empty()) separators = blanks;
  const std::string text = text_of(redirects.front());
  if (!all && (is_unknown(text + separators) || text.find('\n') != Text::npos)) return false;
  Text rest = text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (separators.find(' ') != Text::npos) rest = trim(rest);
    const std::size_t end = i + 1 == names.size() ? Text::npos : rest.find_first_of(separators);
    set(names[i], std::string(rest.substr(0, end)), false);
    rest = end < rest.size() ? rest.substr(end + 1) : Text();
  }
  return true;
}

}  // namespace harness::evidence
