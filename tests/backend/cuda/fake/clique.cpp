#include "clique.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <type_traits>

#include "base/floats.h"
#include "core.h"

namespace harness::fake {
namespace {

std::string next_name() {
  static std::atomic<int> count{0};
  return fmt::format("communicator {}", ++count);
}

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

Clique::Clique(int size) : size(size), name(next_name()), members_(size) {}

bool Clique::complete() const {
  return std::all_of(members_.begin(), members_.end(), [](const Member& member) { return member.entered; });
}

bool Clique::split_met(std::uint64_t number) const {
  const auto found = splits_.find(number);
  return found != splits_.end() && static_cast<int>(found->second.wishes.size()) == size;
}

ncclResult_t Clique::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

std::string Clique::why() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

void Clique::break_up(ncclResult_t error, const std::string& why) {
  const std::lock_guard lock(mutex_);
  break_up_locked(error, why);
}

void Clique::break_up_locked(ncclResult_t error, const std::string& why) {
  if (error_ == ncclSuccess) {
    why_ = fmt::format("{} of {} ranks: {}", name, size, why);
    error_ = error;
    complain(why_);
  }
  changed_.notify_all();
}

std::string Clique::absent() const {
  std::string text;
  for (int rank = 0; rank < size; ++rank) {
    const Member& member = members_[rank];
    text += fmt::format("{}rank {}{} {} of {} units done", rank == 0 ? "" : "; ", rank,
                        member.aborted ? " aborted," : "", member.units_done, member.units);
  }
  return text;
}

bool Clique::wait(int rank, const std::function<bool()>& reached, const std::string& what) {
  Lock lock(mutex_);
  return wait(lock, rank, reached, what);
}

bool Clique::wait(Lock& lock, int rank, const std::function<bool()>& reached, const std::string& what) {
  const auto over = [&] { return reached() || members_[rank].aborted || error_ != ncclSuccess; };
  // The real library would wait forever.
  constexpr auto patience = std::chrono::duration<double>(20);
  if (!changed_.wait_for(lock, patience, over)) {
    break_up_locked(ncclRemoteError,
                    fmt::format("rank {} waited {:.3g} s for {}: a hang ({})", rank, patience.count(), what, absent()));
  }
  return reached();
}

bool Clique::enter(int rank, int wanted_size, int device) {
  const std::lock_guard lock(mutex_);
  if (wanted_size != size) {
    break_up_locked(ncclInvalidArgument, fmt::format("rank {} says that there are {}", rank, wanted_size));
    return false;
  }
  if (members_[rank].entered) {
    break_up_locked(ncclInvalidUsage, fmt::format("two of rank {}", rank));
    return false;
  }
  for (int other = 0; other < size; ++other) {
    if (!members_[other].entered || members_[other].device != device) continue;
    break_up_locked(ncclInvalidUsage, fmt::format("Duplicate GPU detected: rank {} and rank {} both on CUDA device {}",
                                                  other, rank, device));
    return false;
  }
  members_[rank].entered = true;
  members_[rank].device = device;
  changed_.notify_all();
  return error_ == ncclSuccess;
}

void Clique::split(int rank, std::uint64_t number, int color, int key) {
  const std::lock_guard lock(mutex_);
  Split& split = splits_[number];
  split.wishes[rank] = {color, key};
  changed_.notify_all();
}

Clique::Child Clique::child(int rank, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  Split& split = splits_[number];
  const auto [color, key] = split.wishes[rank];
  if (color == NCCL_SPLIT_NOCOLOR) return {};
  std::vector<std::pair<int, int>> ranks;  // key, rank
  for (const auto& [other, wish] : split.wishes) {
    if (wish.first == color) ranks.emplace_back(wish.second, other);
  }
  std::sort(ranks.begin(), ranks.end());
  auto& clique = split.cliques[color];
  if (!clique) {
    clique = std::make_shared<Clique>(static_cast<int>(ranks.size()));
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      clique->members_[i].entered = true;
      clique->members_[i].device = members_[ranks[i].second].device;
    }
  }
  const auto own = std::find(ranks.begin(), ranks.end(), std::make_pair(key, rank));
  return {clique, static_cast<int>(own - ranks.begin())};
}

void Clique::abort(int rank) {
  const std::lock_guard lock(mutex_);
  members_[rank].aborted = true;
  // The rank may free its buffers now.
  for (auto& [number, slot] : slots_) {
    if (!slot.done && !slot.calls.empty()) slot.calls[rank].reset();
  }
  for (auto& [ends, queue] : waiting_) {
    std::erase_if(queue, [&](const auto& pair) { return pair->rank == rank; });
  }
  changed_.notify_all();
}

Clique::Unit Clique::issue(int rank, const std::vector<Call>& calls) {
  const std::lock_guard lock(mutex_);
  Unit unit;
  unit.number = members_[rank].units++;
  for (const Call& call : calls) {
    if (!call.is_pair()) unit.collectives.push_back(members_[rank].collectives++);
  }
  return unit;
}

void Clique::perform(int rank, const Unit& unit, const std::vector<Call>& calls) {
  Lock lock(mutex_);
  Member& member = members_[rank];
  // NCCL runs the operations of a communicator in the order of the calls, on whatever streams they are.
  wait(
      lock, rank, [&] { return member.units_done == unit.number; }, "its own earlier operations");
  std::vector<std::shared_ptr<Pair>> pairs;
  for (const Call& call : calls) {
    if (!call.is_pair()) continue;
    pairs.push_back(std::make_shared<Pair>(Pair{call, rank, false}));
    if (!member.aborted && error_ == ncclSuccess) post(pairs.back());
  }
  std::size_t next = 0;
  for (const Call& call : calls) {
    if (!call.is_pair()) meet(lock, rank, unit.collectives[next++], call);
  }
  for (const auto& pair : pairs) {
    wait(
        lock, rank, [&] { return pair->done; }, fmt::format("rank {} to match {}", pair->call.root, pair->call.text()));
  }
  ++member.units_done;
  changed_.notify_all();
}

void Clique::meet(Lock& lock, int rank, std::uint64_t number, const Call& call) {
  if (members_[rank].aborted || error_ != ncclSuccess) return;
  Slot& slot = slots_[number];
  slot.calls.resize(size);
  for (int other = 0; other < size; ++other) {
    const auto& theirs = slot.calls[other];
    if (!theirs) continue;
    const bool reduces = call.function != Function::all_gather;
    if (theirs->function == call.function && theirs->count == call.count && theirs->type == call.type &&
        (!reduces || theirs->op == call.op)) {
      continue;
    }
    break_up_locked(ncclInvalidUsage, fmt::format("collective {}: rank {} calls {}, rank {} calls {}", number, other,
                                                  theirs->text(), rank, call.text()));
    return;
  }
  slot.calls[rank] = call;
  const bool all =
      std::all_of(slot.calls.begin(), slot.calls.end(), [](const auto& theirs) { return theirs.has_value(); });
  if (all) {
    std::vector<Call> calls;
    for (const auto& theirs : slot.calls) calls.push_back(*theirs);
    carry_out(calls);
    slot.done = true;
    changed_.notify_all();
  } else if (!wait(
                 lock, rank, [&] { return slot.done; },
                 fmt::format("the others' collective {}, {}", number, call.text()))) {
    return;  // keep the slot: other ranks still look at it
  }
  if (++slot.left == size) slots_.erase(number);
}

void Clique::post(const std::shared_ptr<Pair>& pair) {
  const bool sends = pair->call.function == Function::send;
  const int peer = pair->call.root;
  auto& queue = waiting_[sends ? std::make_pair(pair->rank, peer) : std::make_pair(peer, pair->rank)];
  if (queue.empty() || queue.front()->call.function == pair->call.function) {
    queue.push_back(pair);
    return;
  }
  const auto other = queue.front();
  queue.pop_front();
  if (other->call.count != pair->call.count || other->call.type != pair->call.type) {
    break_up_locked(ncclInvalidUsage, fmt::format("rank {} calls {}, rank {} calls {}", other->rank, other->call.text(),
                                                  pair->rank, pair->call.text()));
    return;
  }
  const Call& from = sends ? pair->call : other->call;
  const Call& to = sends ? other->call : pair->call;
  std::memmove(to.recv, from.send, from.count * size_of(from.type));
  other->done = pair->done = true;
  changed_.notify_all();
}

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

// Reads all inputs before it writes any output, so that in-place calls are correct, too.
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
