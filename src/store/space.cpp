#include "store/space.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "store/columns.h"
#include "store/imprint.h"
#include "store/plain_file.h"
#include "store/table.h"

namespace harness::store {
namespace {

std::int64_t row_bytes(const ColumnList& columns, RowSpan rows = {}) {
  return static_cast<std::int64_t>(format_for(columns, rows).element.bytes);
}

bool write_zeros(int descriptor, std::int64_t bytes) {
  const std::vector<char> zeros(1 << 20);
  for (std::int64_t at = 0; at < bytes;) {
    const auto count = std::min<std::int64_t>(static_cast<std::int64_t>(zeros.size()), bytes - at);
    const ssize_t written = pwrite(descriptor, zeros.data(), static_cast<std::size_t>(count), at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
  }
  return fsync(descriptor) == 0;
}

}  // namespace

std::int64_t most_bytes(const Result& plan, const ResultCapacity& capacity) {
  // A row of texts whose lengths are not known yet, of what NCCL and cuBLASLt say, of objects and their attributes.
  constexpr std::int64_t texts = 512, sayings = 1 << 16, objects = 1 << 20;
  const auto blocks = static_cast<std::int64_t>(plan.blocks.size()),
             cases = static_cast<std::int64_t>(plan.cases.size());
  const std::int64_t steps = std::int64_t{plan.warmup_steps} + plan.steps, ranks = plan.ranks;
  std::int64_t bytes = objects + blocks * steps * (2 + ranks) * 4;
  bytes += blocks * row_bytes(block_columns().list());
  bytes += blocks * row_bytes(gpu_columns().list());
  bytes += blocks * row_bytes(conditions_columns().list());
  bytes += capacity.intervals * row_bytes(interval_columns().list());
  bytes += capacity.totals * row_bytes(total_columns().list());
  bytes += cases * ranks * row_bytes(role_columns().list());
  bytes += cases * ranks * row_bytes(split_columns().list());
  bytes += cases * (sayings + texts * static_cast<std::int64_t>(plan.variables.size())) + ranks * texts;
  bytes += capacity.warnings * static_cast<std::int64_t>(warning_bytes);
  const auto findings = static_cast<std::int64_t>(plan.doctor.findings.size());
  bytes += findings * row_bytes(finding_columns().list(), span_of(plan.doctor.findings));
  return bytes + static_cast<std::int64_t>(plan.doctor.facts.size() + plan.config_text.size());
}

Space::Space(const std::string& path, std::int64_t bytes) : path_(path), bytes_(bytes) {
  const std::string name = beside(path, ".", "." + new_token() + ".space");
  file_ = Descriptor(open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file_) refuse(errno);
  unlink(name.c_str());
}

void Space::allocate() {
  if (bytes_ <= 0) return;
  if (fallocate(file_.number(), 0, 0, bytes_) == 0) return;
  const bool unknown = errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL;
  if (!unknown || !write_zeros(file_.number(), bytes_)) refuse(errno);
}

void Space::refuse(int error) const {
  fail("{} cannot be written: {}; the result needs up to {} MiB there", path_, std::strerror(error),
       std::max<std::int64_t>(1, (bytes_ + (1 << 20) - 1) >> 20));
}

}  // namespace harness::store
