#include "backend/cuda/attention_tuner.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "backend/cuda/judge.h"
#include "backend/cuda/kernels/kernels.h"
#include "base/error.h"
#include "base/text.h"

namespace harness::cuda {
namespace {

using Run = AttentionKernel::Run;

constexpr int most_kernels = 8;  // of a direction that are tried; cuDNN 9.19 offers two on an H200

// Random operands of both directions.
class AttentionOperands {
 public:
  AttentionOperands(const program::AttentionShape& s, program::DType type) {
    const std::int64_t queries = s.batch * s.query_length * s.query_stride,
                       keys = s.batch * s.key_length * s.key_stride,
                       dense = s.batch * s.query_length * s.heads * s.head_dim,
                       stats = s.batch * s.heads * s.query_length;
    const auto make = [&](std::int64_t count, program::DType of) {
      memory_.emplace_back(Memory::Kind::device, count * program::size_of(of), "tuning attention");
      return backend::Tensor{memory_.back().data(), of, count};
    };
    forward.q = backward.q = make(queries, type);
    forward.k = backward.k = make(keys, type);
    forward.v = backward.v = make(keys, type);
    forward.out = backward.out = make(dense, type);
    forward.stats = backward.stats = make(stats, program::DType::f32);
    backward.dout = make(dense, type);
    backward.dq = make(queries, type);
    backward.dk = make(keys, type);
    backward.dv = make(keys, type);
    forward.shape = backward.shape = s;
  }
  void fill(Stream stream) const {
    std::uint64_t seed = 1;
    for (const backend::Tensor& t : {forward.q, forward.k, forward.v, backward.dout}) fill_random(stream, t, seed++);
  }

  backend::Bound<program::Attention> forward;
  backend::Bound<program::AttentionBackward> backward;

 private:
  std::vector<Memory> memory_;
};

struct Candidate {
  int engine;
  Run run;
  double seconds = 0;
};

double tolerance_of(program::DType type) {
  return type == program::DType::bf16 ? 2e-2 : 1e-3;
}

/// The candidates from the fastest on, of those that agree with the first that runs.
std::vector<Candidate> from_the_fastest(std::vector<Candidate> candidates, Judge& judge, Timer& timer,
                                        const Effort& effort, const std::string& what, int& rejected) {
  bool have_reference = false;
  std::erase_if(candidates, [&](const Candidate& c) {
    bool agrees = false;
    const bool ran = survives(
        [&] {
          if (!have_reference) judge.set_reference(c.run);
          have_reference = true;
          agrees = judge.agrees(c.run);
        },
        [&] { return fmt::format("while cuDNN's kernel {} was tried for {}", c.engine, what); });
    rejected += ran && !agrees ? 1 : 0;
    return !agrees;
  });
  if (candidates.empty()) fail("no kernel runs for {}", what);
  const auto sort_by = [&](const std::vector<double>& seconds) {
    for (std::size_t i = 0; i < candidates.size(); ++i) candidates[i].seconds = seconds[i];
    std::ranges::stable_sort(candidates, {}, &Candidate::seconds);
  };
  const auto runs = [&] {
    std::vector<std::vector<Blas::Run>> all;
    for (const Candidate& c : candidates) all.push_back({c.run});
    return all;
  };
  sort_by(timer.medians(runs(), effort.rounds));
  if (effort.lasting_s > 0) {
    candidates.resize(std::min<std::size_t>(candidates.size(), effort.lasting));
    sort_by(timer.lasting(runs(), effort.lasting_s));
  }
  return candidates;
}

// The operation of a fused attention whose type it can have; nullptr: none.
const program::AttentionShape* shape_of(const program::Operation& operation) {
  if (const auto* forward = std::get_if<program::Attention>(&operation.action)) return &forward->shape;
  if (const auto* backward = std::get_if<program::AttentionBackward>(&operation.action)) return &backward->shape;
  return nullptr;
}

bool wants_fused(const backend::ExecutableRequest& request) {
  return request.settings.attention == config::AttentionKind::fused &&
         request.settings.precision == config::Precision::bf16;
}

bool runs_fused(const program::AttentionShape& shape) {
  return fused_attention_unavailable(shape, program::DType::bf16).empty();
}

MakeAttention fused(const program::AttentionShape& shape) {
  return
      [shape](const AttentionEngines& engines) { return make_fused_attention(shape, program::DType::bf16, engines); };
}

}  // namespace

std::string key_of(const program::AttentionShape& s) {
  return fmt::format("attention {}x{}x{} q:{}/{} k:{}/{}{}{}", s.batch, s.heads, s.head_dim, s.query_length,
                     s.query_stride, s.key_length, s.key_stride, s.causal ? " causal" : "",
                     s.group > 1 ? fmt::format(" group {}", s.group) : "");
}

std::string print_choice(const AttentionChoice& c) {
  std::string text =
      fmt::format("{} {} {:.4g} {:.4g}", c.engines.forward, c.engines.backward, c.forward_s, c.backward_s);
  if (c.rejected > 0) text += fmt::format(" {}", c.rejected);
  return text;
}

AttentionChoice parse_attention(std::string_view text) {
  const auto wrong = [&] { fail("{} is not a tuned attention that this program wrote", quote(text)); };
  std::string_view rest = text;
  const auto read = [&](auto& value) {
    const std::size_t space = std::min(rest.find(' '), rest.size());
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + space, value);
    if (error != std::errc() || end != rest.data() + space) wrong();
    rest.remove_prefix(std::min(space + 1, rest.size()));
  };
  AttentionChoice c;
  read(c.engines.forward);
  read(c.engines.backward);
  read(c.forward_s);
  read(c.backward_s);
  if (!rest.empty()) read(c.rejected);
  if (!rest.empty()) wrong();
  return c;
}

AttentionChoice fastest_attention(const program::AttentionShape& shape, program::DType type,
                                  const AttentionEngines& offered, const MakeAttention& make, Timer& timer,
                                  const Effort& effort) {
  const AttentionOperands at(shape, type);
  at.fill(timer.stream());
  std::vector<std::unique_ptr<AttentionKernel>> kernels;
  std::vector<Candidate> forward, backward;
  for (int i = 0; i < std::min(most_kernels, std::max(offered.forward, offered.backward)); ++i) {
    kernels.push_back(make({i, i}));
    const auto add = [&](std::vector<Candidate>& to, const auto& prepare) {
      // cuDNN may propose what it then does not build.
      survives(
          [&] {
            to.push_back({i, prepare()});
          },
          [&] { return fmt::format("while cuDNN's kernel {} was built for {}", i, key_of(shape)); });
    };
    if (i < offered.forward) add(forward, [&] { return kernels.back()->forward(at.forward); });
    if (i < offered.backward) add(backward, [&] { return kernels.back()->backward(at.backward); });
  }
  AttentionChoice best;
  Judge of_forward({at.forward.out, at.forward.stats}, tolerance_of(type), 0, timer.stream());
  const Candidate there =
      from_the_fastest(std::move(forward), of_forward, timer, effort, key_of(shape) + ", forward", best.rejected)
          .front();
  there.run(timer.stream());  // out and stats, which the way back reads
  Judge of_backward({at.backward.dq, at.backward.dk, at.backward.dv}, tolerance_of(type), 0, timer.stream());
  const Candidate back =
      from_the_fastest(std::move(backward), of_backward, timer, effort, key_of(shape) + ", backward", best.rejected)
          .front();
  best.engines = {there.engine, back.engine};
  best.forward_s = there.seconds;
  best.backward_s = back.seconds;
  return best;
}

std::vector<program::AttentionShape> attention_shapes(const program::Program& program) {
  std::vector<program::AttentionShape> shapes;
  for (const program::Operation& operation : program.step) {
    const program::AttentionShape* shape = shape_of(operation);
    if (shape != nullptr && std::ranges::find(shapes, *shape) == shapes.end()) shapes.push_back(*shape);
  }
  return shapes;
}

backend::Tuning tune_attention(const backend::ExecutableRequest& request, const backend::Tuning& known,
                               const Effort& effort) {
  backend::Tuning found;
  if (!wants_fused(request) || request.settings.attention_engine >= 0) return found;
  Timer timer;
  for (const program::AttentionShape& shape : attention_shapes(*request.program)) {
    if (known.contains(key_of(shape)) || !runs_fused(shape)) continue;
    try {
      found[key_of(shape)] = print_choice(
          fastest_attention(shape, program::DType::bf16, fused_attention_offers(shape), fused(shape), timer, effort));
    } catch (const OutOfMemory&) {  // cuDNN's first proposal serves
    }
  }
  return found;
}

AttentionChoice time_attention(const program::AttentionShape& shape, program::DType type,
                               const AttentionEngines& engines, const MakeAttention& make, Timer& timer,
                               double seconds) {
  const AttentionOperands at(shape, type);
  at.fill(timer.stream());
  const auto kernel = make(engines);
  AttentionChoice timed;
  timed.engines = engines;
  timed.forward_s = timer.sustained({kernel->forward(at.forward)}, seconds / 2);
  timed.backward_s = timer.sustained({kernel->backward(at.backward)}, seconds / 2);
  return timed;
}

std::vector<backend::AloneTiming> time_attentions(const backend::ExecutableRequest& request,
                                                  const backend::Tuning& tuning, double seconds) {
  std::vector<backend::AloneTiming> timings;
  if (!wants_fused(request)) return timings;
  std::vector<program::AttentionShape> shapes = attention_shapes(*request.program);
  std::erase_if(shapes, [](const program::AttentionShape& shape) { return !runs_fused(shape); });
  std::map<program::AttentionShape, AttentionChoice> timed;
  Timer timer;
  for (const program::AttentionShape& shape : shapes) {
    const int engine = request.settings.attention_engine;
    AttentionEngines engines{engine, engine};
    if (const auto tuned = tuning.find(key_of(shape)); engine < 0 && tuned != tuning.end()) {
      engines = parse_attention(tuned->second).engines;
    }
    const auto time = [&] {
      timed[shape] = time_attention(shape, program::DType::bf16, engines, fused(shape), timer,
                                    seconds / static_cast<double>(shapes.size()));
    };
    survives(time, [&] { return "while " + key_of(shape) + " was timed alone"; });  // or memory does not suffice
  }
  for (const program::Operation& operation : request.program->step) {
    const program::AttentionShape* shape = shape_of(operation);
    const auto found = shape == nullptr ? timed.end() : timed.find(*shape);
    if (found == timed.end()) continue;
    const bool forward = std::holds_alternative<program::Attention>(operation.action);
    const int engine = forward ? found->second.engines.forward : found->second.engines.backward;
    timings.push_back({static_cast<program::OperationId>(&operation - request.program->step.data()),
                       forward ? found->second.forward_s : found->second.backward_s,
                       engine < 0 ? "fused" : fmt::format("fused, kernel {}", engine)});
  }
  return timings;
}

}  // namespace harness::cuda
