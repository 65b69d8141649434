#include <fmt/format.h>

#include "selftest/operation_cases.h"

namespace harness::selftest {
namespace {

struct AttentionSize {
  std::int64_t batch, heads, head_dim, queries, keys;
  bool packed, causal;
  bool large = false;
  std::int64_t group = 1;
  std::int64_t document = 0;  // length of each document, within a sequence; 0: one document
  std::int64_t key_width() const { return heads / group * head_dim; }
  std::int64_t row() const { return heads * head_dim + 2 * key_width(); }  // of packed rows
};

constexpr AttentionSize attention_sizes[] = {{2, 2, 16, 32, 32, true, true},
                                             {1, 3, 64, 37, 37, true, true},
                                             {2, 2, 64, 128, 128, true, true},
                                             {1, 2, 128, 160, 160, true, true},
                                             {2, 2, 64, 64, 64, false, false},
                                             {1, 2, 64, 48, 80, false, false},
                                             {1, 1, 80, 64, 64, true, true},
                                             {2, 2, 32, 96, 96, false, true},
                                             {2, 4, 16, 48, 48, true, true, false, 2},
                                             {1, 6, 64, 37, 37, true, true, false, 3},
                                             {1, 4, 64, 48, 80, false, false, false, 4},
                                             {2, 2, 16, 32, 32, true, true, false, 1, 8},
                                             {1, 2, 64, 128, 128, true, true, false, 1, 50},
                                             {2, 4, 128, 1024, 1024, true, true, true, 2, 256},
                                             {1, 6, 64, 37, 37, true, true, false, 3, 1},
                                             {1, 16, 128, 2048, 2048, true, true, true},
                                             {1, 16, 128, 2048, 2048, true, true, true, 4}};

program::AttentionShape shape_of(const AttentionSize& s) {
  const std::int64_t width = s.heads * s.head_dim;
  return {
      s.batch,  s.heads, s.head_dim, s.queries, s.keys, s.packed ? s.row() : width, s.packed ? s.row() : s.key_width(),
      s.causal, s.group};
}

struct Three {
  program::View q, k, v;
};

// Deviations below 1 give scores that differ between keys without one key dominating.
Three three(CaseBuilder& b, const AttentionSize& s, const char* prefix, bool written, bool accumulate) {
  const std::int64_t width = s.heads * s.head_dim;
  const auto make = [&](const std::string& name, std::int64_t count) {
    if (!written) return b.normal(name, count, 0.7);
    return b.result(name, b.type(), count, accumulate);
  };
  if (s.packed) {
    const std::int64_t rows = s.batch * s.queries, before = (rows - 1) * s.row(), of_keys = s.key_width();
    const program::View qkv = make(std::string(prefix) + "qkv", rows * s.row());
    return {qkv.part(0, before + width), qkv.part(width, before + of_keys),
            qkv.part(width + of_keys, before + of_keys)};
  }
  return {make(std::string(prefix) + "q", s.batch * s.queries * width),
          make(std::string(prefix) + "k", s.batch * s.keys * s.key_width()),
          make(std::string(prefix) + "v", s.batch * s.keys * s.key_width())};
}

std::string name_for(const AttentionSize& s, config::AttentionKind kind) {
  return fmt::format("{}, {} x {} heads of {}{}, {} x {}{}{}{}",
                     kind == config::AttentionKind::fused ? "fused" : "unfused", s.batch, s.heads, s.head_dim,
                     s.group > 1 ? fmt::format(" in groups of {}", s.group) : "", s.queries, s.keys,
                     s.packed ? ", packed" : "", s.causal ? ", causal" : "",
                     s.document == 0 ? "" : fmt::format(", documents of {}", s.document));
}

}  // namespace

void add_attention_cases(Cases& cases, program::DType type, bool tf32) {
  for (const AttentionSize& s : attention_sizes) {
    const std::int64_t rows = s.batch * s.queries, width = s.heads * s.head_dim;
    const std::int64_t documents = s.document == 0 ? 0 : (s.queries + s.document - 1) / s.document;
    for (const config::AttentionKind kind : {config::AttentionKind::fused, config::AttentionKind::unfused}) {
      const bool is_fused = kind == config::AttentionKind::fused;
      const CaseBuilder empty = CaseBuilder(type, s.large, tf32).attention(kind);
      const auto forward = [&](CaseBuilder& b) {
        const Three in = three(b, s, "", false, false);
        return program::Attention{
            .q = in.q,
            .k = in.k,
            .v = in.v,
            .out = b.output("out", rows * width),
            .stats = b.output("stats", program::DType::f32, rows * s.heads),
            .shape = shape_of(s),
            .probabilities = is_fused ? program::View{} : b.output("probabilities", rows * s.heads * s.keys),
            .position_ids = s.document == 0 ? program::View{} : b.position_ids(rows, s.document),
            .documents = documents};
      };
      add_case(cases, empty, name_for(s, kind), forward);
      for (const bool accumulate : {false, true}) {
        // No fused kernel adds to gradients, and the GPT step does not need it.
        if (accumulate && (is_fused || s.large)) continue;
        add_case(cases, empty, name_for(s, kind) + (accumulate ? ", added" : ""), [&](CaseBuilder& b) {
          const program::Attention f = forward(b);
          b.prepare(f);
          const program::View dout = b.normal("dout", rows * width);
          const Three d = three(b, s, "d", true, accumulate);
          return program::AttentionBackward{f.q, f.k, f.v,     f.out,      f.stats,         dout,           d.q,
                                            d.k, d.v, f.shape, accumulate, f.probabilities, f.position_ids, documents};
        });
      }
    }
  }
}

void add_rope_cases(Cases& cases, program::DType type) {
  struct Size {
    std::int64_t sequences, sequence, heads, head_dim, behind;  // behind: elements of a row that are not rotated
    bool large = false;
    std::int64_t document = 0;  // length of each document in a sequence; 0: one document
  };
  for (const Size& s : {Size{1, 1, 1, 2, 0}, Size{3, 21, 3, 22, 5}, Size{2, 64, 6, 64, 128}, Size{1, 40, 5, 80, 1},
                        Size{1, 5, 2, 1040, 3}, Size{3, 21, 3, 22, 5, false, 8}, Size{2, 4096, 20, 128, 512, true}}) {
    for (const bool backward : {false, true}) {
      CaseBuilder b(type, s.large);
      const std::int64_t rows = s.sequences * s.sequence, width = s.heads * s.head_dim, stride = width + s.behind;
      const program::View data = b.normal("data", (rows - 1) * stride + width);
      program::Rope rope{data, rows, stride, s.heads, s.head_dim, s.sequence, 10000, backward};
      if (s.document > 0) rope.position_ids = b.position_ids(rows, s.document);
      cases.push_back(b.take(rope, fmt::format("{} x {}, {} heads of {}{}{}", s.sequences, s.sequence, s.heads,
                                               s.head_dim, backward ? ", backward" : "",
                                               s.document == 0 ? "" : fmt::format(", documents of {}", s.document))));
    }
  }
}

}  // namespace harness::selftest
