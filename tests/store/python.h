#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "support/temporary_folder.h"

namespace harness::store {

inline std::pair<int, std::string> output_of(const std::string& command) {
  std::string output;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {-1, "popen failed"};
  char buffer[4096];
  for (std::size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.append(buffer, n);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

/// A Python that has these modules: HARNESS_TEST_PYTHON if set, else python3 of the path, else the distribution's;
/// "" if none has.
inline std::string python_with(const std::vector<std::string>& modules) {
  const char* named = std::getenv("HARNESS_TEST_PYTHON");
  std::vector<std::string> candidates{"python3", "/usr/bin/python3"};
  if (named != nullptr && *named != '\0') candidates = {named};
  std::string imports;
  for (const auto& module : modules) imports += "import " + module + ";";
  for (const auto& python : candidates) {
    if (output_of("'" + python + "' -c '" + imports + "' 2>&1").first == 0) return python;
  }
  return "";
}

/// Runs a script; returns its exit status and what it printed.
inline std::pair<int, std::string> run_python(const std::string& python, const std::string& script,
                                              const std::vector<std::string>& arguments) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("script.py", script);
  std::string command = "'" + python + "' '" + path + "'";
  for (const auto& argument : arguments) command += " '" + argument + "'";
  return output_of(command);
}

}  // namespace harness::store
