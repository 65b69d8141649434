#pragma once

#ifndef __CUDACC__  // nvcc 13.0 cannot read fmt 9 in C++20: sources for it throw Error themselves
#include <fmt/format.h>
#endif

#include <stdexcept>
#include <string>

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

#ifndef __CUDACC__
template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(format, std::forward<Args>(args)...));
}
#endif

}  // namespace harness
