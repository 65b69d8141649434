#include <algorithm>
#include <map>
#include <set>

#include "analysis/breakdown.h"
#include "base/text.h"
#include "traces/capture.h"
#include "traces/kineto_json.h"

namespace harness::traces {
namespace {

using evidence::contains;
using Category = KinetoEvent::Category;
using Token = JsonReader::Token;
constexpr std::string_view events_key = "traceEvents";

class KinetoReader {
 public:
  KinetoReader(evidence::Input& input, const std::string& path) : path_(path), json_(input), calls_(capture_) {}
  Capture read();

 private:
  std::size_t depth() const { return json_.depth() + (bare_ ? 1 : 0); }
  bool in_events() const { return section_ == events_key; }
  void take(Token token);
  void open(bool array);
  void take_key();
  void take_value(bool number);
  void take_event();
  bool take_host_event(Category category);
  void take_gpu_event(Work work);
  void take_mark(Category category);
  void range(std::optional<Cause> cause);
  std::int32_t operation();
  std::optional<std::int64_t> rank_of_operation() const;
  Device* device();
  Thread thread() { return capture_.threads.number_of(0, event_.thread()); }
  void finish();

  // A call, kept until its events have been read, because they may follow it in the file.
  struct Launch {
    std::uint64_t correlation = 0;
    std::int64_t start_ns = 0, end_ns = 0;
    Thread thread = no_thread;
  };

  const std::string& path_;
  JsonReader json_;
  Capture capture_;
  Calls calls_;
  std::vector<Launch> launches_;
  std::map<std::int64_t, std::size_t> device_at_;
  std::map<std::int64_t, std::string> gpus_;
  std::set<std::string> categories_;
  KinetoEvent event_;
  std::int64_t start_ns_ = 0, end_ns_ = 0;  // times of the current event
  std::string* place_ = nullptr;            // where the event's next value goes
  std::string section_, key_;               // last keys at depth 1 and, except for events, below
  bool args_next_ = false, in_args_ = false;
  bool bare_ = false;  // Chrome's other format: an array of events only
  std::int64_t gpu_id_ = -1, base_ns_ = 0;
  std::optional<std::int64_t> operation_rank_;
  std::size_t events_ = 0, kept_ = 0, timeless_ = 0, wrong_ = 0;
};

void KinetoReader::take(Token token) {
  switch (token) {
    case Token::begin_object:
    case Token::begin_array:
      return open(token == Token::begin_array);
    case Token::end_object:
      if (in_events() && depth() == 2) take_event();
      return;
    case Token::key:
      return take_key();
    case Token::string:
    case Token::number:
      take_value(token == Token::number);
      [[fallthrough]];
    default:
      place_ = nullptr;
  }
}

void KinetoReader::open(bool array) {
  constexpr std::size_t deepest = 64;
  if (depth() > deepest) fail("{}: it is nested more than {} levels deep", quote(path_), deepest);
  if (depth() == 1 && array) {
    bare_ = true;
    section_ = events_key;
  }
  if (depth() == 3) event_.clear();
  if (depth() == 4) in_args_ = args_next_ && !array && in_events();
  if (depth() == 4 && in_args_ && !event_.needs_arguments()) json_.skip_object();
  place_ = nullptr;
}

void KinetoReader::take_key() {
  const std::string& text = json_.text();
  place_ = nullptr;
  if (depth() == 1) {
    section_ = text.substr(0, 32);
  } else if (!in_events()) {
    key_ = text.substr(0, 32);
  } else {
    const bool argument = depth() == 4 && in_args_;
    if (depth() == 3 || argument) place_ = event_.place_of(text, argument);
    args_next_ = depth() == 3 && text == "args";
  }
}

void KinetoReader::take_value(bool number) {
  std::string& text = json_.text();
  if (place_ != nullptr) {
    place_->swap(text);
    // Flows, marks and counters are not needed.
    if (place_ == event_.place_of("ph", false) && *place_ != "X") json_.skip_object();
    return;
  }
  if (in_events()) return;
  const auto whole = number ? number_in<std::int64_t>(text) : std::nullopt;
  if (section_ == "baseTimeNanoseconds" && depth() == 1) base_ns_ = whole && *whole < latest_ns ? *whole : 0;
  if (section_ == "deviceProperties" && depth() == 3) {
    if (key_ == "id") gpu_id_ = whole.value_or(-1);
    if (key_ == "name" && gpus_.size() < 1024) gpus_[gpu_id_] = text.substr(0, 200);
  }
  if (section_ == "distributedInfo" && depth() == 2 && whole && *whole >= 0) {
    if (key_ == "rank") capture_.rank = whole;
    if (key_ == "world_size") capture_.world = whole;
  }
}

std::int32_t KinetoReader::operation() {
  const bool own = event_.is_own();
  if (event_["Collective name"].empty() && !own) return -1;
  const std::int64_t size = event_.bytes_of_element();
  const auto count = [&](std::string_view key) {
    return std::clamp<std::int64_t>(event_.whole(key, 0), 0, std::int64_t{1} << 50);
  };
  const std::string &kind = event_[own ? "kind" : "Collective name"],
                    &group = event_[own ? "group" : "Process Group Description"];
  Operation operation;
  operation.kind = capture_.names.number_of(kind);
  operation.group = capture_.names.number_of(group);
  operation.members = capture_.names.number_of(event_["Process Group Ranks"]);
  operation.bytes_in = count("In msg nelems") * size;
  operation.bytes_out = count("Out msg nelems") * size;
  operation.group_size = count("Group size");
  if (own) {
    const std::string& phase = event_["phase"];
    operation.phase = capture_.names.number_of(phase);
    operation.part = analysis::is_communication(kind) ? communication_part(group, phase == analysis::closing_phase)
                                                      : computation_part(kind, event_.whole("recomputed", 0) != 0);
    operation.waiting_s = event_.real("waiting_us") * 1e-6;
    operation.bubble_s = event_.real("bubble_us") * 1e-6;
    std::string& name = *event_.place_of("name", false);  // by which kernels are classified: like NCCL's
    if (analysis::is_collective(kind)) {
      name = "nccl " + replaced(kind, {{'_', ""}}) + " " + name;
    } else if (analysis::is_communication(kind)) {
      name = "nccl sendrecv";
    }
    capture_.format = own_format;
  }
  capture_.operations.push_back(operation);
  return static_cast<std::int32_t>(capture_.operations.size() - 1);
}

// Returns the rank in the job. A collective states its rank within the group, and the group's ranks: "[0, 8, 16, ...]".
// In broadcasts and the like `Rank` is the root, in sends and receives the peer.
std::optional<std::int64_t> KinetoReader::rank_of_operation() const {
  const std::string& kind = event_["Collective name"];
  const bool own = evidence::has_any(kind, "all|reduce_scatter");
  const std::int64_t place = event_.whole("Rank", -1);
  if (!own || place < 0) return std::nullopt;
  const std::vector<std::string_view> ranks = split(event_["Process Group Ranks"], ',');
  if (place >= std::ssize(ranks)) return std::nullopt;
  Cursor c{trim(ranks[static_cast<std::size_t>(place)])};
  c.literal("[");
  std::int64_t rank = 0;
  return c.integer(rank) && rank >= 0 ? std::optional(rank) : std::nullopt;
}

Device* KinetoReader::device() {
  constexpr std::size_t most_devices = 1024;
  const std::int64_t id = event_.whole("device", event_.whole("pid", -1));
  if (device_at_.size() >= most_devices && !device_at_.contains(id)) return nullptr;
  const std::size_t at = device_at_.emplace(id, capture_.devices.size()).first->second;
  if (at == capture_.devices.size()) capture_.devices.emplace_back().id = id;
  return &capture_.devices[at];
}

void KinetoReader::take_gpu_event(Work work) {
  if (start_ns_ <= 0 && !event_.is_own()) {
    ++timeless_;
    return;
  }
  Device* const on = device();
  if (on == nullptr) return;
  const std::int32_t arguments = operation();
  const std::int64_t stream = std::max<std::int64_t>(event_.stream(), 0) & INT32_MAX;
  on->events.push_back({start_ns_, end_ns_, 0, capture_.names.number_of(event_["name"]),
                        static_cast<std::uint32_t>(stream), arguments, no_thread, work});
  calls_.await(static_cast<std::size_t>(on - capture_.devices.data()),
               static_cast<std::uint64_t>(event_.whole("correlation", 0)));
}

void KinetoReader::take_mark(Category category) {
  Device* const on = device();
  if (on == nullptr) return;
  const std::string& name = event_["name"];
  if (category == Category::loading) {
    on->loading_s += static_cast<double>(end_ns_ - start_ns_) * 1e-9;
  } else if (name.starts_with("ProfilerStep") && on->steps.size() < 1000) {
    on->steps.push_back({name.substr(0, 60), start_ns_, end_ns_});
  }
}

void KinetoReader::range(std::optional<Cause> cause) {
  capture_.ranges.push_back(
      {start_ns_, end_ns_, capture_.names.number_of(event_["name"].substr(0, 200)), thread(), cause});
}

// Returns false if nothing of the event is kept.
bool KinetoReader::take_host_event(Category category) {
  const std::string_view name = event_["name"];
  if (category == Category::call) {
    const Thread on = thread();
    calls_.take({start_ns_, end_ns_, capture_.names.number_of(name.substr(0, 200)), on});
    const auto correlation = static_cast<std::uint64_t>(event_.whole("correlation", 0));
    if (correlation != 0) launches_.push_back({correlation, start_ns_, end_ns_, on});
  } else if (category == Category::overhead) {
    range(Cause::profiler);
  } else if (contains(name, "__next__") &&
             contains(name, category == Category::python ? "dataloader.py" : "DataLoader")) {
    range(Cause::loading);
  } else if (contains(name, "Python GC") ||
             (category == Category::python && evidence::has_any(name, "gc.collect|function collect>"))) {
    range(Cause::garbage);
  } else if (category == Category::operation && name.starts_with("autograd::engine::evaluate_function")) {
    std::vector<Thread>& threads = capture_.backward_threads;
    if (threads.size() < 256 && std::ranges::find(threads, thread()) == threads.end()) threads.push_back(thread());
    return false;
  } else if (category == Category::annotation || name.starts_with("ProfilerStep")) {
    range(std::nullopt);
  } else {
    return false;
  }
  return true;
}

void KinetoReader::take_event() {
  ++events_;
  if (!operation_rank_) operation_rank_ = rank_of_operation();
  if (event_["ph"] != "X") return;
  const Category category = event_.category();
  const std::string& cat = event_["cat"];
  // The profiler's own "Trace" category is the span of the capture.
  const bool foreign = category == Category::other && !cat.empty() && cat != "Trace";
  if (foreign && categories_.size() < 8) categories_.insert(cat.substr(0, 40));
  if (category == Category::other) return;
  const bool lasts = !event_["dur"].empty();
  const auto start_ns = event_.ns("ts"), length_ns = lasts ? event_.ns("dur") : 0;
  if (!start_ns || !length_ns || *start_ns < 0) {
    ++wrong_;
    return;
  }
  start_ns_ = *start_ns;
  end_ns_ = *start_ns + std::max<std::int64_t>(*length_ns, 0);
  bool kept = true;
  if (category == Category::kernel) {
    take_gpu_event(Work::kernel);
  } else if (category == Category::copy || category == Category::set) {
    take_gpu_event(category == Category::copy ? Work::copy : Work::set);
  } else if (category == Category::mark || category == Category::loading) {
    take_mark(category);
  } else {
    kept = take_host_event(category);
  }
  if (kept && ++kept_ > most_events)
    fail("{}: it holds more than {} million events; trace fewer steps", quote(path_), most_events / 1'000'000);
}

void KinetoReader::finish() {
  const bool any_call = capture_.first_call_ns <= capture_.last_call_ns;
  const bool empty = capture_.devices.empty() && !any_call && capture_.ranges.empty();
  if (empty && !categories_.empty()) {
    fail("{}: it is a Chrome trace, but none of the PyTorch profiler; its categories: {}", quote(path_),
         join_first(std::vector(categories_.begin(), categories_.end()), 6));
  }
  if (empty) fail("{}: it holds no event of the PyTorch profiler", quote(path_));
  for (const Launch& l : launches_) calls_.join(l.correlation, l.start_ns, l.end_ns, l.thread);
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
    for (GpuEvent& event : device.events) {
      event.launch_ns += base_ns_;
      event.launch_end_ns += base_ns_;
    }
    std::ranges::for_each(device.steps, shift);
    if (!gpus_.empty())  // a node has one kind
      device.gpu = evidence::value_at(gpus_, device.id, gpus_.begin()->second);
  }
  std::ranges::for_each(capture_.ranges, shift);
  if (!capture_.rank) capture_.rank = operation_rank_;
  if (!capture_.rank) {
    capture_.rank = rank_in_name(path_);
    capture_.rank_guessed = capture_.rank.has_value();
  }
}

Capture KinetoReader::read() {
  capture_.file = path_;
  capture_.format = "PyTorch profiler";
  std::size_t lost = 0;
  for (Token token = json_.next(); token != Token::end; token = json_.next()) {
    if (token != Token::damaged) {
      take(token);
      continue;
    }
    section_ = events_key;
    bare_ = in_args_ = false;
    if (!json_.restart_at_next_event()) break;
    ++lost;
    if (lost > 100 && lost > events_ / 100)
      fail("{}: it is damaged: more than 1 % of its events cannot be read", quote(path_));
  }
  if (events_ == 0) fail("{}: it is no trace in JSON", quote(path_));
  finish();
  capture_.note(timeless_, "GPU event", "left out: without a time");
  capture_.note(wrong_, "event", "left out: with a time that is none");
  capture_.note(lost, "damaged event", "left out");
  capture_.cut_short = json_.cut_short() || json_.depth() > 0;
  if (capture_.cut_short) capture_.notes.emplace_back("The file is cut short: its last step is left out.");
  capture_.note(json_.repairs(), "fault", "of its JSON repaired");
  traces::finish(capture_);
  return std::move(capture_);
}

}  // namespace

Capture read_kineto(evidence::Input& input, const std::string& path) {
  return KinetoReader(input, path).read();
}

}  // namespace harness::traces
