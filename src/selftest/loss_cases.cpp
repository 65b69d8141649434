#include <fmt/format.h>

#include "selftest/case_builder.h"

namespace harness::selftest {

void add_loss_cases(Cases& cases, program::DType type) {
  struct Size {
    std::int64_t rows, vocab;  // of the whole table
    int shards, rank;
    bool large = false;
  };
  for (const Size& s :
       {Size{1, 8, 1, 0}, Size{7, 33, 1, 0}, Size{64, 1000, 1, 0}, Size{4, 50304, 1, 0}, Size{1500, 16, 1, 0},
        Size{2, 8191, 1, 0}, Size{24, 1024, 2, 0}, Size{24, 1024, 2, 1}, Size{2048, 50304, 1, 0, true}}) {
    const std::int64_t vocab = s.vocab / s.shards, n = s.rows * vocab;
    const program::Layout layout{{program::Axis::tensor, s.shards}};
    const program::Shard shard{program::Axis::tensor, vocab};
    const std::string name =
        fmt::format("{} x {}{}", s.rows, vocab, s.shards == 1 ? "" : fmt::format(", shard {} of {}", s.rank, s.shards));
    const auto builder = [&] {
      CaseBuilder b(type);
      b.at(layout, s.rank);
      if (s.large) b.large();
      return b;
    };
    const auto labels = [&](CaseBuilder& b) { return b.whole_numbers("labels", s.rows, s.vocab); };
    const double mean = 1 / static_cast<double>(s.rows);
    if (s.shards == 1) {
      CaseBuilder b = builder();
      const program::View logits = b.normal("logits", n, 2), of = labels(b),
                          loss = b.normal("loss", program::DType::f32, 1);
      cases.push_back(b.take(program::CrossEntropy{logits, of, loss, s.rows, vocab, mean, 0.5}, name));
    }
    CaseBuilder m = builder();
    const program::View in = m.normal("logits", n, 2);
    const program::CrossEntropyMaximum maximum{in, m.output("maximum", program::DType::f32, s.rows), s.rows, vocab};
    cases.push_back(m.take(maximum, name));

    CaseBuilder t = builder();
    program::CrossEntropySums sums;
    sums.logits = t.normal("logits", n, 2);
    sums.labels = labels(t);
    sums.maximum = t.output("maximum", program::DType::f32, s.rows);
    sums.target = t.output("target", program::DType::f32, s.rows);
    sums.sum = t.output("sum", program::DType::f32, s.rows);
    sums.rows = s.rows;
    sums.vocab = vocab;
    sums.shard = shard;
    t.prepare(program::CrossEntropyMaximum{sums.logits, sums.maximum, s.rows, vocab});
    cases.push_back(t.take(sums, name));

    CaseBuilder g = builder();
    program::CrossEntropyGradient gradient;
    gradient.logits = g.normal("logits", n, 2);
    gradient.labels = labels(g);
    gradient.maximum = g.output("maximum", program::DType::f32, s.rows);
    gradient.target = g.output("target", program::DType::f32, s.rows);
    gradient.sum = g.output("sum", program::DType::f32, s.rows);
    gradient.loss = g.normal("loss", program::DType::f32, 1);
    gradient.rows = s.rows;
    gradient.vocab = vocab;
    gradient.shard = shard;
    gradient.loss_scale = mean;
    gradient.gradient_scale = 0.5;
    g.prepare(program::CrossEntropyMaximum{gradient.logits, gradient.maximum, s.rows, vocab});
    g.prepare(program::CrossEntropySums{gradient.logits, gradient.labels, gradient.maximum, gradient.target,
                                        gradient.sum, s.rows, vocab, shard});
    cases.push_back(g.take(gradient, name));
  }
}

}  // namespace harness::selftest
