#include <fmt/format.h>

#include <cmath>
#include <string>
#include <tuple>
#include <utility>

#include "base/floats.h"
#include "selftest/operation_cases.h"

namespace harness::selftest {

// Both orientations and each alone, with a bias gradient and without; sizes that fill tiles of a kernel and that do
// not, and what has no whole blocks with one scale alone.
void add_quantise_cases(Cases& cases, program::DType type) {
  using program::DType;
  struct Size {
    std::int64_t rows, width;
    bool large = false;
  };
  const auto add = [&](const Size& s, DType to, bool plain, bool transposed, bool of_blocks) {
    const bool both = plain && transposed, accumulate = both && to == DType::e5m2;
    CaseBuilder b(type);
    if (s.large) b.large();
    program::Quantise op;
    op.in = b.normal("in", s.rows * s.width, 1e-3);
    if (plain) op.out = b.output("out", to, s.rows * s.width);
    if (transposed) op.out_transposed = b.output("out_transposed", to, s.rows * s.width);
    if (!of_blocks) op.scale = b.output("scale", DType::f32, 1);
    if (of_blocks && plain) op.scale = b.output("scale", DType::e8m0, block_scales(s.rows, s.width));
    if (of_blocks && transposed)
      op.scale_transposed = b.output("scale_transposed", DType::e8m0, block_scales(s.width, s.rows));
    if (both) op.bias_gradient = b.result("bias_gradient", DType::f32, s.width, accumulate);
    op.rows = s.rows;
    op.width = s.width;
    op.accumulate = accumulate;
    cases.push_back(b.take(op, fmt::format("{} x {} to {}{}{}{}", s.rows, s.width, program::name_of(to),
                                           of_blocks ? ", scales of blocks" : "", plain ? "" : ", transposed alone",
                                           transposed ? "" : ", not transposed")));
  };
  for (const Size& s : {Size{16, 16}, Size{48, 80}, Size{48, 160}, Size{64, 128}, Size{160, 288}, Size{1024, 208},
                        Size{4096, 8192, true}}) {
    for (const DType to : {DType::e4m3, DType::e5m2}) {
      for (const auto& [plain, transposed] : {std::pair{true, true}, {true, false}, {false, true}}) {
        add(s, to, plain, transposed, false);
        const bool whole_blocks = (!plain || s.width % mx_block == 0) && (!transposed || s.rows % mx_block == 0);
        if (whole_blocks) add(s, to, plain, transposed, true);
      }
    }
  }
}

// The three products of a linear layer, in the one form that cuBLASLt has (program::Matmul). With scales of blocks all
// is e4m3, and factors are quantised before, so that no two blocks are alike.
void add_fp8_product_cases(Cases& cases, config::Precision precision) {
  using program::DType;
  struct Size {
    std::int64_t rows, out, in;
    bool large = false;
  };
  const bool of_blocks = precision == config::Precision::mxfp8;
  const DType of_gradients = of_blocks ? DType::e4m3 : DType::e5m2;
  const Size smallest = of_blocks ? Size{32, 64, 96} : Size{16, 32, 48};
  for (const Size& s : {smallest, Size{64, 96, 128}, Size{256, 192, 320}, Size{2048, 2048, 8192, true}}) {
    const auto product = [&](const std::string& name, std::int64_t m, std::int64_t n, std::int64_t k, DType of_a,
                             auto&& complete) {
      CaseBuilder b(DType::bf16);
      b.precision(precision);
      if (s.large) b.large();
      program::Matmul op;
      op.m = m;
      op.n = n;
      op.k = k;
      op.transpose_b = true;
      const auto factor = [&](const std::string& which, DType to, std::int64_t rows, double deviation, double scale) {
        if (!of_blocks)
          return std::pair(b.normal(which, to, rows * k, deviation), b.constant(which + "_scale", DType::f32, scale));
        program::Quantise quantise{.in = b.normal(which + "_in", rows * k, deviation * scale),
                                   .out = b.output(which, to, rows * k),
                                   .scale = b.output(which + "_scale", DType::e8m0, block_scales(rows, k)),
                                   .rows = rows,
                                   .width = k};
        b.prepare(quantise);
        return std::pair(quantise.out, quantise.scale);
      };
      std::tie(op.a, op.a_scale) = factor("a", of_a, m, 100, 0x1p-6);
      std::tie(op.b, op.b_scale) = factor("b", DType::e4m3, n, 100 / std::sqrt(static_cast<double>(k)), 0x1p-7);
      complete(b, op);
      cases.push_back(b.take(op, fmt::format("{}, {} x {} x {}", name, m, n, k)));
    };
    for (const program::Epilogue epilogue : {program::Epilogue::none, program::Epilogue::gelu}) {
      const bool gelu = epilogue == program::Epilogue::gelu;
      product(gelu ? "forward, bias, gelu" : "forward, bias, residual", s.rows, s.out, s.in, DType::e4m3,
              [&](CaseBuilder& b, program::Matmul& op) {
                op.bias = b.normal("bias", s.out);
                op.epilogue = epilogue;
                (gelu ? op.aux : op.add) = gelu ? b.output("aux", s.rows * s.out) : b.normal("add", s.rows * s.out);
                op.out = b.output("out", s.rows * s.out);
              });
    }
    product("input gradient, gelu backward", s.rows, s.in, s.out, of_gradients,
            [&](CaseBuilder& b, program::Matmul& op) {
              op.epilogue = program::Epilogue::gelu_backward;
              op.aux = b.normal("aux", s.rows * s.in, 2);
              op.out = b.output("out", s.rows * s.in);
            });
    for (const bool accumulate : {false, true}) {
      product(accumulate ? "weight gradient, added" : "weight gradient", s.out, s.in, s.rows, of_gradients,
              [&](CaseBuilder& b, program::Matmul& op) {
                op.accumulate = accumulate;
                op.out = b.result("out", DType::f32, s.out * s.in, accumulate);
              });
    }
  }
}

}  // namespace harness::selftest
