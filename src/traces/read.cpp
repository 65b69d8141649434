#include "traces/read.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <map>
#include <thread>

#include "base/text.h"
#include "evidence/input.h"
#include "traces/capture.h"

namespace harness::traces {
namespace {

constexpr std::string_view sqlite_mark = "SQLite format 3";
constexpr std::size_t most_kernels = 1000;  // kernel names kept per step

bool begins_like_json(std::string_view head) {
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (head[first] == '{' || head[first] == '[');
}

Capture read_capture(const std::string& path) {
  evidence::Input input(path);
  const std::string_view head = input.head();
  if (head.empty()) fail("{}: it is empty", quote(input.name()));
  if (head.starts_with(sqlite_mark)) {
    if (input.is_packed()) fail("{}: it is a packed database; unpack it first: gunzip FILE", quote(path));
    if (path == "-") fail("a database of Nsight Systems cannot be read from the standard input: give its file");
    return read_nsight(path);
  }
  if (!begins_like_json(head))
    fail(
        "{}: it is no trace; harness reads those of the PyTorch profiler (JSON) and exports of Nsight Systems (`nsys "
        "export --type sqlite FILE`)",
        quote(path));
  return read_kineto(input, input.name());
}

// `wanted`: the step of another GPU, shown if this one has it; without steps of its own, what it did in that time.
TracedGpu examine(const Capture& capture, const Device& device, const Window& wanted) {
  TracedGpu gpu;
  static_cast<Source&>(gpu) = capture;
  gpu.label = device.label;
  gpu.gpu = device.gpu;
  if (capture.format == own_format) gpu.rank = device.id;
  const Timeline timeline = timeline_of(device);
  gpu.whole = {"the whole trace", timeline.origin_ns, timeline.end_ns};
  const Measure measure(device, capture.names);
  gpu.windows = measure.of(windows_of(capture, device, timeline));
  gpu.steps = find_steps(capture, device, timeline, measure, wanted.name);
  const bool covers = gpu.whole.start_ns <= wanted.start_ns && wanted.end_ns <= gpu.whole.end_ns;
  if (gpu.steps.windows.empty() && covers && wanted.seconds() > 0) {
    gpu.steps = {.how = "the step of another GPU", .windows = {wanted}, .alike = {0}};
    if (wanted.name.empty()) gpu.steps.windows[0].name = gpu.steps.how;
  }
  gpu.shown = gpu.steps.windows.empty() ? gpu.whole : gpu.steps.windows[gpu.steps.shown];
  const std::vector<IdleTimes> idle_s = find_idle(capture, device, timeline, {gpu.whole, gpu.shown});
  gpu.idle_s = idle_s[0];
  gpu.work = work_in(gpu.shown, capture, device, timeline);
  gpu.work.idle_s = idle_s[1];
  gpu.kernels = measure.longest_in(gpu.shown, most_kernels);
  gpu.unclassified = kernels_without_class(device, capture.names);
  gpu.collectives = collectives_of(capture, device);
  gpu.waiting_at_least_s = least_waiting_s(gpu.collectives, gpu.steps.windows, gpu.shown);
  return gpu;
}

// The GPUs of one file.
struct TracedFile {
  std::string path;  // for display
  std::vector<TracedGpu> gpus;
  std::vector<std::string> notes;
  std::string refused;  // why it could not be read; "": it was read
};

// `step`: the step to show if a GPU has it; if empty, the first GPU's step is shown for the others too.
TracedFile examine_file(const std::string& path, Window step) {
  const Capture capture = read_capture(path);
  TracedFile file{capture.file, {}, capture.notes, {}};
  if (capture.rank_guessed) file.notes.push_back(fmt::format("Its rank, {}, is guessed from the name.", *capture.rank));
  if (capture.devices.empty() && capture.cut_short)
    fail("{}: it breaks off before the first kernel of a GPU: the profiler was stopped while it wrote the file",
         quote(file.path));
  if (capture.devices.empty())
    fail(
        "{}: no kernel ran on a GPU in it; record the activities of the GPU too (ProfilerActivity.CUDA, nsys profile "
        "--trace=cuda)",
        quote(path));
  std::string unknown;  // a kernel on a stream where no kernel has a class
  for (const Device& device : capture.devices) {
    file.gpus.push_back(examine(capture, device, step));
    if (unknown.empty()) unknown = kernel_of_unknown_stream(device, capture.names);
    if (step.seconds() <= 0) step = file.gpus.back().step_of_job();
  }
  if (!unknown.empty())
    file.notes.push_back(fmt::format(
        "The kernels of a stream beside the main one have no class, such as {}: if they communicate, that counts as "
        "computation.",
        quote(unknown.substr(0, whole_characters(unknown, 60)))));
  return file;
}

// ---- which files belong together

// Returns whether two files show one job at two times rather than two parts of one trace.
bool one_after_the_other(const TracedFile& a, const TracedFile& b) {
  const auto told = [](const TracedGpu& gpu) { return gpu.rank && !gpu.rank_guessed; };
  if (std::ranges::all_of(a.gpus, told) && std::ranges::all_of(b.gpus, told)) return false;
  const auto span = [](const TracedFile& file) {
    std::pair<std::int64_t, std::int64_t> all(INT64_MAX, INT64_MIN);
    for (const TracedGpu& gpu : file.gpus)
      all = {std::min(all.first, gpu.whole.start_ns), std::max(all.second, gpu.whole.end_ns)};
    return all;
  };
  return span(a).second < span(b).first || span(b).second < span(a).first;
}

// Splits files into those before and after a change. All are "after" if there is no such split.
std::pair<std::vector<TracedFile>, std::vector<TracedFile>> before_and_after(std::vector<TracedFile> files) {
  std::map<std::int64_t, std::vector<std::size_t>> of_rank;
  bool all_told = true;
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (const TracedGpu& gpu : files[i].gpus) {
      all_told = all_told && gpu.rank;
      if (!gpu.rank) continue;
      std::vector<std::size_t>& at = of_rank[*gpu.rank];
      if (at.empty() || at.back() != i) at.push_back(i);  // a rank may use several GPUs
    }
  }
  std::vector<bool> before(files.size());
  const auto repeated = std::ranges::find_if(of_rank, [](const auto& entry) { return entry.second.size() > 1; });
  const bool all_twice = std::ranges::all_of(of_rank, [](const auto& entry) { return entry.second.size() == 2; });
  if (repeated != of_rank.end() && !(all_twice && all_told))
    fail("{} and {} are both of rank {}: give one trace of each rank, or two of each to compare them",
         quote(files[repeated->second[0]].path), quote(files[repeated->second[1]].path), repeated->first);
  if (repeated != of_rank.end()) {
    for (const auto& [rank, at] : of_rank) before[at[0]] = true;
  } else if (files.size() == 2 && one_after_the_other(files[0], files[1])) {
    before[0] = true;
  }
  std::pair<std::vector<TracedFile>, std::vector<TracedFile>> both;
  for (std::size_t i = 0; i < files.size(); ++i) (before[i] ? both.first : both.second).push_back(std::move(files[i]));
  return both;
}

void check_world(const std::vector<TracedGpu>& gpus) {
  const TracedGpu* sized = nullptr;
  for (const TracedGpu& gpu : gpus) {
    if (gpu.world && sized != nullptr && *sized->world != *gpu.world)
      fail("{} is of a job with {} ranks, {} of one with {}: give the traces of one job", quote(sized->file),
           *sized->world, quote(gpu.file), *gpu.world);
    if (gpu.world) sized = &gpu;
  }
}

Report report_of(std::vector<TracedFile> files) {
  Report report;
  for (TracedFile& file : files) {
    report.files.push_back(file.path);
    for (const std::string& note : file.notes)
      report.notes.push_back(files.size() > 1 ? fmt::format("{}: {}", quote(file.path), note) : note);
    std::ranges::move(file.gpus, std::back_inserter(report.gpus));
  }
  check_world(report.gpus);
  if (std::ranges::all_of(report.gpus, [](const TracedGpu& g) { return g.rank.has_value(); }))
    std::ranges::stable_sort(report.gpus, {}, [](const TracedGpu& g) { return *g.rank; });
  compare_ranks(report);
  return report;
}

// Returns how many files to read at once: at most 2 GB together, unpacked.
std::size_t files_at_once(const std::vector<std::string>& paths) {
  constexpr double most_bytes = 2e9, packed = 12;
  if (std::ranges::count(paths, "-") > 1) return 1;  // the second reader would find standard input empty
  double largest_bytes = 1;
  for (const std::string& path : paths) {
    std::error_code unknown;
    const std::uintmax_t bytes = std::filesystem::file_size(path, unknown);
    if (!unknown)
      largest_bytes = std::max(largest_bytes, static_cast<double>(bytes) * (path.ends_with(".gz") ? packed : 1));
  }
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  return std::clamp<std::size_t>(static_cast<std::size_t>(most_bytes / largest_bytes), 1,
                                 std::min(cores, paths.size()));
}

// Examines files in the order of the paths. The first file determines the step that the others show.
std::vector<TracedFile> examine_files(const std::vector<std::string>& paths) {
  std::vector<TracedFile> files(paths.size());
  const auto examine_at = [&](std::size_t i, const Window& step) {
    try {
      files[i] = examine_file(paths[i], step);
    } catch (const Error& error) {
      files[i].refused = error.what();
    }
  };
  examine_at(0, {});
  const Window step = files[0].refused.empty() ? files[0].gpus.front().step_of_job() : Window{};
  std::atomic<std::size_t> next = 1;
  const auto work = [&] {
    for (std::size_t i = next++; i < paths.size(); i = next++) examine_at(i, step);
  };
  std::vector<std::future<void>> others;
  for (std::size_t i = 1; i < files_at_once(paths); ++i) others.push_back(std::async(std::launch::async, work));
  work();
  for (std::future<void>& other : others) other.get();
  return files;
}

}  // namespace

bool is_trace_file(const std::string& path) {
  if (path.ends_with(".nsys-rep") || path.ends_with(".qdrep"))
    return true;  // proprietary; the error message says how to export it
  try {
    evidence::Input input(path);
    const std::string_view head = input.head();
    if (head.starts_with(sqlite_mark)) return true;
    const auto has = [&](const char* key) { return evidence::contains(head, key); };
    const bool events = has("\"ph\"") && has("\"ts\"");  // events alone, in an array
    return begins_like_json(head) && (has("\"traceEvents\"") || has("\"deviceProperties\"") || events);
  } catch (const Error&) {
    return false;
  }
}

std::vector<Report> read_traces(const std::vector<std::string>& paths) {
  std::vector<TracedFile> files;
  std::vector<std::string> refused;
  for (TracedFile& file : examine_files(paths)) {
    if (file.refused.empty()) {
      files.push_back(std::move(file));
    } else {
      refused.push_back(std::move(file.refused));
    }
  }
  if (files.empty()) throw Error(join(refused, "\n"));
  auto [before, after] = before_and_after(std::move(files));
  std::vector<Report> reports;
  for (std::vector<TracedFile>* job : {&before, &after}) {
    if (!job->empty()) reports.push_back(report_of(std::move(*job)));
  }
  reports.back().refused = std::move(refused);
  return reports;
}

}  // namespace harness::traces
