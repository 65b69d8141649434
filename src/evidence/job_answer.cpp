#include <algorithm>
#include <array>

#include "analysis/published.h"
#include "base/text.h"
#include "config/experiment.h"
#include "config/files.h"
#include "config/registry.h"
#include "evidence/input.h"
#include "evidence/training_job.h"

namespace harness::evidence {
namespace {

// Settings that a configuration's baseline may contain, in output order.
constexpr std::array<const char*, 20> baseline_names{
    "precision",          "global_batch_size",   "micro_batch_size",     "pipeline_schedule", "virtual_pipeline",
    "embedding_as_layer", "rank_order",          "sequence_parallel",    "tp_overlap",        "sharding",
    "sharding_group",     "overlap_grad_reduce", "overlap_param_gather", "prefetch_layers",   "grad_reduce_precision",
    "bucket_size",        "recompute",           "recompute_layers",     "attention",         "cuda_graph"};

Value typed(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  if (const auto integer = number_in<std::int64_t>(text)) return *integer;
  return text;
}

std::string shown(const TrainingJob& job, std::string_view name) {
  const auto found = job.values.find(name);
  if (found == job.values.end()) return "";
  return found->second.shown.empty() ? found->second.value : found->second.shown;
}

std::string sized(double parameters) {
  constexpr double billion = 1e9;
  return parameters >= billion ? fmt::format("{:.1f} B parameters", parameters / billion)
                               : fmt::format("{:.0f} M parameters", parameters / 1e6);
}

// Replaces the 0 in "vocab 0", which stands for an unknown number.
std::string replaced_zeros(std::string text) {
  for (const char* name : {"vocab 0", "sequence 0"}) {
    const std::size_t at = text.find(name);
    const std::size_t end = at == std::string::npos ? 0 : at + std::string_view(name).size();
    if (end > 0 && (end == text.size() || text[end] == ',')) text.replace(end - 1, 1, "unknown");
  }
  return text;
}

// Returns nothing if it is not known whether the MLP is gated.
std::optional<analysis::ModelFlop> flop_of(const TrainingJob& job) {
  return job.has("model.activation") ? analysis::flop_per_token(model_of(job)) : std::nullopt;
}

std::string shape_of(const TrainingJob& job) {
  std::string text;
  if (const auto flop = flop_of(job)) text = sized(flop->parameters);
  if (const auto experts = job.number("experts"); experts && !text.empty())
    text += fmt::format(" with 1 of {} experts", *experts);
  if (const auto ranks = job.number("ranks")) {
    const auto each = job.number("ranks_per_node");
    text += fmt::format("{}{}", text.empty() ? "" : " on ", plural(*ranks, "rank"));
    if (each && *each > 0 && *ranks > *each && *ranks % *each == 0)
      text += fmt::format(" ({} x {})", *ranks / *each, *each);
  }
  std::vector<std::string> layout;
  for (const auto& [name, key] : {std::pair("TP", "layout.tensor_parallel"),
                                  {"PP", "layout.pipeline_parallel"},
                                  {"CP", "layout.context_parallel"},
                                  {"EP", "expert_parallel"}}) {
    const auto n = job.number(key);
    if (!n && job.has(key)) layout.push_back(fmt::format("{} unknown", name));
    if (n && (*n > 1 || name[0] == 'T' || name[0] == 'P')) layout.push_back(fmt::format("{} {}", name, *n));
  }
  if (const std::string replicas = shown(job, "data_parallel"); !replicas.empty())
    layout.push_back(fmt::format("{}DP {}", layout.empty() ? "" : "x ", replicas));
  if (!layout.empty()) text += (text.empty() ? "" : ": ") + join(layout, " ");
  return text;
}

std::string batch_text(const TrainingJob& job) {
  const std::string global = shown(job, "global_batch_size"), micro = shown(job, "micro_batch_size");
  std::string text = global.empty() ? "" : fmt::format("{} sequences", global);
  if (const auto sequence = job.number("model.sequence"))
    text += fmt::format("{} of {} tokens", text.empty() ? "sequences" : "", *sequence);
  if (!micro.empty()) text += fmt::format("{}micro {}", text.empty() ? "" : "; ", micro);
  if (const std::string accumulated = shown(job, "gradient_accumulation"); !accumulated.empty())
    text += fmt::format("; {} accumulated", accumulated);
  return text;
}

std::string settings_text(const TrainingJob& job) {
  std::vector<std::string> settings;
  const bool staged = job.number_or("layout.pipeline_parallel", 1) != 1;
  for (const std::string_view name : {"precision", "sharding", "sharding_group", "recompute", "pipeline_schedule"}) {
    if (const std::string text = shown(job, name); !text.empty() && (staged || name != "pipeline_schedule"))
      settings.push_back(fmt::format("{} {}", name, text));
  }
  for (const char* name : {"sequence_parallel", "overlap_grad_reduce", "overlap_param_gather", "tp_overlap"}) {
    if (job.text(name) == "true") settings.emplace_back(name);
  }
  return join(settings, "  ");
}

std::string zero_headline(const TrainingJob& job) {
  const auto stage = mapped("none=0|optimizer=1|gradients=2|parameters=3", job.text("sharding"));
  std::string text = fmt::format("ZeRO {}, {}", stage.value_or("?"),
                                 job.text("precision").empty() ? "precision not said" : job.text("precision"));
  if (const auto micro = job.number("micro_batch_size")) text += fmt::format(", {} sequences per GPU", *micro);
  if (const auto accumulated = job.number("gradient_accumulation"))
    text += fmt::format(", {} accumulated", *accumulated);
  return text + "; the model is not in this file: add its config.json";
}

/// Writes a configuration with the origin of each value in its line.
class ConfigurationText {
 public:
  explicit ConfigurationText(TrainingJob job) : job_(std::move(job)) {}

  // Includes the settings that text() left out.
  const std::vector<std::string>& cannot() const { return job_.cannot; }
  // Returns options of `read` for the gaps that text() found.
  std::string options() const { return join(hints_, " "); }
  // Throws Error if too little of the job is known.
  std::string text() {
    const std::vector<std::string> gaps = missing();
    const bool predicted =
        std::ranges::any_of(job_.cannot, [](const std::string& text) { return contains(text, "only predicted"); });
    if (!gaps.empty())
      throw Error(fmt::format("no configuration yet; not known: {} ({})", join(gaps, ", "), options()));
    if (predicted && !job_.has("hardware")) {
      hints_.emplace_back("--set hardware=h100-sxm");
      throw Error(
          fmt::format("no configuration yet: it can only be predicted, and that needs the GPU ({})", options()));
    }
    for (;;) {
      write(predicted);
      try {
        if (!leave_out_contradiction(config::load_experiment("job.yaml", {}, out_).baseline)) return out_;
      } catch (const Error& error) {
        throw Error(fmt::format("no configuration: {}", error.what()));
      }
    }
  }

 private:
  void write(bool predicted) {
    out_ = fmt::format("# Written by `harness read` from {}. Each line says where its value is from.\n",
                       escaped(join_first(job_.files, 3)));
    for (const auto& [title, lines] : {std::pair("Not as in the job:", &job_.cannot),
                                       {"Wrong with the job:", &job_.problems},
                                       {"Not read:", &job_.refused}}) {
      if (!lines->empty()) out_ += fmt::format("# {}\n", title);
      for (const std::string& line : *lines) out_ += fmt::format("#   {}\n", escaped(line));
    }
    out_ += fmt::format("name: job\nbackend: {}\n", predicted ? "sim" : "cuda");
    if (const std::string calibration = calibration_of(job_); predicted && !calibration.empty())
      entry("", "calibration", calibration, "fitted to steps of " + job_.framework);
    out_ += "model:\n";
    config::each_key(model_,
                     [&](const config::ModelKey& key, auto&) { line(key.name, fmt::format("model.{}", key.name)); });
    if (job_.has("hardware")) {
      entry("", "hardware", job_.text("hardware"), job_.values.find("hardware")->second.origin);
    } else {
      entry("", "hardware", "none", "the GPU is not said: name its file in configs/hardware, such as h100-sxm");
    }
    out_ += "baseline:\n";
    layout();
    for (const char* name : baseline_names) {
      if (std::string_view(name) == "virtual_pipeline" && job_.number_or(name, 1) < 2) continue;
      if (std::string_view(name) == "tp_overlap" && job_.text(name) != "true")
        continue;  // backend cuda does not accept it at all
      if (std::string_view(name) == "pipeline_schedule" && job_.number_or("layout.pipeline_parallel", 1) < 2) continue;
      line(name, name);
    }
    if (predicted && job_.text("batching") == "packed") line("batching", "batching");
    if (!job_.has("cuda_graph") && !predicted)
      entry("  ", "cuda_graph", "false", "frameworks launch each operation by default");
    environment();
  }

  // Removes one variable that contradicts another, which `plan` would refuse. Returns whether there was one.
  bool leave_out_contradiction(const config::Settings& baseline) {
    for (const config::Variable& variable : config::registry()) {
      const std::string reason = variable.conflict(baseline);
      if (reason.empty()) continue;
      const std::size_t left_out =
          job_.values.erase(variable.name) + std::erase_if(job_.environment, [&](const auto& v) {
            return !v.first.empty() && v.first == variable.environment_name;
          });
      if (left_out == 0) continue;
      say(job_.cannot, "{} is left out: {}", variable.name, reason);
      return true;
    }
    return false;
  }

  std::vector<std::string> missing() {
    std::vector<std::string> gaps;
    const auto miss = [&](const std::string& name, const char* example = "N") {
      gaps.push_back(name);
      hints_.push_back(fmt::format("--set {}={}", name, example));
    };
    for (const char* name : {"layers", "hidden", "heads", "vocab", "sequence"}) {
      if (!job_.number(fmt::format("model.{}", name))) miss(name);
    }
    if (!job_.number("micro_batch_size")) miss("micro_batch_size");
    if (!job_.number("global_batch_size"))
      miss(job_.has("global_batch_size") && !job_.number("ranks") ? "ranks" : "global_batch_size");
    const auto is_open = [&](const std::string& name) { return job_.has(name) && job_.text(name).empty(); };
    for (const auto& [name, example] : {std::pair("sharding", "none"), {"precision", "bf16"}}) {
      if (is_open(name)) miss(name, example);
    }
    for (const char* axis : {"tensor_parallel", "pipeline_parallel", "context_parallel"})
      if (is_open(fmt::format("layout.{}", axis))) miss(axis);
    if (job_.has("model.layers") && !job_.has("model.activation")) miss("activation", "swiglu");
    return gaps;
  }
  void entry(const char* indent, std::string_view key, const std::string& value, const std::string& origin) {
    const std::string text =
        fmt::format("{}{}: {}", indent, key, has_only(value, "_-+. ") ? value : config::yaml_word(value));
    out_ += fmt::format("{:<40} # {}\n", text, escaped(origin));
  }
  void line(std::string_view key, std::string_view name) {
    const auto found = job_.values.find(name);
    if (found == job_.values.end()) return;
    const bool known = found->second.known && !found->second.value.empty();
    if (name == "sharding" && is_sharded_pipeline(job_))
      entry("  ", key, "optimizer", fmt::format("{}: {}", found->second.origin, found->second.value));
    else if (known)
      entry("  ", key, found->second.value, found->second.origin);
    else
      out_ += fmt::format("  # {}: not known: {}\n", key, escaped(found->second.origin));
  }
  void layout() {
    NameValues degrees;
    std::string origin;
    for (const char* axis : {"tensor_parallel", "pipeline_parallel", "context_parallel"}) {
      const std::string name = fmt::format("layout.{}", axis);
      const std::int64_t n = job_.number_or(name, 1);
      if (n == 1 && axis[0] != 't') continue;
      degrees.emplace_back(axis, std::to_string(n));
      const auto found = job_.values.find(name);
      if (found != job_.values.end() && !contains(origin, found->second.origin))
        origin += (origin.empty() ? "" : "; ") + found->second.origin;
    }
    out_ += fmt::format("{:<40} # {}\n", fmt::format("  layout: {}", print_map(degrees)),
                        escaped(origin.empty() ? "default" : origin));
  }
  void environment() {
    std::string rest;
    for (const auto& [name, value] : job_.environment) {
      if (name.starts_with("MASTER_") || config::belongs_to_launcher(name)) continue;
      try {
        const auto variable = std::ranges::find(config::registry(), name, &config::Variable::environment_name);
        if (variable != config::registry().end()) {
          config::Settings settings;
          variable->parse(settings, value);
          entry("  ", variable->name, variable->print(settings), name);
        } else {
          config::check_env_entry(name, value);
          rest += fmt::format("    {}: {}\n", name, config::yaml_word(value));
        }
      } catch (const Error&) {  // set by harness or its launcher
        out_ += fmt::format("  # {}={} is left to harness\n", escaped(name), escaped(value));
      }
    }
    if (!rest.empty()) out_ += "  env:\n" + rest;
  }

  TrainingJob job_;
  config::Model model_;
  std::string out_;
  std::vector<std::string> hints_;
};

}  // namespace

const std::vector<JobFact>& job_facts() {
  static const std::vector<JobFact> all = [] {
    constexpr std::string_view rows =  // "key=name", or one word if both are equal; '!': always
        "model=model_name layers=model.layers! hidden=model.hidden! heads=model.heads! kv_heads=model.kv_heads! "
        "ffn=model.ffn! activation=model.activation norm=model.norm positions=model.positions "
        "rope_theta=model.rope_theta tied_embeddings=model.tied_embeddings biases=model.biases vocab=model.vocab! "
        "sequence=model.sequence! precision tp=layout.tensor_parallel pp=layout.pipeline_parallel vpp=virtual_pipeline "
        "pipeline_schedule overlap_p2p cp=layout.context_parallel ep=expert_parallel dp=data_parallel ranks! "
        "ranks_per_node micro_batch=micro_batch_size! global_batch=global_batch_size! gradient_accumulation batching "
        "sharding sharding_group recompute sequence_parallel overlap_grad_reduce overlap_param_gather "
        "grad_reduce_precision bucket_elements tp_overlap gpu=hardware!";
    std::vector<JobFact> facts;
    for (std::string_view row : words_of(rows)) {
      const bool always = row.ends_with('!');
      row.remove_suffix(always ? 1 : 0);
      const std::size_t equals = row.find('=');
      facts.push_back({std::string(row.substr(0, equals)), std::string(row.substr(equals + 1)), always});
    }
    return facts;
  }();
  return all;
}

const std::vector<GapKey>& gap_keys() {
  static const std::vector<GapKey> keys = [] {
    std::vector<GapKey> all;
    config::Model model;
    config::each_key(model, [&](const config::ModelKey& row, auto& value) {
      const bool number = std::is_same_v<std::remove_cvref_t<decltype(value)>, std::int64_t>;
      all.push_back({std::string(row.name), fmt::format("model.{}", row.name), number});
    });
    for (const char* axis : {"tensor_parallel", "pipeline_parallel", "context_parallel"})
      all.push_back({axis, fmt::format("layout.{}", axis), true});
    for (const std::string name : {"micro_batch_size", "ranks_per_node"}) all.push_back({name, name, true});
    for (const std::string name : {"precision", "sharding", "recompute", "framework_version"})
      all.push_back({name, name, false});
    return all;
  }();
  return keys;
}

Answer answer_of(const TrainingJob& job) {
  Answer out = Answer::of("job", job.kind);
  out.calibration = calibration_of(job);
  out.files = job.files;
  out.problems = job.problems;
  out.refused = job.refused;
  out.notes = job.notes;
  out.fact("framework", job.framework.empty() ? "unknown" : job.framework);
  if (!job.launcher.empty()) out.fact("launcher", job.launcher);
  for (const JobFact& fact : job_facts()) {
    const std::string text = shown(job, fact.name);
    if (!text.empty() || fact.always) out.fact(fact.key, text.empty() ? Value("unknown") : typed(text));
  }
  std::vector<std::string> variables;
  for (const auto& [name, value] : job.environment) variables.push_back(fmt::format("{}={}", name, value));
  if (!variables.empty()) out.fact("env", join(variables, "; "));

  const std::string shape = shape_of(job);
  out.headline = job.headline;
  const auto otherwise = [&](bool holds, const std::string& text) {
    if (holds && out.headline.empty()) out.headline = text;
  };
  if (!job.problems.empty())  // without its remedy, which follows below
    otherwise(true, job.problems.front().substr(0, job.problems.front().rfind(": ")));
  otherwise(job.framework == "deepspeed" && !job.has("model.layers"), zero_headline(job));
  otherwise(true, shape);
  otherwise(true, job.kind + ", of which no shape is known");
  const auto row = [&](const char* label, std::string text) {
    if (!text.empty() && text != out.headline) out.tell(label, std::move(text));
  };
  const std::string by = job.launcher.empty() || job.framework.empty() ? "" : ", started by " + job.launcher;
  row("framework", job.framework + by);
  const config::Model model = model_of(job);
  if (model.layers > 0 && model.hidden > 0 && model.heads > 0) row("model", replaced_zeros(config::in_words(model)));
  row("job", shape);
  row("batch", batch_text(job));
  row("settings", settings_text(job));
  if (const auto flop = flop_of(job); flop && model.sequence > 0) {
    constexpr double giga = 1e9;
    row("FLOP",
        fmt::format("{:.2f} GFLOP per token, forward and backward, causal attention at half", flop->causal / giga));
    out.fact("gflop_per_token", flop->causal / giga);
  }
  row("environment", join_first(variables, 4));
  if (!job.has("experts"))  // published steps are for dense models
    row("published",
        analysis::published_steps({model, job.text("hardware"), job.text("precision"), job.number_or("ranks", 0)})
            .text);

  ConfigurationText configuration(job);
  try {
    out.configuration = configuration.text();
  } catch (const Error& error) {
    out.notes.emplace_back(error.what());
  }
  out.cannot = configuration.cannot();
  std::string again = "./harness read";
  for (const std::string& file : job.files) again += " " + shell_word(file);
  for (const std::string& option : job.typed) again += " " + option;
  if (!out.configuration.empty()) {
    const auto ranks = job.number("ranks");
    out.next.push_back(again + " -o job.yaml");
    say(out.next, "./harness plan job.yaml --ranks {}", ranks ? std::to_string(*ranks) : "N");
  } else if (const std::string options = configuration.options(); !options.empty()) {
    say(out.next, "{} {} -o job.yaml", again, options);
  }
  return out;
}

}  // namespace harness::evidence
