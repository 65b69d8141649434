#include "plan/from_model.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "plan/plan.h"
#include "workloads/gpt/gpt.h"

namespace harness {
namespace {

struct Sent {
  std::string over, operation;
  std::int64_t bytes = 0;
  bool operator<(const Sent& other) const {
    return std::tie(over, operation, bytes) < std::tie(other.over, other.operation, other.bytes);
  }
};

// Every message of the step that crosses between ranks; the embedding's group is part of the pipeline's axis.
std::set<Sent> messages(const ProgramSet& set) {
  std::set<Sent> all;
  for (const Program& program : set.roles) {
    const auto bytes = [&](const View& v) {
      return v.count * size_of(program.buffers[static_cast<std::size_t>(v.buffer)].type);
    };
    for (const Operation& op : program.step) {
      if (const auto* send = std::get_if<Send>(&op.action)) {
        all.insert({name_of(send->peer.axis), "send_recv", bytes(send->data)});
      } else if (const auto* reduce = std::get_if<AllReduce>(&op.action)) {
        const Group& group = set.groups[static_cast<std::size_t>(reduce->group)];
        if (group.size(set.layout) < 2) continue;
        const std::string over = group.name == "embedding" ? "pipeline" : group.name;
        all.insert({over, "all_reduce", bytes(reduce->data)});
      }
    }
  }
  return all;
}

std::vector<std::string> message_sizes(const ProgramSet& set, const Settings& s) {
  const std::string over = find_variable("collective_over")->print(s), wanted = find_variable("collective")->print(s);
  std::vector<std::string> sizes, others;
  const std::set<Sent> all = messages(set);
  for (const Sent& sent : all) {
    if (sent.over == over && sent.operation == wanted) sizes.push_back(print_bytes_exact(sent.bytes));
    const std::string other = fmt::format("{} over {}", sent.operation, sent.over);
    if (std::ranges::find(others, other) == others.end()) others.push_back(other);
  }
  if (sizes.empty()) {
    fail("the model's step on this layout has no {} over {}; it has {}", wanted, over,
         others.empty() ? "no communication" : join(others, ", "));
  }
  return sizes;
}

std::vector<std::string> products(const ProgramSet& set) {
  std::vector<std::string> shapes;
  for (const Program& program : set.roles) {
    for (const Operation& op : program.step) {
      const auto* m = std::get_if<Matmul>(&op.action);
      if (m == nullptr) continue;
      Settings s;
      s.gemm = {m->m, m->n, m->k, m->transpose_a, m->transpose_b};
      const std::string text = find_variable("gemm")->print(s);
      if (std::ranges::find(shapes, text) == shapes.end()) shapes.push_back(text);
    }
  }
  return shapes;
}

std::vector<std::string> attention_shapes(const ProgramSet& set) {
  std::set<std::string> shapes;
  for (const Program& program : set.roles) {
    for (const Operation& op : program.step) {
      const auto* a = std::get_if<Attention>(&op.action);
      if (a == nullptr) continue;
      Settings s;
      s.attention_shape = {a->shape.batch, a->shape.heads, a->shape.head_dim, a->shape.query_length};
      shapes.insert(find_variable("attention_shape")->print(s));
    }
  }
  return {shapes.begin(), shapes.end()};
}

std::vector<std::string> values_for(const std::string& variable, const Experiment& e, int ranks) {
  Settings training = e.baseline;
  training.workload = WorkloadKind::gpt;
  Layout layout;
  if (const std::string why = check_layout(e.model, training, ranks, layout); !why.empty()) {
    fail("the model's step cannot be had on {} ranks: {}", ranks, why);
  }
  const ProgramSet set = gpt::programs(e.model, training, layout);
  if (variable == "gemm") return products(set);
  return variable == "message_size" ? message_sizes(set, e.baseline) : attention_shapes(set);
}

}  // namespace

Experiment with_model_values(const Experiment& experiment, int ranks) {
  Experiment e = experiment;
  e.changes.clear();
  for (const Change& change : experiment.changes) {
    if (change.from_model.empty()) {
      e.changes.push_back(change);
      continue;
    }
    const Variable& variable = *find_variable(change.variable);
    try {
      for (const std::string& value : values_for(change.variable, experiment, ranks)) {
        if (value == variable.print(experiment.baseline)) continue;
        Settings settings = experiment.baseline;
        variable.parse(settings, value);
        e.changes.push_back({variable.name, value, std::move(settings), ""});
      }
    } catch (const Error& error) {
      fail("{}: from_model: {}", change.from_model, error.what());
    }
  }
  return e;
}

}  // namespace harness
