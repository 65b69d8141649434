#include <fmt/format.h>

#include <iterator>
#include <limits>
#include <tuple>
#include <vector>

#include "selftest/operation_cases.h"

namespace harness::selftest {
namespace {

std::string shape(std::int64_t rows, std::int64_t width) {
  return fmt::format("{} x {}", rows, width);
}

struct RowsSize {
  std::int64_t rows, width;
  bool large = false;
};
// Odd widths test the ends of vectors, wide rows several passes of a block, few rows an almost empty device.
constexpr RowsSize row_sizes[] = {{1, 8}, {5, 33}, {64, 96}, {37, 257}, {130, 2048}, {8192, 2048, true}};
// Rows that exceed registers, and (backward) column sums that exceed registers, then shared memory.
constexpr RowsSize wide_sizes[] = {{9, 1027}, {5, 5120}, {3, 12288}, {4, 16392}, {4, 20000}};

// Norms differ in whether they subtract a mean and add beta.
template <class Norm>
OperationCase norm_case(program::DType type, const RowsSize& s, bool bias, bool residual) {
  CaseBuilder b(type, s.large);
  const std::int64_t n = s.rows * s.width;
  Norm op;
  op.rows = s.rows;
  op.width = s.width;
  op.in = b.normal("in", n, 1, 0.5);
  if (bias) op.bias = b.normal("bias", s.width);
  if (residual) op.residual = b.normal("residual", n);
  op.gamma = b.normal("gamma", s.width, 0.2, 1);
  if constexpr (requires { op.beta; }) op.beta = b.normal("beta", s.width, 0.2);
  if (bias || residual) op.sum = b.output("sum", n);
  op.out = b.output("out", n);
  if constexpr (requires { op.mean; }) op.mean = b.output("mean", program::DType::f32, s.rows);
  op.rstd = b.output("rstd", program::DType::f32, s.rows);
  return b.take(op, shape(s.rows, s.width) + (bias ? ", bias" : "") + (residual ? ", residual" : ""));
}

template <class Norm, class Backward>
OperationCase norm_backward_case(program::DType type, const RowsSize& s, bool dresidual, bool dbias, bool accumulate) {
  CaseBuilder b(type, s.large);
  const std::int64_t n = s.rows * s.width;
  Backward op;
  op.rows = s.rows;
  op.width = s.width;
  op.accumulate = accumulate;
  op.dout = b.normal("dout", n);
  op.sum = b.normal("sum", n, 1, 0.5);
  op.gamma = b.normal("gamma", s.width, 0.2, 1);
  Norm forward;
  if constexpr (requires { op.mean; }) forward.mean = op.mean = b.output("mean", program::DType::f32, s.rows);
  forward.rstd = op.rstd = b.output("rstd", program::DType::f32, s.rows);
  forward.in = op.sum;
  forward.gamma = op.gamma;
  if constexpr (requires { forward.beta; }) forward.beta = b.normal("beta", s.width);
  forward.out = b.output("normalised", n);
  forward.rows = s.rows;
  forward.width = s.width;
  b.prepare(forward);
  if (dresidual) op.dresidual = b.normal("dresidual", n);
  op.din = b.output("din", n);
  op.dgamma = b.result("dgamma", program::DType::f32, s.width, accumulate);
  if constexpr (requires { op.dbeta; }) op.dbeta = b.result("dbeta", program::DType::f32, s.width, accumulate);
  if (dbias) op.dbias = b.result("dbias", program::DType::f32, s.width, accumulate);
  return b.take(op, shape(s.rows, s.width) + (dresidual ? ", dresidual" : "") + (dbias ? ", dbias" : "") +
                        (accumulate ? ", added" : ""));
}

}  // namespace

void add_elementwise_cases(Cases& cases, program::DType type) {
  using program::DType;
  for (const std::int64_t n : {1, 4099}) {
    const auto add = [&](const char* what, const auto& make) {
      add_case(cases, CaseBuilder(type), fmt::format("{} {}", n, what), make);
    };
    add("numbers", [&](CaseBuilder& b) { return program::Fill{b.output("out", n), 1.5}; });
    if (type == DType::f32)
      add("whole numbers", [&](CaseBuilder& b) { return program::Fill{b.output("out", DType::i32, n), 7}; });
    add("from f32", [&](CaseBuilder& b) {
      return program::Convert{b.normal("in", DType::f32, n), b.output("out", n)};
    });
    add("to f32", [&](CaseBuilder& b) { return program::Convert{b.normal("in", n), b.output("out", DType::f32, n)}; });
  }
  if (type == DType::f32) {
    for (const int parts : {1, 2}) {
      CaseBuilder b(type);
      b.shard(parts - 1, parts);
      const program::Initialize op{.out = b.output("out", std::int64_t{3} * 5 * 7),
                                   .first_index = 1000003,
                                   .axis = program::Axis::tensor,
                                   .outer = 3,
                                   .full = std::int64_t{5} * parts,
                                   .part = 5,
                                   .inner = 7,
                                   .mean = 0.5,
                                   .deviation = 0.02};
      cases.push_back(b.take(op, parts == 1 ? "whole tensor" : "second of two parts"));
    }
    add_case(cases, CaseBuilder(type), "step 8 in a ring of 5", [](CaseBuilder& b) {
      return program::Record{b.normal("value", 1), b.normal("ring", 5), b.constant("counter", DType::i32, 8)};
    });
  }
  for (const RowsSize& s : row_sizes) {
    const std::int64_t rows = s.rows, width = s.width, n = rows * width;
    const auto add = [&](const std::string& what, const auto& make) {
      add_case(cases, CaseBuilder(type, s.large), shape(rows, width) + what, make);
    };
    add("", [&](CaseBuilder& b) { return program::Gelu{b.normal("in", n, 2), b.output("out", n)}; });
    add("", [&](CaseBuilder& b) { return program::GeluBackward{b.normal("in", n, 2), b.normal("data", n)}; });
    add("", [&](CaseBuilder& b) { return program::SwiGlu{b.normal("in", 2 * n, 2), b.output("out", n), rows, width}; });
    add("", [&](CaseBuilder& b) {
      return program::SwiGluBackward{b.normal("in", 2 * n, 2), b.normal("dout", n), b.output("din", 2 * n), rows,
                                     width};
    });
    add("", [&](CaseBuilder& b) {
      return program::BiasAdd{b.normal("bias", width), b.normal("data", n), rows, width};
    });
    for (const bool accumulate : {false, true}) {
      add(accumulate ? ", added" : "", [&](CaseBuilder& b) {
        return program::ColumnSum{b.normal("in", n), b.result("out", DType::f32, width, accumulate), rows, width,
                                  accumulate};
      });
    }
    for (const auto& [bias_too, residual_too] : {std::pair{true, true}, {true, false}, {false, true}}) {
      CaseBuilder b(type, s.large);
      program::ResidualAdd op{.in = b.normal("in", n), .out = b.output("out", n), .rows = rows, .width = width};
      if (bias_too) op.bias = b.normal("bias", width);
      if (residual_too) op.residual = b.normal("residual", n);
      cases.push_back(b.take(op, shape(rows, width) + (bias_too ? ", bias" : "") + (residual_too ? ", residual" : "")));
    }
  }
}

void add_norm_cases(Cases& cases, program::DType type) {
  std::vector<RowsSize> sizes(std::begin(row_sizes), std::end(row_sizes));
  sizes.insert(sizes.end(), std::begin(wide_sizes), std::end(wide_sizes));
  for (const RowsSize& s : sizes) {
    for (const auto& [bias, residual] : {std::pair{false, false}, {true, true}, {true, false}, {false, true}}) {
      cases.push_back(norm_case<program::LayerNorm>(type, s, bias, residual));
      cases.push_back(norm_case<program::RmsNorm>(type, s, bias, residual));
    }
    for (const auto& [dresidual, dbias, added] :
         {std::tuple{false, false, false}, {true, true, true}, {true, false, false}, {false, true, true}}) {
      using namespace program;
      cases.push_back(norm_backward_case<LayerNorm, LayerNormBackward>(type, s, dresidual, dbias, added));
      cases.push_back(norm_backward_case<RmsNorm, RmsNormBackward>(type, s, dresidual, dbias, added));
    }
  }
}

void add_embedding_cases(Cases& cases, program::DType type) {
  struct Table {
    std::int64_t rows, width, sequence, vocab;
    int shards, rank;
    bool large = false;
    std::int64_t document = 0;  // length of each document in a sequence; 0: one document
  };
  for (const Table& t :
       {Table{12, 33, 6, 20, 1, 0}, Table{64, 64, 16, 50, 1, 0}, Table{64, 64, 16, 50, 2, 0},
        Table{64, 96, 16, 50, 2, 1}, Table{20, 5000, 5, 50, 1, 0}, Table{8192, 2048, 2048, 50304, 1, 0, true},
        Table{64, 64, 16, 50, 2, 0, false, 3}, Table{12, 33, 6, 20, 1, 0, false, 4}}) {
    const program::Shard shard{program::Axis::tensor, t.vocab / t.shards};
    const std::string name = fmt::format("{} tokens of {} x {}{}{}", t.rows, t.vocab, t.width,
                                         t.shards == 1 ? "" : fmt::format(", shard {} of {}", t.rank, t.shards),
                                         t.document == 0 ? "" : fmt::format(", documents of {}", t.document));
    for (const bool positions : {true, false}) {
      if (!positions && t.document > 0) continue;
      const std::string which = name + (positions ? "" : ", no positions");
      CaseBuilder b(type, t.large);
      program::Embedding op{.tokens = b.whole_numbers("tokens", t.rows, t.vocab),
                            .words = b.normal("words", shard.rows * t.width),
                            .out = b.output("out", t.rows * t.width),
                            .rows = t.rows,
                            .width = t.width,
                            .sequence = t.sequence,
                            .shard = shard};
      if (positions) op.positions = b.normal("positions", t.sequence * t.width);
      if (t.document > 0) op.position_ids = b.position_ids(t.rows, t.document);
      cases.push_back(b.shard(t.rank, t.shards).take(op, which));
      for (const bool accumulate : {false, true}) {
        if (!positions && accumulate) continue;
        CaseBuilder back(type, t.large);
        program::EmbeddingBackward of{.tokens = back.whole_numbers("tokens", t.rows, t.vocab),
                                      .dout = back.normal("dout", t.rows * t.width),
                                      .dwords = back.normal("dwords", program::DType::f32, shard.rows * t.width),
                                      .rows = t.rows,
                                      .width = t.width,
                                      .sequence = t.sequence,
                                      .shard = shard,
                                      .accumulate_positions = accumulate};
        if (positions) of.dpositions = back.result("dpositions", program::DType::f32, t.sequence * t.width, accumulate);
        if (t.document > 0) of.position_ids = back.position_ids(t.rows, t.document);
        cases.push_back(back.shard(t.rank, t.shards).take(of, which + (accumulate ? ", positions added" : "")));
      }
    }
  }
}

void add_optimizer_cases(Cases& cases, program::DType weights) {
  const auto adam = [](CaseBuilder& b, std::int64_t n, double step, double deviation) {
    program::AdamW op;
    op.master = b.normal("master", program::DType::f32, n);
    op.moment1 = b.normal("moment1", program::DType::f32, n);
    op.moment2 = b.normal("moment2", program::DType::f32, n, 0.1, 1);  // positive, like squares
    op.gradient = b.normal("gradient", program::DType::f32, n, deviation);
    op.counter = b.constant("counter", program::DType::i32, step);
    op.learning_rate = b.constant("learning_rate", program::DType::f32, 0.1);  // large: the change is compared
    return op;
  };
  struct Count {
    std::int64_t n;
    double step;
    bool large = false;
  };
  for (const Count& c : {Count{3, 0}, Count{4099, 0}, Count{20001, 41}, Count{20'000'000, 3, true}}) {
    for (const bool separate : {true, false}) {
      if (!separate && weights != program::DType::f32) continue;
      CaseBuilder b(weights, c.large);
      program::AdamW op = adam(b, c.n, c.step, 1);
      if (separate) op.weights = b.output("weights", c.n);
      cases.push_back(b.take(
          op, fmt::format("{} parameters, step {}{}", c.n, c.step + 1, separate ? ", weights of their own" : "")));
    }
  }
  for (const bool skip : {false, true}) {
    constexpr std::int64_t n = 4099;
    CaseBuilder b(weights);
    program::AdamW op = adam(b, n, 3, 4096);
    op.weights = b.normal("weights", n);
    op.scale = b.constant("scale", program::DType::f32, 4096);
    op.skip = b.constant("skip", program::DType::f32, skip ? 1 : 0);
    cases.push_back(b.take(op, fmt::format("{} parameters, scaled{}", n, skip ? ", skipped" : "")));
  }
}

void add_loss_scaling_cases(Cases& cases) {
  for (const std::int64_t n : {std::int64_t{3}, std::int64_t{20001}}) {
    using Limits = std::numeric_limits<double>;
    for (const double planted : {0.0, Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()}) {
      CaseBuilder b(program::DType::f32);
      program::CheckFinite op;
      op.in = b.normal("in", n, 1e30);
      op.found_inf = b.constant("found_inf", program::DType::f32, 0);
      b.prepare(program::Fill{op.in.part(n - 2, 1), planted});
      cases.push_back(b.take(op, fmt::format("{} elements, {} among them", n, planted)));
    }
  }
  struct Scale {
    const char* name;
    double found_inf, scale, good_steps;
  };
  for (const Scale& s : {Scale{"overflow", 1, 4096, 3}, Scale{"no overflow", 0, 4096, 3}, Scale{"grown", 0, 4096, 7},
                         Scale{"at its largest", 0, 0x1p127, 7}}) {
    add_case(cases, CaseBuilder(program::DType::f32), s.name, [&](CaseBuilder& b) {
      return program::UpdateScale{.found_inf = b.constant("found_inf", program::DType::f32, s.found_inf),
                                  .scale = b.constant("scale", program::DType::f32, s.scale),
                                  .good_steps = b.constant("good_steps", program::DType::i32, s.good_steps),
                                  .updates = b.constant("updates", program::DType::i32, 12),
                                  .growth_interval = 8};
    });
  }
}

// Sums the largest elements of each of several replicas.
static void add_scatter_case(Cases& cases, std::int64_t n, std::int64_t kept, std::int64_t replicas) {
  CaseBuilder b(program::DType::f32);
  program::ScatterAdd op;
  op.values = b.output("values", replicas * kept);
  op.indices = b.output("indices", program::DType::i32, replicas * kept);
  op.parts = replicas;
  const program::View gradient = b.normal("gradient", n), residual = b.normal("residual", n);
  for (std::int64_t r = 0; r < replicas; ++r)
    b.prepare(program::TopK{gradient, residual, op.values.part(r * kept, kept), op.indices.part(r * kept, kept)});
  op.out = b.output("out", n);
  cases.push_back(b.take(op, fmt::format("{} x {} to {}", replicas, kept, n)));
}

void add_compression_cases(Cases& cases) {
  for (const auto& [n, kept] : {std::pair{1, 1}, {4099, 41}, {4099, 4099}, {100003, 1}, {100003, 25001}}) {
    CaseBuilder b(program::DType::f32);
    program::TopK op;
    op.gradient = b.normal("gradient", n);
    op.residual = b.normal("residual", n, 0.5);
    op.values = b.output("values", kept);
    op.indices = b.output("indices", program::DType::i32, kept);
    CaseBuilder ties = b;
    ties.prepare(program::Fill{op.gradient, -2}).prepare(program::Fill{op.residual, 1});
    ties.prepare(program::Fill{op.residual.part(n / 3, n / 5), 3.5});
    cases.push_back(ties.take(op, fmt::format("{} of {}, two magnitudes", kept, n)));
    cases.push_back(b.take(op, fmt::format("{} of {}", kept, n)));
    add_scatter_case(cases, n, kept, kept == 41 ? 300 : 3);
  }
}

}  // namespace harness::selftest
