#include "backend/cuda/algorithm.h"

#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/error.h"

namespace harness::cuda {
namespace {

cublasLtMatmulAlgo_t unpack(const std::string& bytes) {
  cublasLtMatmulAlgo_t algorithm{};
  if (bytes.size() != sizeof algorithm)
    fail("an algorithm of {} bytes, cuBLASLt's have {}", bytes.size(), sizeof algorithm);
  std::memcpy(&algorithm, bytes.data(), bytes.size());
  return algorithm;
}

std::string pack(const cublasLtMatmulAlgo_t& algorithm) {
  return {reinterpret_cast<const char*>(&algorithm), sizeof algorithm};
}

template <class T>
std::optional<T> get(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute) {
  T value{};
  std::size_t written = 0;
  const auto status = cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof value, &written);
  if (status != CUBLAS_STATUS_SUCCESS) return std::nullopt;
  return value;
}

// The tiles that the algorithm can have.
std::vector<std::uint32_t> tiles_of(const cublasLtMatmulAlgo_t& algorithm) {
  std::size_t bytes = 0;
  if (cublasLtMatmulAlgoCapGetAttribute(&algorithm, CUBLASLT_ALGO_CAP_TILE_IDS, nullptr, 0, &bytes) !=
      CUBLAS_STATUS_SUCCESS) {
    return {};
  }
  std::vector<std::uint32_t> tiles(bytes / sizeof(std::uint32_t));
  if (tiles.empty()) return {};
  if (cublasLtMatmulAlgoCapGetAttribute(&algorithm, CUBLASLT_ALGO_CAP_TILE_IDS, tiles.data(), bytes, &bytes) !=
      CUBLAS_STATUS_SUCCESS) {
    return {};
  }
  return tiles;
}

bool can_swizzle(const cublasLtMatmulAlgo_t& algorithm) {
  std::uint32_t supported = 0;
  std::size_t written = 0;
  return cublasLtMatmulAlgoCapGetAttribute(&algorithm, CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT, &supported,
                                           sizeof supported, &written) == CUBLAS_STATUS_SUCCESS &&
         supported != 0;
}

template <class T>
void add_variant(std::vector<std::string>& variants, cublasLtMatmulAlgo_t algorithm,
                 cublasLtMatmulAlgoConfigAttributes_t attribute, T value) {
  const std::optional<T> now = get<T>(algorithm, attribute);
  if (!now || *now == value) return;
  if (cublasLtMatmulAlgoConfigSetAttribute(&algorithm, attribute, &value, sizeof value) == CUBLAS_STATUS_SUCCESS) {
    variants.push_back(pack(algorithm));
  }
}

// Those that matrix products of this size are seen to use.
constexpr std::array<cublasLtClusterShape_t, 6> clusters{CUBLASLT_CLUSTER_SHAPE_1x1x1, CUBLASLT_CLUSTER_SHAPE_2x1x1,
                                                         CUBLASLT_CLUSTER_SHAPE_1x2x1, CUBLASLT_CLUSTER_SHAPE_2x2x1,
                                                         CUBLASLT_CLUSTER_SHAPE_4x1x1, CUBLASLT_CLUSTER_SHAPE_1x4x1};

}  // namespace

std::vector<std::string> variants_of(const std::string& algorithm, int at_most) {
  const cublasLtMatmulAlgo_t base = unpack(algorithm);
  std::vector<std::string> variants;
  for (const cublasLtClusterShape_t cluster : clusters) {
    add_variant(variants, base, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, static_cast<std::uint16_t>(cluster));
  }
  if (can_swizzle(base)) {
    const std::uint32_t other = get<std::uint32_t>(base, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING).value_or(0) == 0 ? 1 : 0;
    add_variant(variants, base, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, other);
  }
  const std::vector<std::uint32_t> tiles = tiles_of(base);
  const std::ptrdiff_t room = std::max<std::ptrdiff_t>(0, at_most - std::ssize(variants));
  const std::ptrdiff_t step = room == 0 ? std::ssize(tiles) + 1 : (std::ssize(tiles) + room - 1) / room;
  for (std::ptrdiff_t i = 0; i < std::ssize(tiles); i += step) {
    add_variant(variants, base, CUBLASLT_ALGO_CONFIG_TILE_ID, tiles[i]);
  }
  return variants;
}

}  // namespace harness::cuda
