#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "base/file.h"
#include "base/text.h"
#include "config/model.h"
#include "config/registry.h"
#include "selftest/checks.h"
#include "workloads/gpt/parameters.h"
#include "workloads/workload.h"

namespace harness::selftest {
namespace {

// A training job of one rank, ready to step, for whole-step checks.
class OneRank {
 public:
  // `tuned`: the backend times its alternatives first, for some seconds. Throws Error.
  OneRank(const backend::Backend& backend, const config::Model& model, const config::Settings& settings,
          std::uint64_t seed, int threads, bool tuned)
      : set_(program::lower(workloads::build_programs(model, settings, {}), backend.declared())) {
    constexpr double timeout_s = 120;  // for one step
    request_.program = &set_.roles.front();
    request_.groups = set_.groups;
    request_.settings = settings;
    request_.seed = seed;
    request_.threads = threads;
    request_.timeout_s = timeout_s;
    if (tuned) {
      request_.tuning_s = 3;
      request_.tuning = std::make_shared<const backend::Tuning>(backend.tune(request_));
    }
    inputs_ = workloads::gpt_workload().inputs(model, settings, {}, {}, seed);
    executable_ = backend.create(request_);
    std::vector<RendezvousMessage> to_itself;
    for (const RendezvousMessage& m : executable_->publish()) to_itself.push_back({0, m.key, m.bytes});
    executable_->connect(to_itself, timeout_s);
    executable_->initialize();
  }

  void run(int steps) {
    executable_->run(done_, steps, *inputs_);
    done_ += steps;
  }
  // Mean losses of all steps so far.
  std::vector<float> losses() { return read(workloads::losses_buffer, 0, done_); }
  std::vector<float> read(const std::string& buffer, std::int64_t offset, std::int64_t count) {
    std::vector<float> values(count);
    const program::View whole = workloads::find_buffer(set_.roles.front(), buffer);
    if (!whole.present()) fail("the step has no buffer '{}'", buffer);
    executable_->read(whole.part(offset, count), std::as_writable_bytes(std::span(values)));
    return values;
  }
  std::vector<std::string> warnings() const { return executable_->warnings(); }

 private:
  program::ProgramSet set_;
  backend::ExecutableRequest request_;
  std::unique_ptr<program::InputSource> inputs_;
  std::unique_ptr<backend::Executable> executable_;
  int done_ = 0;
};

// |a - b| / |b| in norms; infinity if any element is not finite. Throws Error for different lengths.
double relative_distance(const std::vector<float>& a, std::span<const float> b) {
  if (a.size() != b.size()) fail("{} numbers are to be compared with {}", a.size(), b.size());
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(double{a[i]} - double{b[i]}, 2);
    norm += std::pow(double{b[i]}, 2);
  }
  if (!std::isfinite(difference) || !std::isfinite(norm)) return std::numeric_limits<double>::infinity();
  return difference == 0 ? 0 : std::sqrt(difference / std::max(norm, 1e-300));
}

struct Allowed {
  double loss, gradient;
};

// By tests/reference, PyTorch's own float32 and bf16 deviate by 2e-7 and 4e-7, and by 4e-3 and 1.5e-2. Twice that is
// allowed for another bf16 attention, which rounds elsewhere. tf32 has three more bits.
Allowed allowed(config::Precision precision) {
  if (precision == config::Precision::fp32) return {1e-5, 1e-4};
  return {precision == config::Precision::tf32 ? 1e-2 : 2e-2, 3e-2};
}

// One way to run a step. All ways must give the same results.
struct Way {
  std::string name;
  config::Settings settings;
  bool tuned = false;
};

std::vector<Way> ways_of(const Reference& reference, const backend::Backend& subject) {
  const std::int64_t batch = reference.settings.global_batch_size;
  std::vector<Way> ways;
  const auto add = [&](const char* name, std::int64_t micro_batch_size) -> Way& {
    Way& way = ways.emplace_back(Way{name, reference.settings});
    way.settings.micro_batch_size = micro_batch_size;
    return way;
  };
  for (const std::int64_t micro_batch_size : {batch, std::int64_t{1}}) {
    add("fused attention", micro_batch_size);
    add("unfused attention", micro_batch_size).settings.attention = config::AttentionKind::unfused;
  }
  const auto honours = [&](const char* variable) {
    const std::string_view name = config::name_of(subject.kind());
    return config::find_variable(variable)->honoured_on(name, name);
  };
  if (honours("cuda_graph")) add("no CUDA graph", batch).settings.cuda_graph = false;
  if (honours("overlap_optimizer")) {
    config::Settings& settings = add("optimizer beside the backward pass", batch).settings;
    settings.overlap_optimizer = true;
    settings.bucket_size_bytes = 16 << 10;  // several buckets in these small models
  }
  if (config::traits_of(subject.kind()).tunes) add("tuned", batch).tuned = true;
  return ways;
}

CheckLine line_for(const std::string& what, config::Precision precision, double tolerance) {
  return {.check = fmt::format("reference: {} {}", what, config::name_of(precision)), .tolerance = tolerance};
}

// Runs the model of `reference` in every way and checks its losses and gradients.
void check_model(const Reference& reference, const backend::Backend& subject, int threads, CheckLine& losses,
                 CheckLine& gradients) {
  for (const Way& way : ways_of(reference, subject)) {
    const std::string how = fmt::format("{}, {}, {} micro-batches", reference.model.name, way.name,
                                        way.settings.global_batch_size / way.settings.micro_batch_size);
    try {
      OneRank job(subject, reference.model, way.settings, reference.seed, threads, way.tuned);
      job.run(1);
      for (const gpt::Parameter& p : gpt::parameters(reference.model, reference.settings, {}, 0)) {
        ++gradients.cases;
        judge(gradients, p.name + ", " + how,
              relative_distance(job.read("gradient", p.view.offset, p.view.count), reference.tensor(p.name)));
      }
      job.run(static_cast<int>(reference.losses.size()) - 1);
      const std::vector<float> ours = job.losses();
      for (std::size_t i = 0; i < reference.losses.size(); ++i) {
        ++losses.cases;
        judge(losses, fmt::format("step {}, {}", i, how),
              std::abs(static_cast<double>(ours[i]) / reference.losses[i] - 1));
      }
      for (const std::string& w : job.warnings()) add_once(gradients.notes, w);
    } catch (const std::exception& e) {
      losses.outcome = gradients.outcome = Outcome::failed;
      losses.failures.push_back(how + ": " + e.what());
    }
  }
}

namespace fs = std::filesystem;
constexpr const char* index_name = "gpt_tiny.json";
constexpr std::size_t most_bytes = 256 << 20;  // limit for any file of a reference

// Reads a value of the model from its JSON.
template <class T>
void read_key(const nlohmann::json& from, T& value) {
  if constexpr (std::is_enum_v<T>) {
    value = config::parse_choice(from.get<std::string>(), config::words_for(value));
  } else {
    value = from.get<T>();
  }
}

// Reads what both kinds of reference have: the batch and seed of `index`, the losses of `run`, the places of `tensors`.
void read_run(const nlohmann::json& index, const nlohmann::json& run, const nlohmann::json& tensors, Reference& r,
              const fs::path& where) {
  r.settings.global_batch_size = index.at("global_batch_size");
  r.seed = index.at("seed").get<std::uint64_t>();
  r.losses = run.at("losses").get<std::vector<double>>();
  for (const auto& t : tensors) {
    const Reference::Place place{t.at("offset").get<std::size_t>(), t.at("count").get<std::size_t>()};
    if (place.offset > r.gradients.size() || place.count > r.gradients.size() - place.offset)
      fail("{}: a tensor reaches too far", where.string());
    r.places.emplace(t.at("name").get<std::string>(), place);
  }
}

std::vector<float> read_numbers(const fs::path& path, std::size_t count) {
  const std::string bytes = read_file(path.string(), most_bytes);
  if (bytes.size() / sizeof(float) < count) fail("{} is too short", path.string());
  std::vector<float> numbers(count);
  std::memcpy(numbers.data(), bytes.data(), count * sizeof(float));
  return numbers;
}

// Calls use(index) with the content of the file.
void with_index(const fs::path& path, const std::function<void(const nlohmann::json&)>& use) {
  try {
    use(nlohmann::json::parse(read_file(path.string(), most_bytes)));
  } catch (const nlohmann::json::exception& e) {
    fail("{} is not a reference: {}", path.string(), e.what());
  }
}

}  // namespace

void check_reference(const backend::Backend& subject, const std::string& directory, int threads,
                     const std::function<void(const CheckLine&)>& finished) {
  const auto check = [&](const std::string& prefix, config::Precision precision,
                         const std::vector<Reference>& references) {
    CheckLine losses = line_for(prefix + "losses", precision, allowed(precision).loss),
              gradients = line_for(prefix + "gradients", precision, allowed(precision).gradient);
    for (const Reference& reference : references) check_model(reference, subject, threads, losses, gradients);
    finished(losses);
    finished(gradients);
  };
  using enum config::Precision;
  for (const config::Precision precision : {fp32, bf16}) check("", precision, {load_reference(directory, precision)});
  if (config::traits_of(subject.kind()).has_tf32) {
    Reference reference = load_reference(directory, fp32);
    reference.settings.precision = tf32;
    check("", tf32, {reference});
  }
  check("Llama-style ", fp32, load_model_references(directory));
}

const char* name_of(Outcome outcome) {
  static constexpr std::array names{"passed", "FAILED", "not run"};
  return names[static_cast<std::size_t>(outcome)];
}

void judge(CheckLine& line, const std::string& what, double error) {
  if (error > line.error || std::isnan(error)) line.error = error;  // nothing compares as larger than a NaN
  if (error <= line.tolerance) return;
  line.outcome = Outcome::failed;
  line.failures.push_back(fmt::format("{}: off by {:.3g}, allowed is {:.3g}", what, error, line.tolerance));
}

int exit_code(const std::vector<CheckLine>& lines) {
  const auto count = [&](Outcome o) { return std::ranges::count(lines, o, &CheckLine::outcome); };
  if (count(Outcome::failed) > 0) return 1;
  return count(Outcome::passed) > 0 ? 0 : 3;
}

std::span<const float> Reference::tensor(const std::string& name) const {
  const auto it = places.find(name);
  if (it == places.end()) fail("the reference has no tensor {}", name);
  return std::span(gradients).subspan(it->second.offset, it->second.count);
}

Reference load_reference(const std::string& directory, config::Precision precision) {
  const std::string name = precision == config::Precision::bf16 ? "bf16" : "fp32";
  const fs::path index_path = fs::path(directory) / index_name;
  Reference r;
  with_index(index_path, [&](const nlohmann::json& index) {
    const auto& m = index.at("model");
    r.model = {"tiny", m.at("layers"), m.at("hidden"), m.at("heads"), m.at("vocab"), m.at("sequence")};
    r.settings.precision = precision;
    const auto& entry = index.at("cases").at(name);
    r.gradients = read_numbers(fs::path(directory) / entry.at("gradients").get<std::string>(),
                               index.at("parameters").get<std::size_t>());
    read_run(index, entry, index.at("tensors"), r, index_path);
  });
  return r;
}

std::vector<Reference> load_model_references(const std::string& directory) {
  const fs::path index_path = fs::path(directory) / "models.json";
  std::vector<Reference> all;
  with_index(index_path, [&](const nlohmann::json& index) {
    const std::vector<float> numbers = read_numbers(fs::path(directory) / index.at("gradients").get<std::string>(),
                                                    index.at("numbers").get<std::size_t>());
    for (const auto& entry : index.at("models")) {
      Reference r;
      r.model.name = entry.at("name").get<std::string>();
      config::each_key(
          r.model, [&](const config::ModelKey& key, auto& value) { read_key(entry.at("model").at(key.name), value); });
      r.gradients = numbers;
      read_run(index, entry, entry.at("tensors"), r, index_path);
      all.push_back(std::move(r));
    }
  });
  return all;
}

std::string find_reference(const std::string& program_path) {
  std::error_code ignored;
  for (fs::path folder = fs::path(program_path).parent_path(); !folder.empty(); folder = folder.parent_path()) {
    for (const char* place : {"share/harness/reference", "tests/reference"}) {
      if (fs::exists(folder / place / index_name, ignored)) return (folder / place).string();
    }
    if (folder == folder.root_path()) break;
  }
  return "";
}

}  // namespace harness::selftest
