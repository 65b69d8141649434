#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/hardware.h"

namespace harness::evidence {

/// A JSON value. Objects keep the order of their keys.
using Value = nlohmann::ordered_json;

/// The result of reading one piece of evidence: a file, or several files that belong together. Texts may contain raw
/// bytes of the files; the writers escape them.
struct Answer {
  std::string object;              // key in the JSON output: "bandwidths", "nccl", "log", …
  std::string kind;                // "nccl-tests", "training log", …
  std::vector<std::string> files;  // paths as given
  std::string headline;
  std::vector<std::pair<std::string, Value>> facts;           // for JSON; keys are unique
  std::vector<std::pair<std::string, std::string>> evidence;  // for display: label and text, most telling first
  std::vector<std::string> problems;                          // each with its remedy
  std::vector<std::string> cannot;                            // settings that harness cannot express
  std::vector<std::string> refused;                           // parts that were not read, with their location
  std::vector<std::string> notes;                             // how to read the numbers
  std::vector<std::string> next;                              // commands to paste
  Value members = {};                                         // further members of its JSON object
  std::string configuration;  // harness configuration with this job as its baseline; "": none
  std::string calibration;    // calibration for predictions of it; "": no particular one

  /// Creates an answer whose first fact is its kind.
  static Answer of(std::string object, std::string kind) {
    Answer out;
    out.object = std::move(object);
    out.kind = std::move(kind);
    out.fact("kind", out.kind);
    return out;
  }
  void fact(std::string key, Value value) { facts.emplace_back(std::move(key), std::move(value)); }
  void tell(std::string label, std::string text) { evidence.emplace_back(std::move(label), std::move(text)); }
  /// Adds a text both as a fact and as evidence; does nothing if the text is empty.
  void fact_and_tell(std::string key, std::string label, std::string text) {
    if (text.empty()) return;
    tell(std::move(label), text);
    fact(std::move(key), std::move(text));
  }
  /// Adds "text: remedy" to the problems; only the first ten are kept. `text` becomes the headline if there is none
  /// yet.
  void problem(const std::string& text, const std::string& remedy) {
    constexpr std::size_t most = 10;
    if (headline.empty()) headline = text;
    if (problems.size() < most) problems.push_back(text + ": " + remedy);
  }
};

/// Values that the user supplies because the files lack them: --set ranks=16. 0 and "": not given.
struct Gaps {
  std::int64_t ranks = 0, global_batch_size = 0;
  std::string hardware = {};                                     // name of a hardware file
  std::vector<std::pair<std::string, std::string>> others = {};  // other job settings, by configuration name
  std::vector<std::string> typed = {};                           // all of these as options of `read`
};

/// Returns the hardware that the user names, otherwise that of the GPU as a log or test names it ("H100 80GB HBM3").
/// Returns nothing if the GPU is not known or one of the user's own hardware files cannot be read.
std::optional<config::Hardware> hardware_of(const std::string& gpu, const Gaps& gaps);

/// Reads files of any known kind, recognised by content; "-" is standard input. Files that belong together (NCCL logs,
/// dumps of several ranks) become one answer, and two bandwidth tests are compared. Executes nothing and opens no other
/// file. Answers are ordered by subject: the step, collectives, NCCL, devices. Throws Error if a file cannot be read,
/// is damaged or is not recognised. With several files, throws only if none can be read; otherwise `refused` of the
/// first answer names the failed ones.
std::vector<Answer> read_files(const std::vector<std::string>& paths, const Gaps& gaps);

}  // namespace harness::evidence
