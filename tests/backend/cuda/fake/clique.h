// The ranks of one communicator. Their calls are matched, compared and carried out here.
#pragma once

#include <nccl.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace harness::fake {

enum class Function { all_reduce, all_gather, reduce_scatter, send, recv };
const char* name_of(Function function);

struct Call {
  Function function = Function::all_reduce;
  const void* send = nullptr;
  void* recv = nullptr;
  std::size_t count = 0;  // the function's argument
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t op = ncclSum;
  int root = 0;  // or the peer of a send or recv

  bool is_pair() const { return function == Function::send || function == Function::recv; }
  std::size_t send_bytes(int size) const;  // 0: the call has no such buffer
  std::size_t recv_bytes(int size) const;
  std::string text() const;
};

std::size_t size_of(ncclDataType_t type);  // 0: not supported here
// Carries out one collective, given the calls of all ranks. Sums in rank order, bf16 in float.
void carry_out(const std::vector<Call>& calls);

class Clique {
 public:
  explicit Clique(int size);

  struct Unit {  // one call of a rank, or one group
    std::uint64_t number = 0;
    std::vector<std::uint64_t> collectives;  // the number of each collective, in call order
  };
  Unit issue(int rank, const std::vector<Call>& calls);
  // Called on a stream. Returns when the unit is done, the rank has aborted, or the clique is broken.
  void perform(int rank, const Unit& unit, const std::vector<Call>& calls);

  bool enter(int rank, int size, int device);  // false: the clique is broken
  void abort(int rank);
  void split(int rank, std::uint64_t number, int color, int key);

  // Blocks a host call. Returns false if not reached: a hang was reported, the clique broke, or the rank aborted.
  bool wait(int rank, const std::function<bool()>& reached, const std::string& what);
  void break_up(ncclResult_t error, const std::string& why);
  ncclResult_t error() const;
  std::string why() const;  // why the clique is broken; empty if it is not

  // Conditions for wait(), which calls them under the lock. Do not call them elsewhere.
  bool complete() const;  // all ranks entered
  bool split_met(std::uint64_t number) const;

  struct Child {
    std::shared_ptr<Clique> clique;
    int rank = 0;
  };
  Child child(int rank, std::uint64_t number);  // call after split_met(); null for NCCL_SPLIT_NOCOLOR

  const int size;
  const std::string name;

 private:
  struct Member {
    bool entered = false, aborted = false;
    int device = 0;
    std::uint64_t collectives = 0, units = 0, units_done = 0;
  };
  struct Slot {
    std::vector<std::optional<Call>> calls;
    int left = 0;
    bool done = false;
  };
  struct Pair {
    Call call;
    int rank = 0;
    bool done = false;
  };
  struct Split {
    std::map<int, std::pair<int, int>> wishes;  // rank: color, key
    std::map<int, std::shared_ptr<Clique>> cliques;
  };
  using Lock = std::unique_lock<std::mutex>;

  bool wait(Lock& lock, int rank, const std::function<bool()>& reached, const std::string& what);
  void break_up_locked(ncclResult_t error, const std::string& why);
  std::string absent() const;
  void meet(Lock& lock, int rank, std::uint64_t number, const Call& call);
  void post(const std::shared_ptr<Pair>& pair);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Member> members_;
  std::map<std::uint64_t, Slot> slots_;
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Pair>>> waiting_;  // by sender and receiver
  std::map<std::uint64_t, Split> splits_;
  ncclResult_t error_ = ncclSuccess;
  std::string why_;
};

}  // namespace harness::fake
