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

std::vector<std::string> path_of(const program::Label& label) {
  std::vector<std::string> path = {"step", program::name_of(label.phase)};
  if (label.micro_batch >= 0) path.back() += fmt::format(" micro-batch {}", label.micro_batch);
  if (label.layer >= 0) path.push_back(fmt::format("layer {}", label.layer));
  return path;
}

}  // namespace

RangePlan plan_ranges(std::span<const program::Operation> step) {
  RangePlan plan;
  std::vector<std::string> stack;
  for (const program::Operation& operation : step) {
    std::vector<std::string> path = path_of(operation.label);
    const auto kept = std::ranges::mismatch(stack, path);
    RangeChange change;
    change.close = static_cast<int>(stack.end() - kept.in1);
    change.open.assign(kept.in2, path.end());
    plan.before.push_back(std::move(change));
    stack = std::move(path);
  }
  plan.close_at_end = static_cast<int>(stack.size());
  return plan;
}

void Ranges::before(std::size_t operation) {
  const RangeChange& change = plan_.before.at(operation);
  for (int i = 0; i < change.close; ++i) pop();
  for (const std::string& name : change.open) push(name.c_str());
}

void Ranges::end() {
  for (int i = 0; i < plan_.close_at_end; ++i) pop();
}

Range::Range(const char* name) {
  push(name);
}

Range::~Range() {
  pop();
}

}  // namespace harness::cuda
