#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>

#include "selftest/case_builder.h"

namespace harness::selftest {

// Both orientations and each alone, with a bias gradient and without; sizes that fill tiles of a kernel and that do
// not.
void add_quantise_cases(Cases& cases, program::DType type) {
  struct Size {
    std::int64_t rows, width;
    bool large = false;
  };
  for (const Size& s : {Size{16, 16}, Size{48, 80}, Size{64, 128}, Size{1024, 208}, Size{4096, 8192, true}}) {
    for (const program::DType to : {program::DType::e4m3, program::DType::e5m2}) {
      for (const auto& [plain, transposed] : {std::pair{true, true}, {true, false}, {false, true}}) {
        const bool both = plain && transposed, accumulate = both && to == program::DType::e5m2;
        CaseBuilder b(type);
        if (s.large) b.large();
        program::Quantise op;
        op.in = b.normal("in", s.rows * s.width, 1e-3);
        if (plain) op.out = b.output("out", to, s.rows * s.width);
        if (transposed) op.out_transposed = b.output("out_transposed", to, s.rows * s.width);
        op.scale = b.output("scale", program::DType::f32, 1);
        if (both) op.bias_gradient = b.result("bias_gradient", program::DType::f32, s.width, accumulate);
        op.rows = s.rows;
        op.width = s.width;
        op.accumulate = accumulate;
        cases.push_back(
            b.take(op, fmt::format("{} x {} to {}{}{}", s.rows, s.width, program::name_of(to),
                                   plain ? "" : ", transposed alone", transposed ? "" : ", not transposed")));
      }
    }
  }
}

// The three products of a linear layer, in the one form that cuBLASLt has (program::Matmul).
void add_fp8_product_cases(Cases& cases) {
  using program::DType;
  struct Size {
    std::int64_t rows, out, in;
    bool large = false;
  };
  for (const Size& s : {Size{16, 32, 48}, Size{64, 96, 128}, Size{256, 192, 320}, Size{2048, 2048, 8192, true}}) {
    const auto product = [&](const std::string& name, std::int64_t m, std::int64_t n, std::int64_t k, DType of_a,
                             auto&& complete) {
      CaseBuilder b(DType::bf16);
      b.fp8();
      if (s.large) b.large();
      program::Matmul op;
      op.m = m;
      op.n = n;
      op.k = k;
      op.transpose_b = true;
      op.a = b.normal("a", of_a, m * k, 100);
      op.a_scale = b.constant("a_scale", DType::f32, 0x1p-6);
      op.b = b.normal("b", DType::e4m3, n * k, 100 / std::sqrt(static_cast<double>(k)));
      op.b_scale = b.constant("b_scale", DType::f32, 0x1p-7);
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
    product("input gradient, gelu backward", s.rows, s.in, s.out, DType::e5m2,
            [&](CaseBuilder& b, program::Matmul& op) {
              op.epilogue = program::Epilogue::gelu_backward;
              op.aux = b.normal("aux", s.rows * s.in, 2);
              op.out = b.output("out", s.rows * s.in);
            });
    for (const bool accumulate : {false, true}) {
      product(accumulate ? "weight gradient, added" : "weight gradient", s.out, s.in, s.rows, DType::e5m2,
              [&](CaseBuilder& b, program::Matmul& op) {
                op.accumulate = accumulate;
                op.out = b.result("out", DType::f32, s.out * s.in, accumulate);
              });
    }
  }
}

}  // namespace harness::selftest
