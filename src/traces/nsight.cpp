#include "traces/capture.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "base/text.h"
#ifdef HARNESS_HAS_SQLITE3
#include <sqlite3.h>
#endif

namespace harness::traces {

#ifndef HARNESS_HAS_SQLITE3
Capture read_nsight(const std::string& path) {
  fail(
      "{}: it is a database of SQLite, and this harness was built without it; install libsqlite3-dev (`make setup`) "
      "and build again",
      quote(path));
}
#else
namespace {

using Columns = std::initializer_list<std::string_view>;

class Statement;

// An untrusted database: opened read-only, without executing its own code (views, triggers, functions).
class Database {
 public:
  explicit Database(const std::string& path);

  bool has(const std::string& table) const { return tables_.contains(table); }
  bool has(const std::string& table, std::string_view column) const {
    return has(table) && tables_.at(table).contains(std::string(column));
  }
  bool has_any(std::string_view beginning) const;
  /// Returns the tables of this name, with or without a version suffix: NVTX_EVENTS, NVTX_EVENTS_V2.
  std::vector<std::string> versions_of(std::string_view name) const;
  /// Selects the columns of each row; a missing column reads as NULL. All names must come from this file's code.
  Statement rows(const std::string& table, Columns columns, const std::string& tail = "") const;
  Statement prepare(const std::string& sql) const;
  [[noreturn]] void broken() const {
    fail("{}: the database is damaged: {}", quote(path_), sqlite3_errmsg(handle_.get()));
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::unique_ptr<sqlite3, decltype(&sqlite3_close)> handle_{nullptr, sqlite3_close};
  std::map<std::string, std::set<std::string>> tables_;
};

class Statement {
 public:
  Statement(const Database& database, sqlite3_stmt* handle) : database_(database), handle_(handle, sqlite3_finalize) {}

  bool next() {
    const int result = sqlite3_step(handle_.get());
    if (result != SQLITE_ROW && result != SQLITE_DONE) database_.broken();
    return result == SQLITE_ROW;
  }
  bool null(int column) const { return sqlite3_column_type(handle_.get(), column) == SQLITE_NULL; }
  std::int64_t integer(int column) const { return sqlite3_column_int64(handle_.get(), column); }
  std::uint64_t bits(int column) const { return static_cast<std::uint64_t>(integer(column)); }
  std::string_view text(int column) const {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(handle_.get(), column));
    return bytes == nullptr ? "" : std::string_view(bytes, sqlite3_column_bytes(handle_.get(), column));
  }

 private:
  const Database& database_;
  std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> handle_;
};

// Removes a version suffix: "cudaLaunchKernel" for "cudaLaunchKernel_v7000".
std::string_view without_version(std::string_view text, std::string_view mark) {
  const std::size_t at = text.rfind(mark);
  const bool versioned = at != std::string_view::npos && at + mark.size() < text.size() &&
                         text.find_first_not_of("0123456789", at + mark.size()) == std::string_view::npos;
  return versioned ? text.substr(0, at) : text;
}

std::string sql_name(std::string_view identifier) {
  return "\"" + replaced(identifier, {{'"', "\"\""}}) + "\"";
}

Database::Database(const std::string& path) : path_(path) {
  std::string uri = "file:";  // immutable: SQLite looks for neither locks nor a journal
  for (const char c : std::filesystem::absolute(path).string()) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/';
    uri += plain ? std::string(1, c) : fmt::format("%{:02x}", static_cast<unsigned char>(c));
  }
  uri += "?immutable=1";
  sqlite3* opened = nullptr;
  const int result =
      sqlite3_open_v2(uri.c_str(), &opened, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  handle_.reset(opened);
  if (result != SQLITE_OK) fail("{}: cannot be opened: {}", quote(path), sqlite3_errstr(result));
  sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, 16 << 20);
  std::vector<std::string> names;
  for (Statement s = prepare("SELECT name FROM sqlite_master WHERE type = 'table' LIMIT 1000"); s.next();)
    names.emplace_back(s.text(0));
  for (const std::string& name : names) {
    for (Statement s = prepare(fmt::format("PRAGMA table_info({})", sql_name(name))); s.next();)
      tables_[name].emplace(s.text(1));
  }
}

Statement Database::prepare(const std::string& sql) const {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(handle_.get(), sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) broken();
  return {*this, statement};
}

bool Database::has_any(std::string_view beginning) const {
  return std::ranges::any_of(tables_, [&](const auto& table) { return table.first.starts_with(beginning); });
}

std::vector<std::string> Database::versions_of(std::string_view wanted) const {
  std::vector<std::string> found;
  for (const auto& [name, columns] : tables_) {
    if (without_version(name, "_V") == wanted) found.push_back(name);
  }
  return found;
}

Statement Database::rows(const std::string& table, Columns columns, const std::string& tail) const {
  std::string sql;
  for (const std::string_view column : columns) {
    sql += (sql.empty() ? "SELECT " : ", ") + (has(table, column) ? sql_name(column) : "NULL");
  }
  return prepare(sql + " FROM " + sql_name(table) + tail);
}

class Reader {
 public:
  explicit Reader(const std::string& path) : database_(path), calls_(capture_) { capture_.file = path; }
  Capture read();

 private:
  void versions();
  void strings(std::string_view name, Columns columns);
  void gpu_events(const std::string& table, Work work);
  void calls();
  void ranges();
  void diagnostics();
  void overheads();
  void gpus();
  std::uint32_t name_of(std::int64_t id);
  // Returns the process of a globalPid or globalTid. If kernels have no globalPid, everything belongs to one process.
  std::uint64_t process_of(std::uint64_t global) const { return one_process_ ? 0 : global >> 24; }
  Thread thread_of(std::uint64_t global) { return capture_.threads.number_of(process_of(global), global); }
  void count() {
    if (++kept_ > most_events)
      fail("{}: it holds more than {} million events; record fewer steps", quote(database_.path()),
           most_events / 1'000'000);
  }
  static bool plausible(std::int64_t from, std::int64_t to) { return from >= 0 && to >= from && to < latest_ns; }

  Database database_;
  Capture capture_;
  Calls calls_;
  std::map<std::pair<std::uint64_t, std::int64_t>, std::size_t> device_at_;
  std::unordered_map<std::int64_t, std::uint32_t> name_of_id_;
  std::int64_t epoch_ns_ = 0;
  bool one_process_ = false;
  std::size_t kept_ = 0, wrong_ = 0;
};

void Reader::versions() {
  for (const char* table : {"META_DATA_EXPORT", "EXPORT_META_DATA"}) {
    if (!database_.has(table)) continue;
    for (Statement s = database_.rows(table, {"name", "value"}); s.next();) {
      if (s.text(0) == "EXPORT_PRODUCT_VERSION") capture_.version = s.text(1).substr(0, 40);
      if (s.text(0) != "EXPORT_SCHEMA_VERSION") continue;
      if (!s.text(1).starts_with("2.") && !s.text(1).starts_with("3."))
        capture_.notes.push_back(fmt::format("Its schema, {}, is not known to harness.", quote(s.text(1))));
    }
  }
  if (!database_.has("TARGET_INFO_SESSION_START_TIME")) return;
  Statement s = database_.rows("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs", "systemClockNs"}, " LIMIT 1");
  if (s.next() && s.integer(0) > 0 && s.integer(0) < latest_ns && s.integer(1) >= 0)
    epoch_ns_ = s.integer(0) - s.integer(1);
}

std::uint32_t Reader::name_of(std::int64_t id) {
  const auto found = name_of_id_.find(id);
  return found == name_of_id_.end() ? capture_.names.number_of("") : found->second;
}

// Loads only the strings that columns of a table refer to. Others, such as paths and program arguments, are not read.
void Reader::strings(std::string_view name, Columns columns) {
  if (!database_.has("StringIds", "id")) return;
  for (const std::string& table : database_.versions_of(name)) {
    for (const std::string_view column : columns) {
      if (!database_.has(table, column)) continue;
      const std::string used = fmt::format(" WHERE id IN (SELECT {} FROM {})", sql_name(column), sql_name(table));
      for (Statement s = database_.rows("StringIds", {"id", "value"}, used); s.next();) {
        const std::string_view text = s.text(1);
        const bool call = text.starts_with("cu") || text.starts_with("hip");
        name_of_id_[s.integer(0)] = capture_.names.number_of(call ? without_version(text, "_v") : text);
      }
    }
  }
}

void Reader::gpu_events(const std::string& table, Work work) {
  const bool graph = work == Work::graph;
  if (work == Work::kernel) one_process_ = !database_.has(table, "globalPid");
  const std::uint32_t fixed = capture_.names.number_of(graph ? "CUDA graph" : "copy or memset");
  const std::size_t before = kept_;
  for (Statement s = database_.rows(
           table, {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "demangledName", "shortName"});
       s.next();) {
    if (!plausible(s.integer(0), s.integer(1))) {
      ++wrong_;
      continue;
    }
    count();
    constexpr std::size_t most_devices = 4096;
    const std::uint64_t process = process_of(s.bits(5));
    const std::pair key(process, s.integer(2));
    if (device_at_.size() >= most_devices && !device_at_.contains(key)) continue;
    const std::size_t at = device_at_.emplace(key, capture_.devices.size()).first->second;
    if (at == capture_.devices.size())
      capture_.devices.push_back({.id = key.second, .process = process, .label = {}, .gpu = {}, .events = {}});
    std::uint32_t name = fixed;
    const bool demangled = !s.null(6) && name_of_id_.contains(s.integer(6));
    if (work == Work::kernel) name = name_of(s.integer(demangled ? 6 : 7));
    capture_.devices[at].events.push_back({epoch_ns_ + s.integer(0), epoch_ns_ + s.integer(1), 0, name,
                                           static_cast<std::uint32_t>(s.bits(3)), -1, no_thread, work});
    calls_.await(at, s.bits(4));
  }
  if (graph && kept_ > before)
    capture_.notes.push_back(
        "CUDA graphs were recorded as one event each, without their kernels: record with --cuda-graph-trace=node.");
}

void Reader::calls() {
  for (const std::string& table : database_.versions_of("CUPTI_ACTIVITY_KIND_RUNTIME")) {
    for (Statement s = database_.rows(table, {"start", "end", "globalTid", "correlationId", "nameId"}); s.next();) {
      if (!plausible(s.integer(0), s.integer(1))) continue;
      const Thread thread = thread_of(s.bits(2));
      const std::int64_t start_ns = epoch_ns_ + s.integer(0), end_ns = epoch_ns_ + s.integer(1);
      calls_.take({start_ns, end_ns, name_of(s.integer(4)), thread});
      calls_.join(s.bits(3), start_ns, end_ns, thread);
    }
  }
}

void Reader::ranges() {
  for (const std::string& table : database_.versions_of("NVTX_EVENTS")) {
    for (Statement s = database_.rows(table, {"start", "end", "text", "textId", "globalTid", "eventType"}); s.next();) {
      constexpr std::int64_t push_pop = 59, start_end = 60;
      const bool range = s.integer(5) == push_pop || s.integer(5) == start_end;
      if (!range || s.null(1) || !plausible(s.integer(0), s.integer(1))) continue;
      const std::uint32_t name =
          s.text(2).empty() ? name_of(s.integer(3)) : capture_.names.number_of(s.text(2).substr(0, 200));
      const bool loads = capture_.names[name].find("DataLoader") != std::string::npos;
      count();
      capture_.ranges.push_back({epoch_ns_ + s.integer(0), epoch_ns_ + s.integer(1), name, thread_of(s.bits(4)),
                                 loads ? std::optional(Cause::loading) : std::nullopt});
    }
  }
}

// Reads the profiler's overhead and, in CUPTI's table, also CUDA's: it compiles and loads code within other calls.
void Reader::overheads() {
  constexpr std::string_view of_profiler = "PROFILER_OVERHEAD", of_cupti = "CUPTI_ACTIVITY_KIND_OVERHEAD";
  for (const std::string_view table : {of_profiler, of_cupti}) {
    if (!database_.has(std::string(table))) continue;
    for (Statement s = database_.rows(std::string(table), {"start", "end", "globalTid", "overheadType"}); s.next();) {
      const std::int64_t type = s.integer(3);
      const bool code = table == of_cupti && (type == 2 || type == 6 || type == 7);
      const bool profiler = table == of_profiler || (type >= 3 && type <= 5);  // flush, instrumentation, resources
      if (!plausible(s.integer(0), s.integer(1)) || (!code && !profiler)) continue;
      count();
      capture_.ranges.push_back({epoch_ns_ + s.integer(0), epoch_ns_ + s.integer(1),
                                 capture_.names.number_of("overhead"), thread_of(s.bits(2)),
                                 code ? Cause::module : Cause::profiler});
    }
  }
}

// Notes the losses that the profiler reports. Its other messages are about the machine.
void Reader::diagnostics() {
  if (!database_.has("DIAGNOSTIC_EVENT")) return;
  std::set<std::string> said;
  constexpr std::size_t most = 3;
  for (Statement s = database_.rows("DIAGNOSTIC_EVENT", {"text"}); s.next() && said.size() < most;) {
    const std::string_view whole = s.text(0).substr(0, s.text(0).find(" /"));  // without the path
    const std::string text(whole.substr(0, whole_characters(whole, 80)));
    if (evidence::has_any(lower(text), "not all|missing|lost|dropped") && said.insert(text).second)
      capture_.notes.push_back(fmt::format("Nsight Systems says: {}.", quote(text)));
  }
}

void Reader::gpus() {
  if (!database_.has("TARGET_INFO_GPU")) return;
  std::map<std::int64_t, std::string> names;
  for (Statement s = database_.rows("TARGET_INFO_GPU", {"id", "name"}, " LIMIT 1024"); s.next();)
    names[s.integer(0)] = s.text(1).substr(0, 200);
  for (Device& device : capture_.devices) {
    if (!names.empty()) device.gpu = evidence::value_at(names, device.id, names.begin()->second);
  }
}

Capture Reader::read() {
  const bool nsight =
      database_.has("StringIds") && (database_.has("META_DATA_EXPORT") || database_.has("EXPORT_META_DATA") ||
                                     database_.has_any("CUPTI_ACTIVITY_KIND_"));
  if (!nsight) fail("{}: it is a database of SQLite, but no export of Nsight Systems", quote(database_.path()));
  capture_.format = "Nsight Systems";
  capture_.rank = rank_in_name(database_.path());
  versions();
  strings("CUPTI_ACTIVITY_KIND_KERNEL", {"demangledName", "shortName"});  // first: the number of names is limited
  strings("CUPTI_ACTIVITY_KIND_RUNTIME", {"nameId"});
  strings("NVTX_EVENTS", {"textId"});
  for (const auto& [name, work] : {std::pair("KERNEL", Work::kernel),
                                   {"MEMCPY", Work::copy},
                                   {"MEMSET", Work::set},
                                   {"GRAPH_TRACE", Work::graph}}) {
    for (const std::string& table : database_.versions_of(fmt::format("CUPTI_ACTIVITY_KIND_{}", name)))
      gpu_events(table, work);
  }
  calls();
  ranges();
  overheads();
  diagnostics();
  gpus();
  capture_.note(wrong_, "GPU event", "left out: with a time that is none");
  finish(capture_);
  if (capture_.devices.size() != 1) capture_.rank.reset();
  capture_.rank_guessed = capture_.rank.has_value();
  return std::move(capture_);
}

}  // namespace

Capture read_nsight(const std::string& path) {
  return Reader(path).read();
}
#endif

}  // namespace harness::traces
