#include "base/part.h"

namespace harness {
namespace {

struct Words {
  const char* key;
  const char* name;
};
constexpr std::array<Words, part_count> words{{{"matrix_products", "matrix products"},
                                               {"attention", "attention"},
                                               {"other_compute", "other computation"},
                                               {"recomputation", "recomputation"},
                                               {"tensor", "tensor communication"},
                                               {"pipeline", "pipeline communication"},
                                               {"data", "data communication"},
                                               {"embedding", "embedding communication"},
                                               {"world", "closing all-reduce"},
                                               {"communication", "other communication"},
                                               {"waiting", "waiting for slower ranks"},
                                               {"bubble", "pipeline bubble"},
                                               {"loading", "data loading"},
                                               {"idle", "idle, host"}}};

}  // namespace

const char* name_of(Part part) {
  return words[index_of(part)].name;
}
const char* key_of(Part part) {
  return words[index_of(part)].key;
}
bool is_computation(Part part) {
  return part <= Part::recomputation;
}
bool is_exposed_communication(Part part) {
  return part >= Part::tensor && part <= Part::communication;
}

}  // namespace harness
