#pragma once

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "base/text.h"
#include "report/sections.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/sample_files.h"
#include "support/sample_results.h"

namespace harness::test {

/// Compares with tests/report/golden/NAME; HARNESS_UPDATE_GOLDEN=1 writes it instead.
inline void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = source_dir() + "/tests/report/golden/" + name;
  if (std::getenv("HARNESS_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << text;
    return;
  }
  ASSERT_TRUE(std::filesystem::exists(path)) << path << " is missing: run with HARNESS_UPDATE_GOLDEN=1";
  EXPECT_EQ(text, text_of(path)) << "differs from " << path;
}

/// The report of `compare` on the files of one test.
struct ComparedFiles : SampleFiles {
  report::CompareReport report;

  /// Adds a result as on a machine where every step takes `factor` times as long.
  void add(const std::string& label, store::Result result, double factor = 1) {
    report.files.push_back(SampleFiles::add(label, samples::scaled(std::move(result), factor)));
  }
  void find_reservations() {
    report.differences = analysis::find_differences(report.files);
    report.incomparable = analysis::why_incomparable(report.files);
    report.unreliable = analysis::why_unreliable(report.files);
  }
  /// Compares the first files with the others.
  void compare(std::size_t first) {
    const std::span<const analysis::ComparedFile> all(report.files);
    find_reservations();
    report.answer = analysis::compare_sides(all.first(first), all.subspan(first));
  }
  /// Asks whether the first file's changes reproduce in the last.
  void reproduce() { report.answer = analysis::reproduce(report.files.front(), report.files.back()); }
  void pool() {
    find_reservations();
    report.answer = analysis::pool_runs(report.files);
  }
};

}  // namespace harness::test

namespace harness::report {

enum class Format { text, md, csv, json };

inline std::string write(const Document& document, Format format) {
  return format == Format::md ? write_markdown(document) : write_text(document);
}

inline std::string show(const store::Result& result, const analysis::Summary& summary, Format format,
                        const std::optional<analysis::CostEstimate>& cost = {}, Detail detail = Detail::brief) {
  if (format == Format::csv) return show_csv(result, summary);
  if (format == Format::json) return show_json(result, summary, cost);
  return write(show_document(result, summary, cost, detail), format);
}

/// Returns the full output of `show -v`.
inline std::string shown(const store::Result& result, Format format = Format::text) {
  return show(result, analysis::summarise(result), format, {}, Detail::full);
}
inline nlohmann::json json_of(const store::Result& result) {
  return nlohmann::json::parse(shown(result, Format::json));
}

inline std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  for (const std::string& line : split_text(text, "\n")) widest = std::max(widest, columns_of(line));
  return widest;
}

inline Document with_section(Section section) {
  Document document;
  document.sections.push_back(std::move(section));
  return document;
}

/// Returns the first line of a report.
inline std::string said(const store::Result& result) {
  return headline(result, analysis::summarise(result));
}

inline std::string show(const CompareReport& report, Format format) {
  return format == Format::json ? compare_json(report) : write(compare_document(report, true), format);
}

}  // namespace harness::report
