#include "report/clean_text.h"

#include <algorithm>
#include <cstdint>
#include <sstream>

#include "base/text.h"

namespace harness::report {
namespace {

// Every character that is wanted, through `keep`; what is not UTF-8 as `broken`.
template <class Keep>
std::string filtered(std::string_view text, std::string_view broken, Keep keep) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const Character c = character_at(text, i);
    if (c.bytes == 0) {
      out += broken;
      ++i;
      continue;
    }
    out += keep(c.code, text.substr(i, c.bytes));
    i += c.bytes;
  }
  return out;
}

}  // namespace

std::size_t columns_of(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, continues_character));
}

std::string one_line(std::string_view text) {
  return filtered(text, "?", [](std::uint32_t code, std::string_view character) {
    return is_unprintable(code) ? std::string_view(" ") : character;
  });
}

std::string cleaned(std::string_view text) {
  return filtered(text, "\uFFFD", [](std::uint32_t code, std::string_view character) {
    const bool layout = code == '\n' || code == '\t';
    return is_unprintable(code) && !layout ? std::string_view() : character;
  });
}

std::string escaped_markup(std::string_view text) {
  return replaced(cleaned(text), {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}});
}

std::string inline_markdown(std::string_view text) {
  return replaced(cleaned(text), {{'\n', " "},
                                  {'\t', " "},
                                  {'<', "&lt;"},
                                  {'&', "&amp;"},
                                  {'\\', "\\\\"},
                                  {'`', "\\`"},
                                  {'[', "\\["},
                                  {']', "\\]"},
                                  {'*', "\\*"},
                                  {'|', "\\|"}});
}

std::string wrapped(std::string_view paragraph, std::size_t width, std::size_t indent) {
  std::istringstream words(one_line(paragraph));
  std::string out, line;
  for (std::string word; words >> word;) {
    if (words >> std::ws && words.peek() == '%') {  // a number and its sign stay together
      std::string sign;
      words >> sign;
      word += " " + sign;
    }
    if (!line.empty() && columns_of(line) + 1 + columns_of(word) > width) {
      out += line + '\n';
      line = std::string(indent, ' ') + word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
  }
  return out + line + '\n';
}

}  // namespace harness::report
