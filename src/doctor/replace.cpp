#include "doctor/replace.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace harness::doctor {
namespace {

bool is_hex(char c) {
  return std::isxdigit(static_cast<unsigned char>(c)) != 0;
}
bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool is_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}
// Of what a name or an address can consist.
bool is_of_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' || c == ':';
}

bool all_hex(const std::vector<std::string_view>& parts, std::size_t shortest, std::size_t longest) {
  return std::ranges::all_of(parts, [&](std::string_view part) {
    return part.size() >= shortest && part.size() <= longest && std::ranges::all_of(part, is_hex);
  });
}

bool is_ipv4(std::string_view word) {
  const auto parts = split(word, '.');
  return parts.size() == 4 && std::ranges::all_of(parts, [](std::string_view part) {
           return !part.empty() && part.size() <= 3 && std::ranges::all_of(part, is_digit) &&
                  std::stoi(std::string(part)) <= 255;
         });
}

// MAC of Ethernet (6 bytes) or InfiniBand (20).
bool is_mac(std::string_view word) {
  for (const char between : {':', '-'}) {
    const auto parts = split(word, between);
    if ((parts.size() == 6 || parts.size() == 20) && all_hex(parts, 2, 2)) return true;
  }
  return false;
}

// Also a GID, and a GUID in four groups. What has fewer colons is a PCI address or a time of day.
bool is_ipv6(std::string_view word) {
  const auto parts = split(word, ':');
  return (parts.size() >= 4 || (parts.size() >= 3 && word.find("::") != std::string_view::npos)) &&
         all_hex(parts, 0, 4);
}

// Also with what NVIDIA puts before it: "GPU-".
bool is_uuid(std::string_view word) {
  if (word.starts_with("GPU-") || word.starts_with("MIG-")) word.remove_prefix(4);
  const auto parts = split(word, '-');
  constexpr std::array<std::size_t, 5> lengths{8, 4, 4, 4, 12};
  return std::ranges::equal(parts, lengths, {}, &std::string_view::size) && all_hex(parts, 4, 12);
}

bool is_guid(std::string_view word) {
  if (word.starts_with("0x")) word.remove_prefix(2);
  return word.size() == 16 && std::ranges::all_of(word, is_hex) && !std::ranges::all_of(word, is_digit);
}

// An interface that is named by its MAC: "enx00e04c680001".
bool is_interface(std::string_view word) {
  return word.size() == 15 && word.starts_with("enx") && std::ranges::all_of(word.substr(3), is_hex);
}

const char* kind_of(std::string_view word) {
  if (is_ipv4(word) || is_mac(word) || is_ipv6(word)) return "address";
  if (is_guid(word)) return "guid";
  if (is_uuid(word)) return "uuid";
  return is_interface(word) ? "interface" : nullptr;
}

// What may hold anything: others are words and numbers of the kernel and the driver.
bool is_free_text(std::string_view fact) {
  return fact.starts_with("env/") || fact.starts_with("nccl_conf/") || fact.starts_with("log/") ||
         fact.starts_with("library/") || fact == "os/cmdline" || fact.ends_with("/interface") ||
         fact.ends_with("/fabric_cluster");
}

// The launcher's own, but for those of its variables that a check reads (mpi_checks.cpp).
bool is_left_out(std::string_view fact) {
  constexpr std::array<std::string_view, 3> judged{"env/OMPI_MCA_pml", "env/OMPI_MCA_btl",
                                                   "env/OMPI_MCA_btl_tcp_if_include"};
  if (std::ranges::find(judged, fact) != judged.end()) return false;
  return fact.starts_with("env/OMPI_MCA_") || fact.starts_with("env/SLURM_");
}

class Replacer {
 public:
  explicit Replacer(const std::vector<Node>& nodes) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::string host = lower(nodes[i].host);
      const std::size_t dot = host.find('.');
      add_name(host, fmt::format("node{}", i + 1));
      add_name(host.substr(0, dot), fmt::format("node{}", i + 1));
      if (dot != std::string::npos) add_name(host.substr(dot + 1), "domain");
    }
  }

  std::string text(const std::string& whole) {
    std::string out;
    for (std::size_t at = 0; at < whole.size();) {
      if (!is_of_word(whole[at])) {
        out += whole[at++];
        continue;
      }
      const std::size_t end =
          std::find_if_not(whole.begin() + static_cast<std::ptrdiff_t>(at), whole.end(), is_of_word) - whole.begin();
      const std::string word = whole.substr(at, end - at);
      const bool of_user = out.ends_with("/home/") || out.ends_with("/Users/");
      out += of_user ? known("user", word) : replaced(word);
      at = end;
    }
    return out;
  }

  Facts facts(const Facts& all) {
    Facts out;
    for (const auto& [name, reading] : all) {
      if (is_left_out(name)) continue;
      machine::Reading kept = reading;
      if (is_free_text(name)) kept.text = text(kept.text);
      kept.why = text(kept.why);
      out.set(interfaces_in(name), std::move(kept));
    }
    return out;
  }

 private:
  // "net/enx00e04c680001/state"
  std::string interfaces_in(const std::string& fact) {
    std::vector<std::string> parts;
    for (const std::string_view part : split(fact, '/'))
      parts.push_back(is_interface(part) ? known("interface", std::string(part)) : std::string(part));
    return join(parts, "/");
  }

  std::string known(const std::string& kind, const std::string& word) {
    std::map<std::string, std::string>& words = words_[kind];
    return words.try_emplace(lower(word), fmt::format("{}{}", kind, words.size() + 1)).first->second;
  }

  // Of "10.0.0.1:4791", "node7.site.example", "hostname:node7" what stands between colons counts, too.
  std::string replaced(const std::string& word) {
    std::size_t end = word.find_last_not_of(".:-");
    end = end == std::string::npos ? 0 : end + 1;
    const std::string core = word.substr(0, end), rest = word.substr(end);
    if (const char* kind = kind_of(core)) return known(kind, core) + rest;
    if (core.find(':') != std::string::npos) {
      std::vector<std::string> parts;
      for (const std::string_view part : split(core, ':')) parts.push_back(replaced(std::string(part)));
      return join(parts, ":") + rest;
    }
    return without_hosts(core) + rest;
  }

  // "topo-node7.xml", "node7.site.example": whole names alone, the longest first.
  std::string without_hosts(const std::string& word) const {
    const auto is_border = [&](std::size_t at) {
      return at == 0 || at == word.size() || !is_of_name(word[at - 1]) || !is_of_name(word[at]);
    };
    std::string out;
    for (std::size_t at = 0; at < word.size();) {
      std::size_t taken = 0;
      for (std::size_t end = std::min(word.size(), at + longest_); is_border(at) && end > at; --end) {
        const auto name = is_border(end) ? names_.find(lower(word.substr(at, end - at))) : names_.end();
        if (name == names_.end()) continue;
        out += name->second;
        taken = end - at;
        break;
      }
      if (taken == 0) out += word[at];
      at += std::max<std::size_t>(1, taken);
    }
    return out;
  }

  // A short name may be a word of NCCL's, or a number.
  void add_name(const std::string& name, const std::string& word) {
    constexpr std::size_t shortest = 3, longest = 255;
    const bool has_letter = std::ranges::any_of(name, [](char c) { return is_of_name(c) && !is_digit(c); });
    if (name.size() < shortest || name.size() > longest || !has_letter) return;
    names_.try_emplace(name, word);
    longest_ = std::max(longest_, name.size());
  }

  std::map<std::string, std::string> names_;                         // of hosts and domains
  std::size_t longest_ = 0;                                          // of them
  std::map<std::string, std::map<std::string, std::string>> words_;  // by kind
};

}  // namespace

Bundle without_names(const Bundle& bundle) {
  Replacer replacer(bundle.nodes);
  Bundle out{bundle.created, bundle.tool_version, true, {}};
  for (std::size_t i = 0; i < bundle.nodes.size(); ++i) {
    const Node& node = bundle.nodes[i];
    Node& other = out.nodes.emplace_back(Node{fmt::format("node{}", i + 1), {}, replacer.facts(node.facts)});
    for (const Rank& rank : node.ranks) other.ranks.push_back({rank.rank, replacer.facts(rank.facts)});
  }
  return out;
}

}  // namespace harness::doctor
