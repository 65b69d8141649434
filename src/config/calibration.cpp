#include "config/calibration.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <variant>

#include "base/text.h"
#include "base/units.h"
#include "config/choice.h"
#include "config/fields.h"
#include "config/files.h"
#include "config/settings.h"

namespace harness::config {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> operation_names() {
  const auto named = []<std::size_t... I>(std::index_sequence<I...>) {
    return std::vector{std::string(std::variant_alternative_t<I, program::Action>::name)...};
  };
  return named(std::make_index_sequence<std::variant_size_v<program::Action>>());
}

Field::Parse seconds(double& into) {
  return number_into(
      into, parse_seconds, [](double s) { return s >= 0; }, "0 s or more");
}

Field::Parse number(double& into) {
  return number_into(
      into, parse_real, [](double x) { return x >= 0 && x <= 1e6; }, "a number from 0 to 1000000");
}

BackendKind parse_whose(std::string_view text) {
  const BackendKind kind = parse_backend(text);
  if (traits_of(kind).predicts()) fail("found {}; allowed: a backend that computes", quote(text));
  return kind;
}

// Element-wise operations stay separate kernels beside GEMMs, as with Transformer Engine and torch.compile.
constexpr program::FusedSet fused_elementwise = program::Fused::matmul_bias | program::Fused::matmul_bias_gradient |
                                                program::Fused::cross_entropy | program::Fused::norm_bias_gradient;

// "backend": the forms that `backend` runs without lowering.
void parse_fused(program::FusedSet& into, BackendKind backend, std::string_view text) {
  const std::array<Choice<program::FusedSet>, 4> sets{{{"all", program::all_fused},
                                                       {"elementwise", fused_elementwise},
                                                       {"none", 0},
                                                       {"backend", traits_of(backend).fused}}};
  into = parse_choice(text, sets);
}

constexpr int most_counted = 1'000'000;  // ranks, steps, changes

constexpr std::array<Choice<AttentionKernel>, 5> kernels{{{"fa1", AttentionKernel::fa1},
                                                          {"fa2", AttentionKernel::fa2},
                                                          {"fa3", AttentionKernel::fa3},
                                                          {"fa4", AttentionKernel::fa4},
                                                          {"cudnn", AttentionKernel::cudnn}}};

constexpr std::array<Choice<bool>, 2> of_sustained{{{"peak", false}, {"sustained", true}}};

// "{gb200: 88 %}", by hardware file.
Field shares_by_gpu(std::map<std::string, double>& into, Problems& problems) {
  return Field::other("on", Takes::map, [&](const YamlNode& node, const std::string& key) {
    if (node.kind != YamlNode::Kind::map)
      return problems.add(node.place, key,
                          fmt::format("found {}; expected a map such as {{gb200: 88 %}}", describe(node)));
    for (const YamlNode& child : node.children)
      parse_or_report(problems, child.place, dotted(key, child.key), child.scalar, share_into(into[child.key]));
  });
}

// "-3.2 %".
double parse_error(std::string_view text) {
  const bool below = text.starts_with('-');
  const double size = parse_share(below || text.starts_with('+') ? text.substr(1) : text);
  if (!(size >= 0 && size <= 100)) fail("found {}; allowed: an error such as -3.2 %", quote(text));
  return below && size > 0 ? -size : size;
}

// "2 to 512".
CalibratedRange parse_range(std::string_view text) {
  constexpr std::string_view between = " to ";
  constexpr std::int64_t most = 1'000'000'000'000;
  const std::size_t at = text.find(between);
  if (at == std::string_view::npos) fail("found {}; expected a range such as 2 to 512", quote(text));
  const std::int64_t least = parse_within(text.substr(0, at), 1, most);
  return {least, parse_within(text.substr(at + between.size()), least, most)};
}

// A list of "{flop: 37748736, time: 250 us}", or of bytes.
void read_curve(const YamlNode& node, const std::string& key, Curve& curve, Problems& problems) {
  if (node.kind != YamlNode::Kind::sequence || node.children.empty())
    return problems.add(node.place, key, "expected a list of points, such as [{bytes: 4096, time: 12 us}]");
  std::vector<CurvePoint> points;
  for (const YamlNode& child : node.children) {
    CurvePoint point;
    const auto above_zero = [](double& into, double (*parse)(std::string_view)) {
      return number_into(
          into, parse, [](double x) { return x > 0 && x < 1e30; }, "what is above 0");
    };
    const std::vector<Field> fields{Field::scalar("flop", above_zero(point.size, parse_real)),
                                    Field::scalar("bytes", above_zero(point.size, parse_real)),
                                    Field::scalar("time", above_zero(point.seconds, parse_seconds)).required()};
    if (!read_map(problems, child, key, fields)) return;
    if (point.size > 0 && point.seconds > 0) {
      points.push_back(point);
    } else if (!problems.concern(key)) {
      problems.add(child.place, key, "a point has its flop or its bytes, and its time");
    }
  }
  curve = Curve(std::move(points));
}

// Returns the fields of a map of operations: calls take(name, value, its key) for each one present.
std::vector<Field> per_operation(
    const std::function<void(const std::string& name, const YamlNode& node, const std::string& key)>& take) {
  std::vector<Field> fields;
  for (const std::string& name : operation_names()) {
    fields.push_back(Field::other(
        name, Takes::map, [name, take](const YamlNode& node, const std::string& key) { take(name, node, key); }));
  }
  return fields;
}

// "matmul: {bytes: 1.2, host: 2}", a map for each kind of operation.
Field kinds_field(const char* key, bool backward, Software& software, Problems& problems) {
  return Field::section(key,
                        per_operation([&, backward](const std::string& name, const YamlNode& node, const auto& at) {
                          KindCost cost;
                          const std::vector<Field> fields{Field::scalar("bytes", number(cost.bytes)),
                                                          Field::scalar("host", number(cost.host_operations))};
                          if (read_map(problems, node, at, fields)) software.kinds[backward][name] = cost;
                        }));
}

// "measured: {fp32: {matmul: […]}, ranks: 2, communications: {all_reduce: […]}}".
Field measured_field(MeasuredCurves& m, Problems& problems) {
  std::vector<Field> fields;
  for (const PrecisionRow& row : precision_table) {
    fields.push_back(Field::section(
        row.name, per_operation([&, precision = row.precision](const auto& name, const YamlNode& node, const auto& at) {
          read_curve(node, at, m.computations[{precision, name}], problems);
        })));
  }
  fields.push_back(Field::scalar("ranks", whole_into(m.ranks, 1, most_counted)));
  fields.push_back(
      Field::section("communications", per_operation([&](const auto& name, const YamlNode& node, const auto& at) {
                       Curve& curve = m.communications[name];
                       read_curve(node, at, curve, problems);
                       curve = curve.rising();  // points scatter, but a larger size never takes less time
                     })));
  return Field::section("measured", fields);
}

Field needed(const std::string& key, const Field::Parse& parse) {
  return Field::scalar(key, parse).required();
}

std::vector<Field> software_fields(Software& s, const BackendKind& backend, Problems& problems) {
  return {needed("fused", [&](auto text) { parse_fused(s.fused, backend, text); }),
          needed("host", seconds(s.host_s)),
          needed("kernel", seconds(s.kernel_s)),
          needed("step", seconds(s.step_s)),
          Field::scalar("growth", share_into(s.growth)),
          Field::section("casts", {Field::scalar("fp8", number(s.cast_bytes[Precision::fp8])),
                                   Field::scalar("mxfp8", number(s.cast_bytes[Precision::mxfp8])),
                                   Field::scalar("nvfp4", number(s.cast_bytes[Precision::nvfp4]))}),
          Field::scalar("hop", seconds(s.hop_s)),
          Field::scalar("gradient_bytes", number(s.gradient_bytes)),
          Field::scalar("accumulation_bytes", number(s.accumulation_bytes)),
          Field::section("score_bytes", {Field::scalar("forward", number(s.score_bytes_forward)),
                                         Field::scalar("backward", number(s.score_bytes_backward))}),
          Field::section("copies", {Field::scalar("forward", number(s.copies_forward)),
                                    Field::scalar("backward", number(s.copies_backward))}),
          Field::scalar("host_power", number(s.host_power)),
          Field::scalar("computes_beside_tensor", parsed_into(s.computes_beside_tensor, parse_bool)),
          Field::scalar("scatter_messages", parsed_into(s.scatters_messages, parse_bool)),
          kinds_field("operations", false, s, problems),
          kinds_field("operations_backward", true, s, problems)};
}

Calibration calibration_in(const fs::path& path, Problems& problems) {
  Calibration c;
  const int source = problems.add_file(path.string());
  const auto content = read_text_file(path.string(), source, problems);
  const auto root = content ? parse_yaml(*content, source, problems) : std::nullopt;
  if (!root) return c;
  Software& s = c.software;
  WithinNode within;
  StepError step;  // the entry of `errors` that is being read
  const auto kernel = [&](auto text) { c.attention_kernel = parse_choice(text, kernels); };
  const YamlNode* attention = root->find("attention");
  const bool names_kernel = attention != nullptr && attention->find("kernel") != nullptr;
  const std::vector<Field> fields{
      needed("name", line_into(c.name)),
      needed("source", line_into(c.source)),
      Field::scalar("backend", parsed_into(c.backend, parse_whose)),
      Field::section("products",
                     {needed("share", share_into(c.product_share)), needed("ramp", number(c.product_ramp)),
                      Field::scalar("of", [&](auto text) { c.share_of_sustained = parse_choice(text, of_sustained); }),
                      shares_by_gpu(c.share_on, problems)})
          .required(),
      Field::section("memory", {needed("share", share_into(c.memory_share))}).required(),
      Field::section("attention", {Field::scalar("kernel", kernel),
                                   Field::scalar("forward", share_into(c.attention_forward)).required(!names_kernel),
                                   Field::scalar("backward", share_into(c.attention_backward)).required(!names_kernel),
                                   Field::scalar("ramp", number(c.attention_ramp)).required(!names_kernel)})
          .required(),
      Field::section("network",
                     {needed("share", share_into(c.network_share)), needed("start", seconds(c.network_start_s)),
                      needed("hop", seconds(c.network_hop_s)), needed("message", seconds(c.message_start_s))})
          .required(root->find("within_node") == nullptr),
      Field::section("within_node",
                     {needed("share", share_into(within.share)), needed("start", seconds(within.start_s)),
                      needed("message", seconds(within.message_s))}),
      measured_field(c.measured, problems),
      Field::section("overlap", {needed("taken", share_into(c.taken_by_communication)),
                                 needed("kept", share_into(c.kept_by_communication)),
                                 Field::scalar("tensor_hidden", share_into(c.tensor_hidden))})
          .required(),
      Field::section("software", software_fields(s, c.backend, problems)).required(),
      Field::section("changes", {needed("error", share_into(c.change.median)),
                                 needed("error_90", share_into(c.change.nine_of_ten))}),
      Field::sections(
          "errors",
          {needed("id", line_into(step.id)), needed("gpu", line_into(step.gpu)), needed("group", line_into(step.group)),
           needed("lab", line_into(step.lab)), needed("error", parsed_into(step.error, parse_error))},
          "", [&](const auto&...) { c.errors.push_back(std::exchange(step, {})); }),
      Field::section("calibrated", {Field::list(
                                        "gpus", [&](auto text) { c.gpus.emplace_back(text); },
                                        "a list of files of hardware/, such as [h100-sxm]")
                                        .required(),
                                    needed("ranks", parsed_into(c.ranks, parse_range)),
                                    needed("hidden", parsed_into(c.hidden, parse_range)),
                                    needed("sequence", parsed_into(c.sequence, parse_range)),
                                    needed("message_bytes", parsed_into(c.message_bytes, parse_range))})};
  read_map(problems, *root, "", fields);
  if (root->find("within_node") != nullptr) c.within_node = within;
  return c;
}

}  // namespace

Curve::Curve(std::vector<CurvePoint> points) {
  std::ranges::sort(points, {}, &CurvePoint::size);
  for (std::size_t from = 0, to = 0; from < points.size(); from = to) {
    double logs = 0;
    for (; to < points.size() && points[to].size == points[from].size; ++to) logs += std::log(points[to].seconds);
    points_.push_back({points[from].size, std::exp(logs / static_cast<double>(to - from))});
  }
}

Curve Curve::rising() const {
  Curve curve = *this;
  for (std::size_t i = 1; i < curve.points_.size(); ++i)
    curve.points_[i].seconds = std::max(curve.points_[i].seconds, curve.points_[i - 1].seconds);
  return curve;
}

double Curve::seconds_at(double size) const {
  if (points_.empty()) return 0;
  const auto above = std::ranges::lower_bound(points_, size, {}, &CurvePoint::size);
  if (above == points_.begin()) return above->seconds;
  const CurvePoint& low = *(above - 1);
  if (above == points_.end()) return low.seconds * size / low.size;
  const double share = std::log(size / low.size) / std::log(above->size / low.size);
  return low.seconds * std::pow(above->seconds / low.seconds, share);
}

const Curve* MeasuredCurves::computation(Precision precision, std::string_view operation) const {
  const auto found = computations.find({precision, std::string(operation)});
  return found == computations.end() ? nullptr : &found->second;
}

const Curve* MeasuredCurves::communication(std::string_view operation) const {
  const auto found = communications.find(operation);
  return found == communications.end() ? nullptr : &found->second;
}

bool Calibration::has_measured(const Hardware& hardware) const {
  return std::ranges::find(gpus, hardware.gpu_file()) != gpus.end();
}

KindCost Software::cost_of(const program::Operation& operation) const {
  const bool backward = operation.label.phase == program::Phase::backward && !operation.label.recomputed;
  for (const bool own : {backward, false}) {
    if (const auto found = kinds[own].find(program::name_of(operation.action)); found != kinds[own].end())
      return found->second;
  }
  return {};
}

Calibration calibration_named(const std::string& name) {
  Problems problems;
  Calibration calibration = calibration_in(find_data_file("calibration", name, ""), problems);
  problems.throw_if_any();
  calibration.file = name;
  return calibration;
}

UsualCalibration usual_calibration(const Settings& s) {
  const char* today = "megatron-2025";
  const int tensor = s.layout[program::Axis::tensor], stages = s.layout[program::Axis::pipeline];
  if (s.workload != training_workload) return {"harness", "one operation of this program"};
  if (s.precision == Precision::fp16 && s.attention == AttentionKind::unfused)
    return {"megatron-2022", "precision fp16 with attention unfused"};
  if (tensor > 1) return {today, fmt::format("tensor_parallel {}", tensor)};
  if (stages > 1) return {today, fmt::format("pipeline_parallel {}", stages)};
  if (s.context() > 1) return {today, fmt::format("context_parallel {}", s.context())};
  if (s.sharding == Sharding::parameters) return {"torch-fsdp", "sharding parameters alone"};
  if (s.sharding != Sharding::none) return {today, "a sharded optimizer"};
  return {"harness", "a layout that divides nothing but the batch"};
}

std::optional<Calibration> read_calibration(const std::string& text, const Place& place, const std::string& config_path,
                                            Problems& problems) {
  fs::path path;
  const auto find_it = [&](std::string_view) { path = find_data_file("calibration", text, config_path); };
  if (!parse_or_report(problems, place, "calibration", text, find_it)) return std::nullopt;
  Calibration calibration = calibration_in(path, problems);
  calibration.file = text;
  return calibration;
}

}  // namespace harness::config
