#include "backend/cuda/emulation/emulation.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <vector>

#include "backend/cuda/emulation/device.h"
#include "backend/cuda/emulation/fiber.h"
#include "base/random.h"
#include "base/text.h"

namespace harness::emulation {
namespace {

constexpr int lanes = 32;
constexpr std::size_t static_limit = 48 * 1024, red_zone = 64;
constexpr unsigned char poison = 0xff, red = 0xa5;  // 0xff...: NaN in every floating-point type

enum class State : std::uint8_t { ready, at_warp_barrier, at_block_barrier, done };

struct Thread {
  Fiber fiber;
  Indices indices{};
  State state = State::ready;
  bool second = false;  // which of the two exchange buffers is next
};

// Fibers and shared memory to run one block. Used by one host thread at a time.
class Machine {
 public:
  /// `seed` determines the order of blocks, warps and lanes.
  void run(const LaunchShape& shape, const std::function<void()>& body, std::uint64_t seed) {
    shape_ = shape;
    body_ = &body;
    failure_ = nullptr;
    while (static_cast<int>(threads_.size()) < shape.threads) {
      threads_.push_back(std::make_unique<Thread>());
      threads_.back()->fiber.start([this] { body_of_thread(); });
    }
    dynamic_.reset(new unsigned char[static_cast<std::size_t>(shape.shared_bytes) + red_zone]);
    try {
      // A stride coprime with the number of blocks visits each block once, in an order that looks random.
      const auto draw = philox(0x5eed, seed);
      random_ = draw[2];
      std::int64_t step = 1 + static_cast<std::int64_t>(draw[0]) % shape.blocks;
      while (std::gcd(step, shape.blocks) != 1) ++step;
      std::int64_t block = static_cast<std::int64_t>(draw[1]) % shape.blocks;
      for (std::int64_t i = 0; i < shape.blocks; ++i, block = (block + step) % shape.blocks) run_block(block);
    } catch (...) {
      threads_.clear();  // some fibers are suspended inside the kernel
      throw;
    }
  }

  Indices& indices() { return current_->indices; }

  void stop(State state) {
    current_->state = state;
    current_->fiber.suspend();
  }

  std::uint64_t exchange(std::uint64_t value, int lane_mask) {
    Thread& self = *current_;
    const auto warp = self.indices.thread.x / lanes, lane = self.indices.thread.x % lanes;
    auto& slots = slots_[warp][self.second];
    self.second = !self.second;  // no lane writes this buffer again before all lanes reach the next exchange
    slots[lane] = value;
    stop(State::at_warp_barrier);
    return slots[(lane ^ static_cast<unsigned>(lane_mask)) % lanes];
  }

  void* dynamic_shared() { return dynamic_.get(); }

  void* shared(const void* site, std::size_t bytes) {
    for (const auto& [known, at] : sites_) {
      if (known == site) return static_memory_.get() + at;
    }
    const std::size_t at = used_;
    used_ += (bytes + red_zone + 15) / 16 * 16;
    if (used_ > static_limit) fail("emulated kernel {}: more than 48 KiB of shared memory declared", shape_.name);
    declared_ += static_cast<std::int64_t>(bytes);
    if (declared_ + shape_.shared_bytes > shared_limit_bytes) {
      fail("emulated kernel {}: {} bytes of shared memory declared beside the launch's {}, a block has {} at most",
           shape_.name, declared_, shape_.shared_bytes, shared_limit_bytes);
    }
    std::memset(static_memory_.get() + at, poison, bytes);
    std::memset(static_memory_.get() + at + bytes, red, red_zone);
    sites_.emplace_back(site, at);
    zones_.push_back(static_memory_.get() + at + bytes);
    return static_memory_.get() + at;
  }

  const char* name() const { return shape_.name; }

  bool is_shared(const void* p) const {
    const auto* const at = static_cast<const unsigned char*>(p);
    const auto within = [&](const unsigned char* first, std::size_t bytes) {
      return !std::less<>()(at, first) && std::less<>()(at, first + bytes);
    };
    return within(static_memory_.get(), static_limit) ||
           within(dynamic_.get(), static_cast<std::size_t>(shape_.shared_bytes) + red_zone);
  }

 private:
  void body_of_thread() {
    try {
      (*body_)();
    } catch (...) {
      failure_ = std::current_exception();
    }
    current_->state = State::done;
  }

  void run_block(std::int64_t block) {
    std::memset(dynamic_.get(), poison, shape_.shared_bytes);
    std::memset(dynamic_.get() + shape_.shared_bytes, red, red_zone);
    sites_.clear();
    zones_.assign(1, dynamic_.get() + shape_.shared_bytes);
    used_ = 0;
    declared_ = 0;
    for (int t = 0; t < shape_.threads; ++t) {
      Thread& thread = *threads_[t];
      thread.indices = {{static_cast<unsigned>(t)},
                        {static_cast<unsigned>(block)},
                        {static_cast<unsigned>(shape_.threads)},
                        {static_cast<unsigned>(shape_.blocks)}};
      thread.state = State::ready;
      thread.second = false;
    }
    const auto warps = static_cast<std::uint32_t>(shape_.threads / lanes);
    for (bool more = true; more;) {
      const std::uint32_t order = scramble();
      int at_barrier = 0;
      for (std::uint32_t w = 0; w < warps; ++w) {
        const std::uint32_t turn = order & 1 ? warps - 1 - w : w;
        at_barrier += run_warp((turn + (order >> 1)) % warps);
      }
      more = at_barrier == static_cast<int>(warps);
      if (!more && at_barrier != 0) {
        fail("emulated kernel {}: some threads of block {} ended while others wait at __syncthreads", shape_.name,
             block);
      }
    }
    for (const unsigned char* zone : zones_) {
      for (std::size_t i = 0; i < red_zone; ++i) {
        if (zone[i] != red) fail("emulated kernel {}: block {} wrote past its shared memory", shape_.name, block);
      }
    }
  }

  // Runs until all lanes wait at the block's barrier (returns 1) or have ended (returns 0).
  int run_warp(std::uint32_t warp) {
    for (;;) {
      const std::uint32_t order = scramble();
      std::array<int, 4> count{};
      for (std::uint32_t l = 0; l < lanes; ++l) {
        const std::uint32_t turn = order & 1 ? lanes - 1 - l : l;
        current_ = threads_[warp * lanes + (turn + (order >> 1)) % lanes].get();
        if (current_->state != State::done) {
          current_->state = State::ready;
          current_->fiber.resume();
          if (failure_) std::rethrow_exception(failure_);
        }
        ++count[static_cast<std::size_t>(current_->state)];
      }
      if (count[static_cast<std::size_t>(State::at_block_barrier)] == lanes) return 1;
      if (count[static_cast<std::size_t>(State::done)] == lanes) return 0;
      if (count[static_cast<std::size_t>(State::at_warp_barrier)] != lanes) {
        fail(
            "emulated kernel {}: of the lanes of warp {}, {} wait at __syncthreads, {} for the rest of their warp and "
            "{} have ended",
            shape_.name, warp, count[2], count[1], count[3]);
      }
    }
  }

  std::uint32_t scramble() {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(random_ >> 40);
  }

  std::vector<std::unique_ptr<Thread>> threads_;
  std::unique_ptr<unsigned char[]> dynamic_, static_memory_{new unsigned char[static_limit]};
  std::array<std::array<std::array<std::uint64_t, lanes>, 2>, lanes> slots_{};
  std::vector<std::pair<const void*, std::size_t>> sites_;
  std::vector<const unsigned char*> zones_;
  std::size_t used_ = 0;
  std::int64_t declared_ = 0;  // used_ without red zones and padding
  LaunchShape shape_{};
  const std::function<void()>* body_ = nullptr;
  Thread* current_ = nullptr;
  std::exception_ptr failure_;
  std::uint64_t random_ = 1;
};

// Pools machines until the process ends, as many as ever ran at once. A machine with its fibers is expensive to make
// and takes 100 MB or more under a sanitizer, while the host threads of streams come and go.
class Machines {
 public:
  static Machines& all() {
    static auto& machines = *new Machines;  // never destroyed: host threads may outlive main()
    return machines;
  }

  std::unique_ptr<Machine> take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<Machine>();
    auto machine = std::move(idle_.back());
    idle_.pop_back();
    return machine;
  }

  void give_back(std::unique_ptr<Machine> machine) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(machine));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Machine>> idle_;
};

std::atomic<std::uint64_t> runs = 0;           // launches so far: the seed of the next
thread_local Machine* running_here = nullptr;  // of this host thread, while it runs a kernel

Machine& machine() {
  return *running_here;
}

void check(const LaunchShape& shape) {
  if (shape.blocks < 1 || shape.blocks > 0x7fffffff || shape.threads < lanes || shape.threads > 1024 ||
      shape.threads % lanes != 0 || shape.shared_bytes < 0 || shape.shared_bytes > shared_limit_bytes) {
    fail("emulated kernel {}: {} blocks of {} threads with {} bytes of shared memory is no launch a device takes",
         shape.name, shape.blocks, shape.threads, shape.shared_bytes);
  }
}

}  // namespace

void run(const LaunchShape& shape, const std::function<void()>& thread) {
  if (running_here != nullptr) fail("emulated kernel {}: started from inside a kernel", shape.name);
  check(shape);
  auto machine = Machines::all().take();
  running_here = machine.get();
  std::exception_ptr failure;
  try {
    machine->run(shape, thread, runs++);
  } catch (...) {
    failure = std::current_exception();
  }
  running_here = nullptr;
  Machines::all().give_back(std::move(machine));
  if (failure) std::rethrow_exception(failure);
}

Indices& indices() {
  return machine().indices();
}

void* shared(const void* site, std::size_t bytes) {
  return machine().shared(site, bytes);
}

void* dynamic_shared() {
  return machine().dynamic_shared();
}

void block_barrier() {
  machine().stop(State::at_block_barrier);
}

std::uint64_t exchange(std::uint64_t mine, int lane_mask) {
  return machine().exchange(mine, lane_mask);
}

std::uint64_t nanoseconds() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

void misaligned(const void* p, std::size_t bytes) {
  fail("emulated kernel {}: {} bytes at once at an address that is no multiple of them ({})", machine().name(), bytes,
       p);
}

void check_global(const void* p) {
  if (!machine().is_shared(p)) return;
  fail("emulated kernel {}: an instruction for global memory at an address in shared memory", machine().name());
}

void partial_mask(unsigned mask) {
  fail("emulated kernel {}: a shuffle with mask {:x}; only whole warps are emulated", machine().name(), mask);
}

}  // namespace harness::emulation
