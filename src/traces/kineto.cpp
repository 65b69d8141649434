#include "traces/capture.h"

#include <algorithm>
#include <cmath>
#include <istream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/profiled_step.h"
#include "base/error.h"
#include "base/text.h"
#include "traces/kineto.h"

namespace harness::traces {
namespace {

using Category = KinetoEvent::Category;

// The events that the SAX parser calls on. A handler that returns false ends the parse.
class Handler {
 public:
  Handler(Capture& capture, JsonBytes& json, const std::string& path)
      : capture_(capture), json_(json), calls_(capture), path_(path) {}

  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(std::int64_t value) { return number(value, static_cast<double>(value), {}); }
  bool number_unsigned(std::uint64_t value) {
    if (value > INT64_MAX) return number(INT64_MAX, static_cast<double>(value), "-");
    return number(static_cast<std::int64_t>(value), static_cast<double>(value), {});
  }
  bool number_float(double value, const std::string& token) {
    const bool fits = std::abs(value) < 9e18;
    return number(fits ? static_cast<std::int64_t>(value) : 0, value, token);
  }
  bool string(std::string& value);
  bool binary(nlohmann::json::binary_t&) { return true; }
  bool start_object(std::size_t) { return open(false); }
  bool start_array(std::size_t) { return open(true); }
  bool key(std::string& text);
  bool end_object() {
    if (depth_ == 3 && section_ == Section::events) take();
    if (depth_ == 4) in_args_ = false;
    --depth_;
    return true;
  }
  bool end_array() {
    --depth_;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) { return false; }

  /// Before a parse that goes on behind damage.
  void restart() {
    depth_ = 0;
    in_args_ = false;
  }
  void finish();
  bool ended() const { return depth_ == 0; }
  std::size_t events() const { return events_; }

 private:
  enum class Section : std::uint8_t { other, events, devices, distributed, base };

  bool open(bool array);
  bool number(std::int64_t value, double real, std::string_view token);
  void take();
  void take_gpu_event(Work work);
  void range(std::optional<Cause> cause);
  std::int32_t operation();
  Device* device();
  Thread thread() { return capture_.threads.number_of(0, event_.thread()); }

  // A call waits here for the events that it launched, which may stand behind it.
  struct Launch {
    std::uint64_t correlation = 0;
    std::int64_t start_ns = 0;
    Thread thread = no_thread;
  };

  Capture& capture_;
  JsonBytes& json_;
  Calls calls_;
  std::vector<Launch> launches_;
  const std::string& path_;
  std::map<std::int64_t, std::size_t> device_at_;
  std::map<std::int64_t, std::string> gpus_;
  std::set<std::string> categories_;
  KinetoEvent event_;
  const KinetoEvent::Field* field_ = nullptr;  // of the value that comes next
  Section section_ = Section::other;
  std::string top_key_;
  std::int64_t gpu_id_ = -1, base_ns_ = 0;
  std::size_t events_ = 0, timeless_ = 0, wrong_ = 0;
  std::optional<std::int64_t> operation_rank_;
  int depth_ = 0;
  bool in_args_ = false;
  std::size_t kept_ = 0;
};

bool Handler::open(bool array) {
  constexpr int deepest = 64;
  if (++depth_ > deepest) fail("{}: it is nested more than {} levels deep", quote(path_), deepest);
  if (depth_ == 1 && array) {  // Chrome's other form: the events alone
    section_ = Section::events;
    depth_ = 2;
  }
  if (depth_ == 3 && section_ == Section::events) event_.clear();
  if (depth_ == 4) in_args_ = field_ != nullptr && field_->key == "args" && !array;
  if (depth_ == 4 && in_args_ && section_ == Section::events && !event_.needs_arguments()) json_.skip_object();
  if (depth_ >= 3) field_ = nullptr;
  return true;
}

bool Handler::key(std::string& text) {
  field_ = nullptr;
  if (depth_ == 1) {
    section_ = Section::other;
    if (text == "traceEvents") section_ = Section::events;
    if (text == "deviceProperties") section_ = Section::devices;
    if (text == "distributedInfo") section_ = Section::distributed;
    if (text == "baseTimeNanoseconds") section_ = Section::base;
  } else if (section_ == Section::events) {
    if (depth_ == 3 || (depth_ == 4 && in_args_)) field_ = KinetoEvent::field_of(text, depth_ == 4);
  } else if (depth_ == 3 || (section_ == Section::distributed && depth_ == 2)) {
    top_key_ = text.substr(0, 32);
  }
  return true;
}

bool Handler::number(std::int64_t value, double real, std::string_view token) {
  if (section_ == Section::base && depth_ == 1) base_ns_ = token.empty() && value < latest_ns ? value : 0;
  if (section_ == Section::devices && depth_ == 3 && top_key_ == "id") gpu_id_ = value;
  if (section_ == Section::distributed && depth_ == 2 && token.empty() && value >= 0) {
    if (top_key_ == "rank") capture_.rank = value;
    if (top_key_ == "world_size") capture_.world = value;
  }
  if (field_ != nullptr) event_.take(*field_, value, real, token);
  field_ = nullptr;
  return true;
}

bool Handler::string(std::string& value) {
  if (section_ == Section::devices && depth_ == 3 && top_key_ == "name" && gpus_.size() < 1024)
    gpus_[gpu_id_] = value.substr(0, 200);
  if (field_ != nullptr) event_.take(*field_, value);
  const bool ends = section_ == Section::events && depth_ == 3 && !event_.ph.empty() && event_.ph != "X";
  if (ends) json_.skip_object();  // a flow, a mark, a counter: nothing is taken of it
  field_ = nullptr;
  return true;
}

std::int32_t Handler::operation() {
  if (event_.collective.empty() && !event_.is_own()) return -1;
  if (capture_.operations.size() >= (1u << 30)) return -1;
  const std::int64_t size = event_.bytes_of_element();
  Names& names = capture_.names;
  Operation operation;
  operation.kind = names.number_of(event_.is_own() ? event_.kind : event_.collective);
  operation.group = names.number_of(event_.is_own() ? event_.group : event_.group_description);
  const auto count = [](std::int64_t value) { return std::clamp<std::int64_t>(value, 0, std::int64_t{1} << 50); };
  operation.bytes_in = count(event_.elements_in) * size;
  operation.bytes_out = count(event_.elements_out) * size;
  operation.group_size = count(event_.group_size);
  if (event_.is_own()) {
    const bool communicates = analysis::is_communication(event_.kind);
    operation.phase = names.number_of(event_.phase);
    operation.part = communicates ? communication_part(event_.group, event_.phase == analysis::closing_phase)
                                  : computation_part(event_.kind, event_.recomputed != 0);
    operation.waiting_s = event_.waiting_us * 1e-6;
    operation.bubble_s = event_.bubble_us * 1e-6;
    // By its name a kernel is classed: as those of NCCL are called.
    if (communicates && !analysis::is_collective(event_.kind)) event_.name = "nccl sendrecv";
    if (communicates && analysis::is_collective(event_.kind))
      event_.name = "nccl " + replaced(event_.kind, {{'_', ""}}) + " " + event_.name;
    capture_.format = own_format;
  }
  capture_.operations.push_back(operation);
  return static_cast<std::int32_t>(capture_.operations.size() - 1);
}

Device* Handler::device() {
  constexpr std::size_t most_devices = 1024;
  const std::int64_t id = event_.device >= 0 ? event_.device : event_.pid_number;
  if (device_at_.size() >= most_devices && !device_at_.contains(id)) return nullptr;
  const std::size_t at = device_at_.emplace(id, capture_.devices.size()).first->second;
  if (at == capture_.devices.size()) capture_.devices.emplace_back().id = id;
  return &capture_.devices[at];
}

void Handler::take_gpu_event(Work work) {
  if (event_.ts_ns <= 0 && !event_.is_own()) {
    ++timeless_;
    return;
  }
  Device* const on = device();
  if (on == nullptr) return;
  const std::int32_t arguments = operation();
  on->events.push_back({event_.ts_ns, event_.ts_ns + event_.dur_ns, 0, capture_.names.number_of(event_.name),
                        static_cast<std::uint32_t>(std::max<std::int64_t>(event_.stream, 0) & INT32_MAX), arguments,
                        no_thread, work});
  calls_.await(static_cast<std::size_t>(on - capture_.devices.data()), static_cast<std::uint64_t>(event_.correlation));
}

void Handler::range(std::optional<Cause> cause) {
  capture_.ranges.push_back({event_.ts_ns, event_.ts_ns + event_.dur_ns,
                             capture_.names.number_of(event_.name.substr(0, 200)), thread(), cause});
}

void Handler::take() {
  ++events_;
  if (!operation_rank_ && event_.rank >= 0) operation_rank_ = event_.rank;
  if (event_.ph != "X") return;
  const Category category = event_.category();
  // The profiler has a "Trace" of its own: the span of the capture.
  const bool foreign = category == Category::other && !event_.cat.empty() && event_.cat != "Trace";
  if (foreign && categories_.size() < 8) categories_.insert(event_.cat.substr(0, 40));
  if (category == Category::other) return;
  if (event_.wrong || event_.ts_ns < 0) {
    ++wrong_;
    return;
  }
  event_.dur_ns = std::max<std::int64_t>(event_.dur_ns, 0);
  const std::string_view name = event_.name;
  const bool loads = name.find("__next__") != std::string_view::npos;
  const bool loading = loads && name.find(category == Category::python ? "dataloader.py" : "DataLoader") != name.npos;
  if (category == Category::kernel) {
    take_gpu_event(Work::kernel);
  } else if (category == Category::copy) {
    take_gpu_event(Work::copy);
  } else if (category == Category::set) {
    take_gpu_event(Work::set);
  } else if (category == Category::call) {
    const Thread on = thread();
    calls_.take({event_.ts_ns, event_.ts_ns + event_.dur_ns, capture_.names.number_of(name.substr(0, 200)), on});
    if (event_.correlation != 0)
      launches_.push_back({static_cast<std::uint64_t>(event_.correlation), event_.ts_ns, on});
  } else if (category == Category::overhead) {
    range(Cause::profiler);
  } else if (category == Category::mark || category == Category::loading) {
    Device* const on = device();
    const bool step = category == Category::mark && name.starts_with("ProfilerStep");
    if (on != nullptr && step && on->steps.size() < 1000)
      on->steps.push_back({event_.name.substr(0, 60), event_.ts_ns, event_.ts_ns + event_.dur_ns});
    if (on != nullptr && category == Category::loading) on->loading_s += static_cast<double>(event_.dur_ns) * 1e-9;
  } else if (loading) {
    range(Cause::loading);
  } else if (category == Category::python && name.find("gc.collect") != name.npos) {
    range(Cause::garbage);
  } else if (category == Category::operation && name.starts_with("autograd::engine::evaluate_function")) {
    std::vector<Thread>& threads = capture_.backward_threads;
    if (threads.size() < 256 && std::ranges::find(threads, thread()) == threads.end()) threads.push_back(thread());
    return;
  } else if (category == Category::annotation || name.starts_with("ProfilerStep")) {
    range(std::nullopt);
  } else {
    return;
  }
  if (++kept_ > most_events)
    fail("{}: it holds more than {} million events; trace fewer steps", quote(path_), most_events / 1'000'000);
}

void Handler::finish() {
  const bool any_call = capture_.first_call_ns <= capture_.last_call_ns;
  const bool empty = capture_.devices.empty() && !any_call && capture_.ranges.empty();
  if (empty && !categories_.empty()) {
    fail("{}: it is a Chrome trace, but none of the PyTorch profiler; its categories: {}", quote(path_),
         join_first(std::vector(categories_.begin(), categories_.end()), 6));
  }
  if (empty) fail("{}: it holds no event of the PyTorch profiler", quote(path_));
  for (const Launch& launch : launches_) calls_.join(launch.correlation, launch.start_ns, launch.thread);
  const auto shift = [&](auto& x) {
    x.start_ns += base_ns_;
    x.end_ns += base_ns_;
  };
  if (any_call) {
    capture_.first_call_ns += base_ns_;
    capture_.last_call_ns += base_ns_;
  }
  for (Device& device : capture_.devices) {
    std::ranges::for_each(device.events, shift);
    for (GpuEvent& event : device.events) event.launch_ns += base_ns_;
    std::ranges::for_each(device.steps, shift);
    const auto gpu = gpus_.find(device.id);
    if (gpu != gpus_.end()) device.gpu = gpu->second;
    if (gpu == gpus_.end() && !gpus_.empty()) device.gpu = gpus_.begin()->second;  // a node's GPUs are of one kind
  }
  std::ranges::for_each(capture_.ranges, shift);
  if (!capture_.rank) capture_.rank = operation_rank_;
  if (!capture_.rank) {
    capture_.rank = rank_in_name(path_);
    capture_.rank_guessed = capture_.rank.has_value();
  }
  capture_.note(timeless_, "GPU event", "left out: without a time");
  capture_.note(wrong_, "event", "left out: with a time that is none");
}

}  // namespace

Capture read_kineto(evidence::Input& input, const std::string& path) {
  Capture capture;
  capture.file = path;
  capture.format = "PyTorch profiler";
  JsonBytes json(input);
  Handler handler(capture, json, path);
  std::size_t lost = 0;
  std::istream stream(&json);
  bool whole = nlohmann::json::sax_parse(stream, &handler);
  while (!whole && !handler.ended() && json.restart_at_next_event()) {
    ++lost;
    if (lost > 100 && lost > handler.events() / 100)
      fail("{}: it is damaged: more than 1 % of its events cannot be read", quote(path));
    handler.restart();
    whole = nlohmann::json::sax_parse(stream, &handler);
  }
  if (handler.events() == 0) fail("{}: it is no trace in JSON", quote(path));
  handler.finish();
  capture.note(lost, "damaged event", "left out");
  capture.cut_short = json.cut_short() || (!whole && !handler.ended());
  if (capture.cut_short) capture.notes.emplace_back("The file is cut short: its last step is left out.");
  capture.note(json.repairs(), "fault", "of its JSON repaired");
  finish(capture);
  return capture;
}

}  // namespace harness::traces
