#include <algorithm>

#include "backend/cuda/blas.h"
#include "base/text.h"

namespace harness::cuda {

Product::Product(const backend::Bound<program::Matmul>& bound, bool allow_tf32)
    : op(bound),
      a{.row = op.transpose_a ? op.m : op.k},
      b{.row = op.transpose_b ? op.k : op.n},
      out{.row = op.n},
      tf32(allow_tf32 && op.a.type == program::DType::f32 && op.b.type == program::DType::f32) {
  const auto align = [&](program::Access, const backend::Tensor& t) {
    alignment_bytes = std::min(alignment_bytes, alignment_of(reinterpret_cast<std::uintptr_t>(t.data)));
  };
  program::each_field(op, align, [](const auto&) {});
}

Product Product::plain() const {
  Product p = *this;
  if (op.epilogue == program::Epilogue::gelu) p.op.out = op.aux;
  p.op.epilogue = program::Epilogue::none;
  p.op.bias_gradient = {};
  return p;
}

int alignment_of(std::uintptr_t bytes) {
  return bytes == 0 ? 256 : static_cast<int>(std::min<std::uintptr_t>(256, bytes & -bytes));
}

std::string key_of(const Product& p) {
  const auto matrix = [](const backend::Tensor& t, bool transposed, const Product::Strides& strides) {
    std::string key = fmt::format("{}{}/{}", program::name_of(t.type), transposed ? "T" : "", strides.row);
    if (strides.batch != 0) key += fmt::format("+{}", strides.batch);
    return key;
  };
  const auto& op = p.op;
  std::string key =
      fmt::format("matmul {}x{}x{}x{} a:{} b:{} out:{}", p.batch, op.m, op.n, op.k, matrix(op.a, op.transpose_a, p.a),
                  matrix(op.b, op.transpose_b, p.b), matrix(op.out, false, p.out));
  if (op.bias) key += " bias";
  if (op.add) key += " add";
  if (op.epilogue == program::Epilogue::gelu) key += " gelu";
  if (op.epilogue == program::Epilogue::gelu_backward) key += " gelu_backward";
  if (op.bias_gradient) key += " bias_gradient";
  if (op.accumulate) key += " accumulate";
  if (p.tf32) key += " tf32";
  if (p.block_scales()) key += " block_scales";
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
  const auto require = [&](bool is_right) {
    if (!is_right) fail("{} is not a tuned choice that this program wrote", quote(text));
  };
  const auto known = [&](const auto& number) {
    require(number.has_value());
    return *number;
  };
  const std::vector<std::string_view> words = split(text, ' ');
  require(words.size() == 3 || words.size() == 4);
  require(words[0] == "fused" || words[0] == "separate");
  require(words[1].size() % 2 == 0);
  ProductChoice choice;
  choice.fused = words[0] == "fused";
  for (std::size_t i = 0; i < words[1].size(); i += 2) {
    choice.algorithm += static_cast<char>(known(number_in<std::uint8_t>(words[1].substr(i, 2), 16)));
  }
  choice.seconds = known(number_in<double>(words[2]));
  if (words.size() == 4) choice.rejected = known(number_in<int>(words[3]));
  return choice;
}

}  // namespace harness::cuda
