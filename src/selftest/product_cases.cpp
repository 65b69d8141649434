#include <fmt/format.h>

#include <cmath>
#include <string>
#include <tuple>
#include <utility>

#include "base/floats.h"
#include "selftest/operation_cases.h"

namespace harness::selftest {
namespace {

using program::DType;
using program::Epilogue;

// A linear layer: x [rows, in] -> y [rows, out].
struct LinearSize {
  std::int64_t rows, in, out;
  bool large = false;
};

enum class Result : std::uint8_t { y, of_transposed, dx, dw };

// A product of the GPT step (workloads/gpt), or another one that the operation supports.
struct Form {
  const char* name;
  Result result = Result::y;
  Epilogue epilogue = Epilogue::none;
  bool bias = false;  // for dw: its gradient
  bool add = false;
  bool accumulate = false;
  bool fp8 = false;  // also with 8-bit factors
  bool large = true;
};
constexpr Form forms[] = {
    {.name = "forward"},
    {.name = "forward, bias", .bias = true},
    {.name = "forward, bias, gelu", .epilogue = Epilogue::gelu, .bias = true, .fp8 = true},
    {.name = "forward, bias, residual", .bias = true, .add = true, .fp8 = true},
    {.name = "forward, gelu", .epilogue = Epilogue::gelu, .large = false},
    {.name = "forward, residual", .add = true, .large = false},
    {.name = "both transposed", .result = Result::of_transposed, .large = false},
    {.name = "input gradient", .result = Result::dx},
    {.name = "input gradient, gelu backward", .result = Result::dx, .epilogue = Epilogue::gelu_backward, .fp8 = true},
    {.name = "weight gradient", .result = Result::dw, .fp8 = true},
    {.name = "weight gradient, added", .result = Result::dw, .accumulate = true, .fp8 = true},
    {.name = "weight gradient, bias gradient", .result = Result::dw, .bias = true},
    {.name = "weight gradient, bias gradient, added", .result = Result::dw, .bias = true, .accumulate = true},
};

// y = x w^T, dx = dy w, dw = dy^T x.
program::Matmul product_of(const Form& form, const LinearSize& s) {
  program::Matmul op;
  op.epilogue = form.epilogue;
  op.accumulate = form.accumulate;
  op.transpose_a = form.result == Result::dw || form.result == Result::of_transposed;
  op.transpose_b = form.result == Result::y || form.result == Result::of_transposed;
  std::tie(op.m, op.n, op.k) = std::tuple(s.rows, s.out, s.in);
  if (form.result == Result::dx) std::swap(op.n, op.k);
  if (form.result == Result::dw) std::tie(op.m, op.n, op.k) = std::tuple(s.out, s.in, s.rows);
  return op;
}

// With factors b of this scale, results are of order one for any length of the sums.
double scale_of(const program::Matmul& op) {
  return 1 / std::sqrt(static_cast<double>(op.k));
}

// Adds all operands except the factors.
OperationCase complete(CaseBuilder& b, const Form& form, program::Matmul op) {
  const std::int64_t count = op.m * op.n;
  const bool weights = form.result == Result::dw;
  if (form.bias && weights) op.bias_gradient = b.result("bias_gradient", DType::f32, op.m, form.accumulate);
  if (form.bias && !weights) op.bias = b.normal("bias", op.n);
  if (form.add) op.add = b.normal("add", count);
  if (form.epilogue == Epilogue::gelu) op.aux = b.output("aux", count);
  if (form.epilogue == Epilogue::gelu_backward) op.aux = b.normal("aux", count, 2);
  op.out = weights ? b.result("out", DType::f32, count, form.accumulate) : b.output("out", count);
  return b.take(op, fmt::format("{}, {} x {} x {}", form.name, op.m, op.n, op.k));
}

}  // namespace

void add_product_cases(Cases& cases, DType type, bool tf32) {
  for (const LinearSize& size :
       {LinearSize{17, 19, 33}, LinearSize{64, 96, 128}, LinearSize{48, 64, 1000}, LinearSize{256, 192, 320},
        LinearSize{2048, 2048, 8192, true}, LinearSize{2048, 8192, 2048, true}}) {
    for (const Form& form : forms) {
      if (size.large && !form.large) continue;
      CaseBuilder b(type, size.large, tf32);
      program::Matmul op = product_of(form, size);
      op.a = b.normal("a", op.m * op.k);
      op.b = b.normal("b", op.n * op.k, scale_of(op));
      cases.push_back(complete(b, form, op));
    }
  }
}

// Uses the one orientation that cuBLASLt supports (program::Matmul). With block scales, all factors are e4m3 and
// quantised beforehand, so that no two blocks are alike.
void add_fp8_product_cases(Cases& cases, config::Precision precision) {
  const bool of_blocks = precision == config::Precision::mxfp8;
  const LinearSize smallest = of_blocks ? LinearSize{32, 96, 64} : LinearSize{16, 48, 32};
  for (const LinearSize& size :
       {smallest, LinearSize{64, 128, 96}, LinearSize{256, 320, 192}, LinearSize{2048, 8192, 2048, true}}) {
    for (const Form& form : forms) {
      if (!form.fp8) continue;
      CaseBuilder b(DType::bf16, size.large);
      b.precision(precision);
      program::Matmul op = product_of(form, size);
      op.transpose_a = false;
      op.transpose_b = true;
      const auto factor = [&](const std::string& name, DType to, std::int64_t rows, double deviation, double scale) {
        if (!of_blocks)
          return std::pair(b.normal(name, to, rows * op.k, deviation), b.constant(name + "_scale", DType::f32, scale));
        program::Quantise quantise{.in = b.normal(name + "_in", rows * op.k, deviation * scale),
                                   .out = b.output(name, to, rows * op.k),
                                   .scale = b.output(name + "_scale", DType::e8m0, block_scales(rows, op.k)),
                                   .rows = rows,
                                   .width = op.k};
        b.prepare(quantise);
        return std::pair(quantise.out, quantise.scale);
      };
      const bool gradients = form.result == Result::dx || form.result == Result::dw;
      std::tie(op.a, op.a_scale) = factor("a", gradients && !of_blocks ? DType::e5m2 : DType::e4m3, op.m, 100, 0x1p-6);
      std::tie(op.b, op.b_scale) = factor("b", DType::e4m3, op.n, 100 * scale_of(op), 0x1p-7);
      cases.push_back(complete(b, form, op));
    }
  }
}

// Both orientations and each alone, with and without a bias gradient; sizes that fill the tiles of a kernel and sizes
// that do not; sizes without whole blocks only with a single scale.
void add_quantise_cases(Cases& cases, program::DType type) {
  struct Size {
    std::int64_t rows, width;
    bool large = false;
  };
  const auto add = [&](const Size& s, DType to, bool plain, bool transposed, bool of_blocks) {
    const bool both = plain && transposed, accumulate = both && to == DType::e5m2;
    CaseBuilder b(type, s.large);
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

}  // namespace harness::selftest
