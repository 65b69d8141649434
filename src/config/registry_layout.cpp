#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "config/fields.h"
#include "config/missing.h"
#include "config/registry_rows.h"

namespace harness::config {
namespace {

std::vector<std::string> layout_parts() {
  std::vector<std::string> parts;
  for (const program::Axis axis : program::configurable_axes) parts.emplace_back(program::row_of(axis).key);
  return parts;
}

// "{tensor_parallel: 2, pipeline_parallel: 1}", with the size of an axis as `size` prints it.
template <class Size>
std::string layout_text(Size size) {
  std::vector<std::string> parts;
  for (const program::Axis axis : program::configurable_axes) {
    parts.push_back(fmt::format("{}: {}", program::row_of(axis).key, size(axis)));
  }
  return fmt::format("{{{}}}", join(parts, ", "));
}

std::string print_layout(const Settings& s) {
  return layout_text([&](program::Axis axis) { return s.layout[axis]; });
}

// As print_layout() has it, or any part of it.
void parse_layout(Settings& settings, std::string_view text) {
  program::Layout layout = settings.layout;
  const std::string example =
      layout_text([](program::Axis axis) { return axis == program::configurable_axes[0] ? 2 : 1; });
  for (const auto& part : parts_of(text, example)) {
    const std::string &key = part.first, &value = part.second;
    const auto has_key = [&](program::Axis axis) { return key == program::row_of(axis).key; };
    const auto* axis = std::ranges::find_if(program::configurable_axes, has_key);
    if (axis == program::configurable_axes.end()) {
      if (const std::string why = nothing_like(key); !why.empty()) fail("found {}; {}", quote(key), why);
      fail("found {}; allowed: {}{}", quote(key), program::configurable_axis_keys(),
           did_you_mean(nearest(key, layout_parts())));
    }
    layout[*axis] = static_cast<int>(parse_within(value, 1, max_ranks));
  }
  settings.layout = layout;
}

// ---- rank_order: the axes by their short names, fastest first.

// Whether a configuration knows the axis.
bool is_told(program::Axis axis) {
  return std::ranges::find(program::visible_axes, axis) != program::visible_axes.end();
}

std::string short_name(program::Axis axis) {
  return lower(program::row_of(axis).short_name);
}

std::string order_text(const program::AxisOrder& order) {
  std::vector<std::string> names;
  for (const program::Axis axis : order) {
    if (is_told(axis)) names.push_back(short_name(axis));
  }
  return join(names, "-");
}

// All of them, from the usual one on. Where context is not told, one rank stands along it; it keeps its place behind
// tensor.
std::vector<program::AxisOrder> rank_orders() {
  using program::Axis;
  std::vector<program::AxisOrder> orders;
  program::AxisOrder order = program::usual_order;
  do {
    const auto* tensor = std::ranges::find(order, Axis::tensor);
    const bool in_place = tensor + 1 != order.end() && tensor[1] == Axis::context;
    if (is_told(Axis::context) || in_place) orders.push_back(order);
  } while (std::ranges::next_permutation(order).found);
  return orders;
}

std::vector<std::string> rank_order_words() {
  std::vector<std::string> words;
  for (const program::AxisOrder& order : rank_orders()) words.push_back(order_text(order));
  return words;
}

void parse_rank_order(Settings& settings, std::string_view text) {
  std::vector<std::string> told;
  for (const std::string_view word : split(text, '-')) {
    const std::string name = lower(word);
    const bool untold = std::ranges::any_of(
        program::usual_order, [&](program::Axis axis) { return !is_told(axis) && name == short_name(axis); });
    if (!untold) told.push_back(name);
  }
  const std::vector<program::AxisOrder> orders = rank_orders();
  const auto found = std::ranges::find(orders, join(told, "-"), order_text);
  if (found == orders.end()) {
    fail("found {}; allowed: {}, where the first axis varies fastest", quote(text), join(rank_order_words(), ", "));
  }
  settings.layout.order = *found;
}

std::string without_two_axes(const Settings& s) {
  const auto cut = std::ranges::count_if(s.layout.size, [](int size) { return size > 1; });
  const bool replicas = s.ranks == 0 || s.ranks > s.replica_ranks();
  if (cut + (replicas ? 1 : 0) > 1) return "";
  return "the ranks stand along one axis";
}

}  // namespace

std::vector<Variable> layout_variables() {
  std::vector<Variable> rows;
  rows.push_back({.name = "layout",
                  .allowed = layout_text([](program::Axis) { return 'N'; }),
                  .examples = {"{tensor_parallel: 2}", "{tensor_parallel: 4}"},
                  .help = "how the model is cut; data_parallel is what remains: ranks / (tensor * pipeline)",
                  .backends = everywhere,
                  .parts = layout_parts(),
                  .parse = parse_layout,
                  .print = print_layout,
                  .acts_on = {Part::matrix_products, Part::attention, Part::other_compute, Part::tensor, Part::pipeline,
                              Part::data, Part::embedding, Part::bubble, Part::idle},
                  .rebuild = Rebuild::communicators,
                  .workloads = communicating});
  rows.push_back({.name = "rank_order",
                  .allowed = join(rank_order_words(), ", "),
                  .choices = {rank_order_words(), true},
                  .help = "how ranks are numbered along the axes of the layout, fastest first: which of them share a "
                          "node",
                  .backends = everywhere,
                  .parse = parse_rank_order,
                  .print = [](const Settings& s) { return order_text(s.layout.order); },
                  .acts_on = {Part::tensor, Part::pipeline, Part::data, Part::embedding},
                  .rebuild = Rebuild::communicators,
                  .without_effect = without_two_axes,
                  .workloads = communicating});
  return rows;
}

}  // namespace harness::config
