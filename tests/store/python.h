#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "sample.h"

namespace harness {

inline std::pair<int, std::string> output_of(const std::string& command) {
  std::string output;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {-1, "popen failed"};
  char buffer[4096];
  for (std::size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.append(buffer, n);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

/// A Python that has these modules: HARNESS_TEST_PYTHON if set, else python3; "" if it lacks one.
inline std::string python_with(const std::vector<std::string>& modules) {
  const char* named = std::getenv("HARNESS_TEST_PYTHON");
  const std::string python = named != nullptr && *named != '\0' ? named : "python3";
  std::string imports;
  for (const auto& module : modules) imports += "import " + module + ";";
  return output_of("'" + python + "' -c '" + imports + "'").first == 0 ? python : "";
}

/// Runs a script; returns its exit status and what it printed.
inline std::pair<int, std::string> run_python(const std::string& python, const std::string& script,
                                              const std::vector<std::string>& arguments) {
  const TemporaryDirectory directory;
  const std::string path = directory / "script.py";
  std::ofstream(path) << script;
  std::string command = "'" + python + "' '" + path + "'";
  for (const auto& argument : arguments) command += " '" + argument + "'";
  return output_of(command);
}

}  // namespace harness
