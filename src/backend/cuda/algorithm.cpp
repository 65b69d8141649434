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

// A capability that is one number; 0 if the algorithm has none of that name.
std::int32_t capability(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoCapAttributes_t attribute) {
  std::int32_t value = 0;
  std::size_t written = 0;
  const auto status = cublasLtMatmulAlgoCapGetAttribute(&algorithm, attribute, &value, sizeof value, &written);
  return status == CUBLAS_STATUS_SUCCESS ? value : 0;
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
constexpr std::array clusters{CUBLASLT_CLUSTER_SHAPE_1x1x1, CUBLASLT_CLUSTER_SHAPE_2x1x1, CUBLASLT_CLUSTER_SHAPE_1x2x1,
                              CUBLASLT_CLUSTER_SHAPE_2x2x1, CUBLASLT_CLUSTER_SHAPE_4x1x1, CUBLASLT_CLUSTER_SHAPE_1x4x1,
                              CUBLASLT_CLUSTER_SHAPE_4x2x1, CUBLASLT_CLUSTER_SHAPE_2x4x1};

// The same of tiles: dimensions of 64 to 256, as large as registers allow. There are over 600, most of them for
// small or narrow products. By their numbers, because the headers of CUDA 12.4 have no names for all of them.
constexpr std::array<std::uint32_t, 27> large_tiles{
    20,  23,  24,  19,  21,             // 128x128, 128x256, 256x128, 64x256, 256x64
    29,  30,  31,  32,                  // 128x160, 160x128, 192x128, 128x192
    191, 195, 197, 198, 201, 202,       // 152x256, 160x256, 168x128, 168x192, 176x128, 176x192
    209, 215, 221, 408, 409, 412, 414,  // 192x192, 208x128, 224x128, 128x168, 128x176, 128x208, 128x224
    463, 464, 465, 466, 501,            // 192x144, 192x152, 192x160, 192x168, 256x152
};

}  // namespace

std::vector<std::string> variants_of(const std::string& algorithm, int at_most) {
  const cublasLtMatmulAlgo_t base = unpack(algorithm);
  std::vector<std::string> variants;
  for (const cublasLtClusterShape_t cluster : clusters) {
    add_variant(variants, base, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, static_cast<std::uint16_t>(cluster));
  }
  if (capability(base, CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT) != 0) {
    const std::uint32_t other = get<std::uint32_t>(base, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING).value_or(0) == 0 ? 1 : 0;
    add_variant(variants, base, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, other);
  }
  constexpr std::int32_t most_options = 16;
  const std::int32_t options = std::min(capability(base, CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX), most_options);
  for (std::int32_t option = 0; option <= options; ++option) {
    add_variant(variants, base, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, static_cast<std::uint32_t>(option));
  }
  const std::vector<std::uint32_t> tiles = tiles_of(base);
  for (const std::uint32_t tile : large_tiles) {
    if (std::ranges::find(tiles, tile) != tiles.end()) add_variant(variants, base, CUBLASLT_ALGO_CONFIG_TILE_ID, tile);
  }
  if (std::ssize(variants) > at_most) variants.resize(at_most);
  return variants;
}

}  // namespace harness::cuda
