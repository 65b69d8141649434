#include "backend/cuda/ranges.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define HARNESS_HAS_NVTX 1
#endif

#include <algorithm>

#include "base/error.h"

namespace harness::cuda {
namespace {

#ifdef HARNESS_HAS_NVTX
nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t own = nvtxDomainCreateA("harness");
  return own;
}

void push(const char* text) {
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = text;
  nvtxDomainRangePushEx(domain(), &event);
}

void pop() {
  nvtxDomainRangePop(domain());
}
#else  // built without NVTX's headers: ranges show nothing
void push(const char*) {}
void pop() {}
#endif

}  // namespace

RangePath range_path(const program::Label& label) {
  RangePath path = {"step", program::name_of(label.phase)};
  if (label.micro_batch >= 0) path.back() += fmt::format(" micro-batch {}", label.micro_batch);
  if (label.layer >= 0) path.push_back(fmt::format("layer {}", label.layer));
  return path;
}

Ranges::Ranges(std::span<const program::Operation> step) {
  for (const program::Operation& operation : step) paths_.push_back(range_path(operation.label));
}

void Ranges::go_to(const RangePath& path) {
  const auto common = static_cast<std::size_t>(std::ranges::mismatch(open_, path).in1 - open_.begin());
  for (; open_.size() > common; open_.pop_back()) pop();
  for (; open_.size() < path.size(); open_.push_back(path[open_.size()])) push(path[open_.size()].c_str());
}

Range::Range(const char* name) {
  push(name);
}

Range::~Range() {
  pop();
}

}  // namespace harness::cuda
