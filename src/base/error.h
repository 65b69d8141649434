#pragma once

#ifndef __CUDACC__  // nvcc 13.0 cannot read fmt 9 in C++20: sources for it throw Error themselves
#include <fmt/format.h>
#endif

#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace harness {

/// A failure with a message for the person at the terminal: what happened, where, what was expected, what to do.
/// Nothing else is printed for it. `exit_code` is what the program ends with if nobody handles it.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, int exit_code = 1) : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

std::string escaped(std::string_view text);  // base/text.h

#ifndef __CUDACC__
/// An argument of a message. A text that came from outside (a path, a name, a line of a file) must not end the line
/// that it stands in; what() of another Error may have several, and is a const char*.
template <class T>
decltype(auto) in_one_line(const T& argument) {
  if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::string_view>) {
    return escaped(argument);
  } else {
    return (argument);
  }
}

/// Throws Error. The lines of the message are those of `format`: texts among the arguments come escaped().
template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(fmt::runtime(format), in_one_line(args)...));
}
#endif

}  // namespace harness
