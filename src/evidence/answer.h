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

/// A value of an answer, as JSON has it.
using Value = nlohmann::ordered_json;

/// One piece of evidence, read: a file, or several files that belong together. Texts may hold bytes of the
/// files as they are; the writers escape them.
struct Answer {
  std::string object;              // its name in JSON: "bandwidths", "nccl", "log", …
  std::string kind;                // "nccl-tests", "training log", …
  std::vector<std::string> files;  // as they were named
  std::string headline;
  std::vector<std::pair<std::string, Value>> facts;           // for JSON; a key once
  std::vector<std::pair<std::string, std::string>> evidence;  // for people: a label and a text, most telling first
  std::vector<std::string> problems;                          // what is wrong, each with what to do
  std::vector<std::string> cannot;                            // what harness cannot express
  std::vector<std::string> refused;                           // what was not read, and where it stands
  std::vector<std::string> notes;                             // how to read the numbers
  std::vector<std::string> next;                              // commands to paste
  Value members = {};                                         // further members of its JSON object
  std::string configuration;                                  // of harness, whose baseline is this job; "": none
  std::string calibration;                                    // that fits predictions of it; "": none in particular

  /// An answer of a kind, which is its first fact.
  static Answer of(std::string object, std::string kind) {
    Answer out;
    out.object = std::move(object);
    out.kind = std::move(kind);
    out.fact("kind", out.kind);
    return out;
  }
  void fact(std::string key, Value value) { facts.emplace_back(std::move(key), std::move(value)); }
  void tell(std::string label, std::string text) { evidence.emplace_back(std::move(label), std::move(text)); }
  /// A fact for people as well; nothing where there is none.
  void fact_and_tell(std::string key, std::string label, std::string text) {
    if (text.empty()) return;
    tell(std::move(label), text);
    fact(std::move(key), std::move(text));
  }
  /// Adds "text: remedy" to the problems, of which ten are kept. Where there is no headline yet, `text` is it.
  void problem(const std::string& text, const std::string& remedy) {
    constexpr std::size_t most = 10;
    if (headline.empty()) headline = text;
    if (problems.size() < most) problems.push_back(text + ": " + remedy);
  }
};

/// Gaps that the person fills: --set ranks=16. 0 and "": not given.
struct Gaps {
  std::int64_t ranks = 0, global_batch_size = 0;
  std::string hardware = {};                                     // a hardware file's name
  std::vector<std::pair<std::string, std::string>> others = {};  // of a job, by the names of configurations
  std::vector<std::string> typed = {};                           // all of them, as options of `read`
};

/// The hardware that the person names, else that of a GPU as a log or a test names it ("H100 80GB HBM3"); nothing where
/// it is not known, or a hardware file of the person's own cannot be read.
std::optional<config::Hardware> hardware_of(const std::string& gpu, const Gaps& gaps);

/// Reads files of any kind that is known, recognised by their content: "-" is the standard input. Files that belong
/// together (NCCL logs, dumps of several ranks) become one answer; two tests of bandwidth are compared. Nothing is
/// executed, and no other file is opened. Answers come in the order of what they say about: the step, collectives,
/// NCCL, devices. Throws Error for a file that cannot be read, that is
/// damaged or that is not recognised; of several files, only if none could be read: else `refused` of the first answer
/// names it.
std::vector<Answer> read_files(const std::vector<std::string>& paths, const Gaps& gaps);

}  // namespace harness::evidence
