// Verbs that write the first files of a machine: a configuration, tokens, the inputs of predictions.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <ostream>
#include <utility>

#include "backends/backends.h"
#include "base/identity.h"
#include "base/text.h"
#include "base/units.h"
#include "calibrate/calibrate.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "data/loader.h"
#include "doctor/check.h"
#include "machine/cpus.h"
#include "report/document.h"
#include "sweep/probe.h"

namespace harness::cli {
namespace {

constexpr const char* small_model = "{layers: 4, hidden: 128, heads: 4, vocab: 2048, sequence: 128}";
// The largest model of which every case fits in this much GPU memory; larger ones take too long for a first look.
constexpr std::array<std::pair<double, const char*>, 5> first_models{
    {{110e9, "gpt3-2.7b"}, {72e9, "gpt3-1.3b"}, {36e9, "gpt3-760m"}, {20e9, "gpt3-350m"}, {12e9, "gpt3-125m"}}};

config::BackendKind backend_for(const FirstMachine& machine, const InitOptions& options) {
  if (options.backend.empty()) return config::usual_backend(!machine.gpus.empty());
  const config::BackendKind backend = option_value("--backend", options.backend, config::parse_backend);
  if (config::traits_of(backend).predicts())
    fail("--backend {}: a first configuration measures; give cpu or cuda, and `plan --backend sim` predicts it",
         options.backend);
  return backend;
}

int usual_ranks(const FirstMachine& machine, config::BackendKind backend) {
  constexpr int gpus_of_a_node = 8, enough_on_cores = 4;
  if (!config::traits_of(backend).ranks_are_gpus) return std::clamp(machine.cores, 1, enough_on_cores);
  return machine.gpus.empty() ? gpus_of_a_node : static_cast<int>(machine.gpus.size());
}

std::string hardware_line(const FirstConfiguration& f) {
  if (!f.hardware.empty())
    return fmt::format("hardware: {:18} # peak FLOP/s and memory of the {}\n", f.hardware, f.device);
  const std::string why = f.device.empty() ? "no GPU here" : "no hardware file lists the " + f.device;
  return fmt::format("hardware: none               # {}, so there is no MFU; such as h100-sxm\n", why);
}

std::string text_of(const FirstConfiguration& f, const std::string& path) {
  const bool gpus = f.on_gpus(), several = f.ranks > 1, even = f.ranks % 2 == 0;
  std::string layouts;
  for (const program::Axis axis : program::configurable_axes)
    layouts += fmt::format("    - {{{}: 2}}\n", program::row_of(axis).key);
  const std::vector<std::pair<bool, std::string>> lines{
      {true,
       fmt::format("# Written by `harness init` for {1} on this machine ({2}). Change what you like:\n"
                   "# `{0} variables` lists all that a configuration may say, `{0} variables NAME` explains one.\n"
                   "#\n"
                   "#     {0} plan {3} --ranks {4}\n"
                   "#     mpirun -np {4} {0} sweep {3}\n",
                   called(), plural(f.ranks, "rank"), f.machine, shell_word(path), f.ranks)},
      {true, fmt::format("backend: {}\n", config::name_of(f.backend))},
      {true, fmt::format("model: {}{}\n", f.model, gpus ? "             # a preset; harness variables model" : "")},
      {gpus, hardware_line(f)},
      {true, fmt::format("baseline:                    # what is not named has its default\n"
                         "  precision: {}\n"
                         "  global_batch_size: {:<8} # sequences per step, whatever the layout\n"
                         "  micro_batch_size: 1         # sequences per forward pass of one rank\n",
                         f.precision, f.ranks * 4)},
      {even, fmt::format("  layout: {}   # {} follows from the ranks\n",
                         config::find_variable("layout")->print(config::Settings()),
                         program::row_of(program::Axis::data).key)},
      {true,
       "sweep:                       # each value is one case: the baseline with this one change\n"
       "  micro_batch_size: [2, 4]   # fewer and larger matrix products\n"},
      {even, "  layout:                    # what a value omits stays as in the baseline\n" + layouts},
      {several, "  overlap_grad_reduce: [false]   # what hiding the gradient reduction gains\n"},
      {true, "  overlap_optimizer: [true]  # update the weights beside the backward pass\n"},
      {gpus,
       "  attention: [unfused]       # what fused attention gains\n"
       "  cuda_graph: [false]        # what launching kernel by kernel costs\n"},
      {several,
       gpus ? "  nccl_algo: [AllReduce:Ring, AllReduce:Tree]\n" : "  allreduce_algorithm: [halving_doubling]\n"},
      {true,
       "# A round measures every case once, in fresh processes. More rounds resolve smaller effects.\n"
       "measure:\n"
       "  rounds: 12\n"
       "  warmup_steps: 2\n"
       "  steps: auto                # a little less than the start of the processes takes\n"
       "  smallest_effect: 1 %       # changes below it do not matter here\n"},
      {true, fmt::format("  deadlines: {{start: {} s, step: 60 s}}\n  time_budget: 30 min\n", gpus ? 300 : 60)}};
  std::string text;
  for (const auto& [here, line] : lines)
    if (here) text += line;
  return text;
}

void take_gpus(FirstConfiguration& f, const FirstMachine& machine, const InitOptions& options) {
  constexpr double usual_memory = 80e9;
  constexpr int first_with_bf16 = 80;
  f.machine = machine.gpus.empty()
                  ? "no GPU here"
                  : fmt::format("{}: {}", plural(std::ssize(machine.gpus), "GPU"), machine.gpus[0].name);
  f.precision = "bf16";
  double memory_bytes = usual_memory;
  if (!machine.gpus.empty()) {
    f.device = machine.gpus[0].name;
    if (const double memory = machine.gpus[0].memory_bytes.value_or(0); memory > 0) memory_bytes = memory;
    const auto hardware = config::find_hardware_for_device(f.device, options.output);
    if (hardware) f.hardware = hardware->file;
    const int capability = hardware ? hardware->compute_capability : 0;
    if (capability > 0 && capability < first_with_bf16) f.precision = "fp32";
  }
  const auto model = std::ranges::find_if(first_models, [&](const auto& row) { return memory_bytes >= row.first; });
  f.model = model == first_models.end() ? small_model : model->second;
}

// From the option, or else by the hardware of the job.
config::BackendKind backend_of(const job::Job& job, const CalibrateOptions& options) {
  if (!options.backend.empty()) return option_value("--backend", options.backend, config::parse_backend);
  return config::usual_backend(
      std::ranges::any_of(job.places(), [](const job::RankPlace& place) { return place.gpus.count > 0; }));
}

void require_computing(config::BackendKind backend) {
  if (!config::traits_of(backend).predicts()) return;
  fail("backend {} computes nothing that could be measured; give --backend cpu or cuda", config::name_of(backend));
}

struct Sizes {
  calibrate::Wanted wanted;
  std::optional<config::Hardware> hardware;  // named by the configuration
};

Sizes sizes_of(const job::Job& job, const CalibrateOptions& options) {
  const config::BackendKind backend = backend_of(job, options);
  require_computing(backend);
  if (options.config.empty()) return {calibrate::usual(backend), {}};
  std::vector<std::string> overrides;
  if (!options.backend.empty()) overrides.push_back("backend=" + options.backend);
  const config::Experiment experiment = config::load_experiment(options.config, overrides);
  require_computing(experiment.backend);
  if (experiment.model.layers == 0)
    fail("{} has no model, whose step says what sizes to measure; give a configuration with one, or none",
         options.config);
  return {calibrate::wanted_by(plan_sweep(job, experiment, {}, plan::Processes::as_needed)), experiment.hardware};
}

// Takes facts that a GPU does not report from the hardware file that the configuration names, if it is of this GPU, or
// else from the file that lists the GPU. Only counts and sizes are taken; rates are measured.
void complete(calibrate::Device& device, const std::optional<config::Hardware>& named, const std::string& config_path,
              const std::string& hardware_path, std::ostream& err) {
  const bool is_named = named && (named->devices.empty() || named->is(device.name));
  const auto known = is_named ? named : config::find_hardware_for_device(device.name, config_path);
  if (!known) {
    err << fmt::format(
        "harness: no hardware file lists the {}: its memory is not known, nor whether NVLink switches connect it; "
        "{} will not say it (`memory`, `node.nvswitch`), and you can add it there\n",
        escaped(device.name), escaped(hardware_path));
    return;
  }
  device.memory_bytes = known->memory_bytes;
  device.nvswitch = known->nvswitch;
  if (device.sms == 0) device.sms = known->sms;
  if (device.compute_capability == 0) device.compute_capability = known->compute_capability;
}

}  // namespace

FirstConfiguration first_configuration(const FirstMachine& machine, const InitOptions& options) {
  FirstConfiguration f;
  f.backend = backend_for(machine, options);
  f.ranks = options.ranks > 0 ? options.ranks : usual_ranks(machine, f.backend);
  if (f.on_gpus()) {
    take_gpus(f, machine, options);
  } else {
    f.machine = fmt::format("{}, {}", plural(machine.cores, "core"), machine.cpu);
    f.model = small_model;
    f.precision = "fp32";
  }
  f.text = text_of(f, options.output);
  return f;
}

int init(const InitOptions& options, std::ostream& out) {
  if (std::filesystem::exists(options.output)) fail("{} exists; -o names another file", options.output);
  const FirstMachine machine{
      .gpus = machine::gpu_report().gpus,
      .cores = machine::limited_by_quota(static_cast<int>(machine::cores_of(machine::allowed_cpus()).size())),
      .cpu = machine::cpu_model()};
  const FirstConfiguration first = first_configuration(machine, options);
  write_output(options.output, first.text, false);
  const bool crowded = !first.on_gpus() && first.ranks > machine.cores;
  out << fmt::format("wrote {}: backend {}, {}, model {}; {}\n\n", escaped(options.output),
                     config::name_of(first.backend), plural(first.ranks, "rank"), first.model, first.machine)
      << fmt::format(
             "Next, look at the plan, which needs neither MPI nor a GPU, and measure:\n\n"
             "  {0} plan {1} --ranks {2}\n"
             "  mpirun -np {2}{3} {0} sweep {1}\n",
             called(), shell_word(options.output), first.ranks, crowded ? " --oversubscribe" : "");
  return 0;
}

int make_tokens(const MakeTokensOptions& options, std::ostream& out) {
  std::int64_t bytes = 0;
  const auto write = [&](std::ostream& to) {
    data::make_token_file(options.tokens, options.vocabulary, options.seed, [&](std::span<const char> piece) {
      to.write(piece.data(), static_cast<std::streamsize>(piece.size()));
      bytes += static_cast<std::int64_t>(piece.size());
    });
  };
  write_output(options.file, write, options.force);
  out << fmt::format("wrote {}: {} tokens of a vocabulary of {}, {}\n", escaped(options.file), options.tokens,
                     options.vocabulary, show_bytes(static_cast<double>(bytes)));
  return 0;
}

int calibrate(job::Job& job, const CalibrateOptions& options, std::ostream& out, std::ostream& err) {
  const std::string prefix = options.output.empty() ? job.places().front().host : options.output;
  const std::string hardware = prefix + "-hardware.yaml", calibration = prefix + "-calibration.yaml";
  for (const std::string& path : {hardware, calibration}) check_output(path, options.force);
  constexpr double usual_s = 60;
  const double limit_s =
      options.time_budget.empty() ? usual_s : option_value("--time-budget", options.time_budget, parse_seconds);
  const Sizes sizes = sizes_of(job, options);
  const calibrate::Wanted& wanted = sizes.wanted;
  const config::BackendTraits& traits = config::traits_of(wanted.backend);
  static_cast<void>(backends::get(wanted.backend));  // throws Error if the backend is missing
  if (traits.ranks_are_gpus) sweep::require_gpus(job.places(), false, "");
  const int nodes = sweep::topology_of(job.places()).nodes();
  err << fmt::format("harness: calibrating on {} of {}, backend {}, for about {}\n", plural(job.size(), "rank"),
                     plural(nodes, "node"), config::name_of(wanted.backend), show_seconds(limit_s));
  if (job.size() == 1) err << "harness: one rank has nobody to talk to, so no communication is measured\n";
  if (nodes > 1 && !calibrate::measures_within_nodes(job.places())) {
    err << "harness: nothing is measured of the links within a node: that needs as many ranks on each, and more than "
           "one\n";
  }
  calibrate::Device device = calibrate::device_of(job, wanted);
  if (traits.ranks_are_gpus) complete(device, sizes.hardware, options.config, hardware, err);
  const calibrate::Measured measured = calibrate::measure(job, wanted, device, limit_s, [&](const std::string& line) {
    err << fmt::format("harness: {}\n", line) << std::flush;
  });
  const calibrate::Calibrated found = calibrate::calibrated_by(measured);
  const std::string stem = std::filesystem::path(hardware).stem().string();
  write_output(hardware, calibrate::hardware_text(measured, found), options.force);
  write_output(calibration, calibrate::calibration_text(measured, found, wanted, stem), options.force);
  report::Table table;
  table.columns = {{"best rate of all ranks at once", true}, {"measured"}};
  for (const auto& [precision, flops] : measured.peak_flops)
    table.rows.push_back({fmt::format("products, {}", config::name_of(precision)), show_flops(flops)});
  table.rows.push_back({"memory", show_bandwidth(found.memory_bytes_per_s)});
  if (found.link_bytes_per_s > 0)
    table.rows.push_back({"ranks of a node, bus bandwidth", show_bandwidth(found.link_bytes_per_s)});
  if (found.node_bytes_per_s > 0)
    table.rows.push_back({"nodes, bus bandwidth", show_bandwidth(found.node_bytes_per_s)});
  out << fmt::format(
      "{}\n{}\n{}\npredict with: {} sweep CONFIG --backend sim --ranks {} --hardware {} --set calibration={}\n",
      table.text(), escaped(hardware), escaped(calibration), called(), measured.ranks, shell_word(hardware),
      shell_word(calibration));
  return 0;
}

}  // namespace harness::cli
