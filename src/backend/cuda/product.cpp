#include "backend/cuda/blas.h"

#include <algorithm>

#include "base/text.h"

namespace harness::cuda {
namespace {

std::string matrix_key(const Matrix& m) {
  std::string key = fmt::format("{}{}/{}", program::name_of(m.type), m.transposed ? "T" : "", m.leading);
  if (m.batch_stride != 0) key += fmt::format("+{}", m.batch_stride);
  return key;
}

int digit(char c, std::string_view whole) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  fail("{} is not a tuned choice that this program wrote", quote(whole));
}

template <class T>
Product described(const program::MatmulOf<T>& op, program::DType a, program::DType b, program::DType out, bool tf32,
                  int alignment_bytes) {
  Product p;
  p.m = op.m;
  p.n = op.n;
  p.k = op.k;
  p.a = {a, op.transpose_a, op.transpose_a ? op.m : op.k, 0};
  p.b = {b, op.transpose_b, op.transpose_b ? op.k : op.n, 0};
  p.out = {out, false, op.n, 0};
  p.bias = op.bias.present();
  p.add = op.add.present();
  p.bias_gradient = op.bias_gradient.present();
  p.accumulate = op.accumulate;
  p.tf32 = tf32 && a == program::DType::f32 && b == program::DType::f32;
  p.epilogue = op.epilogue;
  p.alignment_bytes = alignment_bytes;
  return p;
}

}  // namespace

Product Product::plain() const {
  Product p = *this;
  p.epilogue = program::Epilogue::none;
  p.bias_gradient = false;
  return p;
}

int alignment_of(std::int64_t bytes) {
  return bytes == 0 ? 256 : static_cast<int>(std::min<std::int64_t>(256, bytes & -bytes));
}

int alignment_of(const void* address) {
  return alignment_of(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address)));
}

Product product_of(const program::Matmul& op, program::DType a, program::DType b, program::DType out, bool tf32,
                   int alignment_bytes) {
  return described(op, a, b, out, tf32, alignment_bytes);
}

Product product_of(const backend::Bound<program::Matmul>& op, bool tf32) {
  int aligned = 256;
  program::each_field(
      op, [&](program::Access, const backend::Tensor& t) { aligned = std::min(aligned, alignment_of(t.data)); },
      [](const auto&) {});
  Product p = described(op, op.a.type, op.b.type, op.out.type, tf32, aligned);
  p.block_scales = program::are_of_blocks(op.a_scale.type);
  return p;
}

std::string key_of(const Product& p) {
  std::string key = fmt::format("matmul {}x{}x{}x{} a:{} b:{} out:{}", p.batch, p.m, p.n, p.k, matrix_key(p.a),
                                matrix_key(p.b), matrix_key(p.out));
  if (p.bias) key += " bias";
  if (p.add) key += " add";
  if (p.epilogue == program::Epilogue::gelu) key += " gelu";
  if (p.epilogue == program::Epilogue::gelu_backward) key += " gelu_backward";
  if (p.bias_gradient) key += " bias_gradient";
  if (p.accumulate) key += " accumulate";
  if (p.tf32) key += " tf32";
  if (p.block_scales) key += " block_scales";
  if (p.alignment_bytes < 256) key += fmt::format(" align:{}", p.alignment_bytes);
  return key;
}

std::string print_choice(const ProductChoice& choice) {
  std::string text = choice.fused ? "fused " : "separate ";
  for (const char c : choice.algorithm) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  text += fmt::format(" {:.4g}", choice.seconds);
  if (choice.rejected > 0) text += fmt::format(" {}", choice.rejected);
  return text;
}

ProductChoice parse_choice(std::string_view text) {
  const std::size_t first = text.find(' '), second = text.find(' ', first + 1);
  const std::string_view form = text.substr(0, first);
  if (second == std::string_view::npos || (form != "fused" && form != "separate")) digit(' ', text);
  ProductChoice choice;
  choice.fused = form == "fused";
  const std::string_view bytes = text.substr(first + 1, second - first - 1);
  if (bytes.size() % 2 != 0) digit(' ', text);
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    choice.algorithm += static_cast<char>(digit(bytes[i], text) * 16 + digit(bytes[i + 1], text));
  }
  const auto read = [&](std::string_view word, auto& value) {
    const auto number = number_in<std::remove_reference_t<decltype(value)>>(word);
    if (!number) digit(' ', text);
    value = *number;
  };
  const std::size_t third = text.find(' ', second + 1);
  read(text.substr(second + 1, third - second - 1), choice.seconds);
  if (third != std::string_view::npos) read(text.substr(third + 1), choice.rejected);
  return choice;
}

}  // namespace harness::cuda
