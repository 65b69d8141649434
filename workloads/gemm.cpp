#include <algorithm>

#include "config/registry.h"
#include "workloads/operations.h"
#include "workloads/step.h"

namespace harness::workloads {
namespace {

config::GemmShape shape_of(const program::Matmul& m) {
  return {m.m, m.n, m.k, m.transpose_a, m.transpose_b};
}

class GemmWorkload : public Workload {
 public:
  std::string_view name() const override { return "gemm"; }

  program::ProgramSet programs(const config::Model&, const config::Settings& s,
                               const program::Layout& layout) const override {
    program::ProgramBuilder builder = step_builder();
    StepFrame frame(builder, 0, "share");
    Operands operands(builder, s);
    const config::GemmShape& g = s.gemm;
    const program::View a = operands.random("a", g.m * g.k);
    const program::View b = operands.random("b", g.k * g.n);
    const program::Matmul product{.a = a,
                                  .b = b,
                                  .out = operands.empty("out", g.m * g.n),
                                  .m = g.m,
                                  .n = g.n,
                                  .k = g.k,
                                  .transpose_a = g.transpose_a,
                                  .transpose_b = g.transpose_b};
    frame.begin_step();
    frame.set_share(1.0 / layout.ranks());
    for (int i = 0; i < s.repetitions; ++i)
      builder.emit(compute_stream, product, {"product", program::Phase::forward, -1, i});
    frame.end_step();
    return same_on_all_ranks(layout, builder.take());
  }

  Rate rate(const config::Settings& s, const program::Layout&) const override {
    const config::GemmShape& g = s.gemm;
    const std::int64_t elements = g.m * g.k + g.k * g.n + g.m * g.n;
    return {"gemm", s.repetitions, static_cast<double>(elements * program::size_of(element_type(s)))};
  }

  std::vector<std::string> values_from_model(const program::ProgramSet& training_step,
                                             const config::Settings&) const override {
    std::vector<std::string> shapes;
    for (const program::Program& program : training_step.roles) {
      for (const program::Operation& op : program.step) {
        const auto* m = std::get_if<program::Matmul>(&op.action);
        if (m == nullptr) continue;
        config::Settings s;
        s.gemm = shape_of(*m);
        const std::string text = config::find_variable("gemm")->print(s);
        if (std::ranges::find(shapes, text) == shapes.end()) shapes.push_back(text);
      }
    }
    return shapes;
  }

  std::vector<std::string> uses_in_model(const program::ProgramSet& training_step,
                                         const config::Settings& s) const override {
    std::vector<std::string> uses;
    for (const program::Program& program : training_step.roles) {
      for (const program::Operation& op : program.step) {
        const auto* m = std::get_if<program::Matmul>(&op.action);
        if (m != nullptr && shape_of(*m) == s.gemm) add_use(uses, op.label);
      }
    }
    return uses;
  }
};

}  // namespace

const Workload& gemm_workload() {
  static const GemmWorkload workload;
  return workload;
}

}  // namespace harness::workloads
