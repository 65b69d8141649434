#include "report/page/escape.h"

#include "report/clean_text.h"

namespace harness::page {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : report::cleaned(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace harness::page
