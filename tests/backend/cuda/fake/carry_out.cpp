// The arithmetic of the collectives.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/floats.h"
#include "clique.h"

namespace harness::fake {
namespace {

template <typename T>
std::vector<char> reduced(const std::vector<Call>& calls, std::size_t count) {
  const auto at = [&](std::size_t rank, std::size_t i) {
    const T value = static_cast<const T*>(calls[rank].send)[i];
    if constexpr (std::is_same_v<T, bf16>) {
      return to_float(value);
    } else {
      return value;
    }
  };
  std::vector<char> bytes(count * sizeof(T));
  T* into = reinterpret_cast<T*>(bytes.data());
  for (std::size_t i = 0; i < count; ++i) {
    auto total = at(0, i);
    for (std::size_t rank = 1; rank < calls.size(); ++rank)
      total = calls[0].op == ncclMax ? std::max(total, at(rank, i)) : total + at(rank, i);
    if constexpr (std::is_same_v<T, bf16>) {
      into[i] = to_bf16(total);
    } else {
      into[i] = total;
    }
  }
  return bytes;
}

std::vector<char> reduced(const std::vector<Call>& calls, std::size_t count) {
  switch (calls[0].type) {
    case ncclBfloat16:
      return reduced<bf16>(calls, count);
    case ncclInt32:
      return reduced<std::int32_t>(calls, count);
    default:
      return reduced<float>(calls, count);
  }
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  if (type == ncclBfloat16) return 2;
  return type == ncclInt32 || type == ncclFloat32 ? 4 : 0;
}

const char* name_of(Function function) {
  constexpr const char* names[] = {"AllReduce", "AllGather", "ReduceScatter", "Send", "Recv"};
  return names[static_cast<int>(function)];
}

std::string Call::text() const {
  std::string text = fmt::format("{} of {} x type {}", name_of(function), count, static_cast<int>(type));
  if (function == Function::send) return text + fmt::format(" to {}", root);
  if (function == Function::recv) return text + fmt::format(" from {}", root);
  if (function != Function::all_gather) text += fmt::format(", operation {}", static_cast<int>(op));
  return text;
}

std::size_t Call::send_bytes(int size) const {
  const std::size_t bytes = count * size_of(type);
  switch (function) {
    case Function::reduce_scatter:
      return bytes * static_cast<std::size_t>(size);
    case Function::recv:
      return 0;
    default:
      return bytes;
  }
}

std::size_t Call::recv_bytes(int size) const {
  const std::size_t bytes = count * size_of(type);
  switch (function) {
    case Function::all_gather:
      return bytes * static_cast<std::size_t>(size);
    case Function::send:
      return 0;
    default:
      return bytes;
  }
}

// Inputs are read before any output is written: in place is right, too.
void carry_out(const std::vector<Call>& calls) {
  const Call& first = calls[0];
  const std::size_t bytes = first.count * size_of(first.type);
  if (bytes == 0) return;
  std::vector<char> result;
  switch (first.function) {
    case Function::all_reduce:
      result = reduced(calls, first.count);
      break;
    case Function::reduce_scatter:
      result = reduced(calls, first.count * calls.size());
      break;
    default:
      for (const Call& call : calls) {
        const auto* source = static_cast<const char*>(call.send);
        result.insert(result.end(), source, source + bytes);
      }
  }
  for (std::size_t rank = 0; rank < calls.size(); ++rank) {
    const bool scatters = first.function == Function::reduce_scatter;
    std::memcpy(calls[rank].recv, result.data() + (scatters ? rank * bytes : 0), scatters ? bytes : result.size());
  }
}

}  // namespace harness::fake
