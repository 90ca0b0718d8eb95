#include "servers/facts.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/decimal.hpp"
#include "base/strings.hpp"

namespace remote::servers {
namespace {

constexpr std::size_t longest_text = 200;
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 62U;

// What is left of the line, as a text for people.
std::string text(AnswerLine& line) {
  return visible_line(line.rest(), longest_text);
}

double decimal(AnswerLine& line) {
  const std::string_view word = line.word();
  const auto value = parse_decimal(word);
  if (!value || !(*value >= 0) || *value > 1e6) {
    line.refuse("a number is wrong");
  }
  return *value;
}

std::string version(AnswerLine& line) {
  return line.name("._-+");
}

bool yes(AnswerLine& line) {
  return line.choice<bool>(line.word(), {{"yes", true}}, "a word is wrong");
}

std::vector<std::string> users(AnswerLine& line) {
  return split_words(visible_line(line.rest(), 4096));
}

std::uint64_t bytes_of_kibibytes(AnswerLine& line) {
  return line.number<std::uint64_t>(0, most_bytes / 1024) * 1024;
}

InfinibandPort& port_of(AnswerLine& line, ServerFacts& facts) {
  const std::string device = line.name();
  const int number = line.number(0, 1024);
  for (InfinibandPort& port : facts.infiniband) {
    if (port.device == device && port.port == number) {
      return port;
    }
  }
  facts.infiniband.push_back({device, number, {}, {}, {}});
  return facts.infiniband.back();
}

void take_limit(AnswerLine& line, LimitFacts& limits) {
  const std::string name = line.name();
  const std::string_view value = line.word();
  limits[name] = value == "unlimited" ? std::nullopt : std::optional(line.number_in<std::uint64_t>(value, 0));
}

// "Foo_Bar.baz" is the package foo-bar-baz (PEP 503).
std::string normalized(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c != '-' && c != '_' && c != '.') {
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!result.ends_with('-')) {
      result += '-';
    }
  }
  return result;
}

// Keys of which a line each may come more than once.
bool repeats(std::string_view key) {
  static constexpr std::string_view keys[] = {"limit", "has",   "there",   "writable",     "disk",
                                              "path",  "rate",  "package", "distribution", "infiniband",
                                              "other", "lease", "waiting"};
  return std::ranges::find(keys, key) != std::end(keys);
}

// Keys with one text each.
std::string* text_of(ServerFacts& facts, std::string_view key) {
  const std::pair<std::string_view, std::string*> table[] = {
      {"host", &facts.host}, {"os", &facts.os},   {"kernel", &facts.kernel},
      {"user", &facts.user}, {"cpu", &facts.cpu}, {"driver", &facts.driver}};
  const auto* found = std::ranges::find(table, key, &std::pair<std::string_view, std::string*>::first);
  return found == std::end(table) ? nullptr : found->second;
}

bool take_login(std::string_view key, AnswerLine& line, ServerFacts& facts) {
  if (key == "uid") {
    facts.uid = line.number<std::uint32_t>(0);
  } else if (key == "linger") {
    facts.linger = yes(line);
  } else if (key == "sick") {
    facts.sick = line.choice<const char*>(line.word(),
                                          {{"gpu", "gpu"}, {"ecc", "ecc"}, {"xid", "xid"}, {"disk", "disk"}},
                                          "an unknown sickness");
  } else if (key == "jobs") {
    facts.jobs_closed =
        line.choice<bool>(line.word(), {{"closed", true}}, "an unknown state of the jobs' folder");
  } else if (key == "session") {
    facts.in_session = yes(line);
  } else if (key == "kill_user_processes") {
    facts.kill_user_processes = yes(line);
  } else if (key == "kill_excluded") {
    facts.kill_excluded = users(line);
  } else if (key == "kill_only") {
    facts.kill_only = users(line);
  } else if (key == "limit") {
    take_limit(line, facts.limits);
  } else if (key == "has") {
    facts.programs.insert(line.name());
  } else {
    return false;
  }
  return true;
}

// CephFS has no count of free inodes and says -1, which programs print with or without a sign.
std::uint64_t inodes(AnswerLine& line) {
  const std::string_view word = line.word();
  if (word.starts_with('-')) {
    line.number_in<std::int64_t>(word, std::numeric_limits<std::int64_t>::min(), -1);
    return std::numeric_limits<std::uint64_t>::max();
  }
  return line.number_in<std::uint64_t>(word, 0);
}

// The key that each part answers at least.
std::string_view key_of(const FactsPart& part) {
  static constexpr std::pair<std::string_view, std::string_view> table[] = {{"tell_clock", "clock"},
                                                                            {"tell_machine", "usable"},
                                                                            {"tell_load", "ticks"},
                                                                            {"tell_python", "python"},
                                                                            {"tell_route", "route"}};
  const auto* found =
      std::ranges::find(table, part.front(), &std::pair<std::string_view, std::string_view>::first);
  return found == std::end(table) ? "" : found->second;
}

}  // namespace

FactsAnswer::FactsAnswer(const std::vector<FactsPart>& parts) {
  for (const FactsPart& part : parts) {
    if (const std::string_view key = key_of(part); !key.empty()) {
      needed_.push_back(key);
    }
  }
}

int FactsAnswer::gpus() const {
  return static_cast<int>(std::ranges::count_if(
      facts.gpus.gpus, [](const Gpu& gpu) { return gpu.vendor == GpuVendor::nvidia && !gpu.lost; }));
}

ServerLoad FactsAnswer::load(const std::optional<Ticks>& earlier) const {
  ServerLoad load{.cpus = cpus_online};
  if (!facts.load.empty()) {
    load.load = facts.load.front();
  }
  if (facts.memory > 0) {
    load.memory_total = facts.memory;
    load.memory_available = facts.memory_available;
  }
  if (const DiskFacts* disk = facts.disk("project")) {
    load.disk_total = disk->total_bytes;
    load.disk_free = disk->free_bytes;
  }
  if (earlier && ticks.all > earlier->all && ticks.busy >= earlier->busy &&
      ticks.busy - earlier->busy <= ticks.all - earlier->all) {
    load.cpu = 100.0 * static_cast<double>(ticks.busy - earlier->busy) /
               static_cast<double>(ticks.all - earlier->all);
  }
  load.others = others;
  load.leases = leases;
  return load;
}

DiskFacts& FactsAnswer::disk(AnswerLine& line) {
  const std::string what = line.name();
  for (DiskFacts& one : facts.disks) {
    if (one.what == what) {
      return one;
    }
  }
  if (facts.disks.size() >= 16) {
    line.refuse("too many disks");
  }
  DiskFacts& fresh = facts.disks.emplace_back();
  fresh.what = what;
  fresh.there = there_.contains(what);
  fresh.writable = writable_.contains(what);
  return fresh;
}

// What is no package's is passed by: pip leaves such things behind ("~umpy-1.26.4.dist-info"), and a pattern
// stands there where nothing matched it.
void FactsAnswer::take_package(std::string_view folder, bool distribution) {
  for (const std::string_view ending : {".dist-info", ".egg-info"}) {
    if (folder.ends_with(ending)) {
      folder.remove_suffix(ending.size());
    }
  }
  std::size_t dash = 0;
  do {
    dash = folder.find('-', dash + 1);
  } while (dash != std::string_view::npos &&
           (dash + 1 == folder.size() || std::isdigit(static_cast<unsigned char>(folder[dash + 1])) == 0));
  const bool plain = std::ranges::all_of(folder, [](unsigned char c) {
    return c < 128 && (std::isalnum(c) != 0 ||
                       std::string_view("._-+!").find(static_cast<char>(c)) != std::string_view::npos);
  });
  if (!plain || dash == std::string_view::npos || folder.size() > longest_text) {
    return;
  }
  std::string_view version = folder.substr(dash + 1);
  version = version.substr(0, version.find("-py"));
  const std::string name = normalized(folder.substr(0, dash));
  // The first folder of sys.path counts.
  facts.packages.try_emplace(name, PackageFacts{std::string(version), distribution});
  if (facts.nccl.empty() && name.starts_with("nvidia-nccl")) {
    facts.nccl = version;
  }
}

bool FactsAnswer::take_disk(std::string_view key, AnswerLine& line) {
  if (key == "there") {
    there_.insert(line.name());
    return true;
  }
  if (key == "writable") {
    writable_.insert(line.name());
    return true;
  }
  if (key == "path") {
    DiskFacts& one = disk(line);  // first: the right side of an assignment is evaluated before the left
    one.path = text(line);
    return true;
  }
  if (key != "disk") {
    return false;
  }
  DiskFacts& one = disk(line);
  one.device = line.number<std::uint64_t>(0);
  const std::string_view medium = line.word();
  if (medium != "unknown") {
    one.rotational = line.choice<bool>(medium, {{"ssd", false}, {"hdd", true}}, "a disk is wrong");
  }
  const auto block = line.number<std::uint64_t>(1, 1U << 30U);
  one.total_bytes = block * line.number<std::uint64_t>(0, most_bytes / block);
  one.free_bytes = block * line.number<std::uint64_t>(0, most_bytes / block);
  one.inodes = inodes(line);
  one.free_inodes = inodes(line);
  if (one.inodes == 0 || one.free_inodes > one.inodes) {
    one.inodes = one.free_inodes = 0;  // they are not counted there
  }
  one.type = text(line);
  return true;
}

bool FactsAnswer::take_python(std::string_view key, AnswerLine& line) {
  if (key == "package" || key == "distribution") {
    take_package(line.rest(), key == "distribution");
  } else if (key == "python") {
    facts.python = version(line);
    facts.python_program = text(line);
    if (facts.python == "none") {
      facts.python.clear();
    }
  } else if (key == "torch") {
    facts.torch = version(line);
  } else if (key == "cuda") {
    facts.cuda = version(line);
  } else if (key == "hip") {
    facts.hip = version(line);
  } else {
    return false;
  }
  return true;
}

bool FactsAnswer::take_leases(std::string_view key, AnswerLine& line) {
  constexpr int most = 1 << 20;
  constexpr std::size_t most_leases = 10000;
  if (key == "lease" || key == "waiting") {
    Lease lease;
    lease.user = line.name();
    lease.own = line.number(0, 1) == 1;
    lease.waits = key == "waiting";
    if (!lease.waits) {
      lease.cpus = line.number(0, std::numeric_limits<int>::max());
      lease.memory = line.number<std::uint64_t>(0);
    }
    while (line.more()) {
      lease.gpus.push_back(line.name(":._-"));
    }
    if (leases.size() >= most_leases) {
      line.refuse("too many leases");
    }
    leases.push_back(std::move(lease));
  } else if (key == "free") {
    FreeFacts& found = free.emplace();
    found.gpus = line.number(0, most);
    found.all_gpus = line.number(0, most);
    found.cpus = line.number(0, most);
    found.all_cpus = line.number(0, most);
    found.memory = line.number<std::uint64_t>(0, most_bytes);
    found.all_memory = line.number<std::uint64_t>(0, most_bytes);
  } else if (key == "noleases") {
    no_leases = text(line);
  } else {
    return false;
  }
  return true;
}

bool FactsAnswer::take_machine(std::string_view key, AnswerLine& line) {
  constexpr int most = 1 << 20;
  if (std::string* place = text_of(facts, key)) {
    *place = text(line);
  } else if (key == "clock") {
    clock = line.instant_in<Instant>(line.word());
  } else if (key == "cores") {
    facts.sockets = line.number(0, most);
    facts.cores = line.number(0, most);
    facts.threads = line.number(0, most);
  } else if (key == "usable") {
    facts.usable_threads = line.number(0, most);
  } else if (key == "numa") {
    facts.numa_nodes = line.number(0, most);
  } else if (key == "memory") {
    facts.memory = bytes_of_kibibytes(line);
    facts.memory_available = bytes_of_kibibytes(line);
  } else if (key == "memory_limit") {
    // More than any machine has means none.
    const auto limit = line.number<std::uint64_t>(0);
    facts.memory_limit = limit < most_bytes ? std::optional(limit) : std::nullopt;
  } else if (key == "cpu_limit") {
    facts.cpu_limit = line.number(0, 100 * most) / 100.0;
  } else if (key == "load") {
    for (int i = 0; i < 3; ++i) {
      facts.load.push_back(decimal(line));
    }
  } else if (key == "ticks") {
    cpus_online = line.number(1, most);
    ticks.busy = line.number<std::uint64_t>(0);
    ticks.all = line.number<std::uint64_t>(0);
  } else if (key == "other") {
    const int jobs = line.number(1, most);
    others.push_back({text(line), jobs});
  } else if (key == "infiniband") {
    InfinibandPort& port = port_of(line, facts);
    port.layer = line.name();
    port.state = text(line);
  } else if (key == "rate") {
    InfinibandPort& port = port_of(line, facts);
    port.rate = text(line);
  } else {
    return false;
  }
  return true;
}

void FactsAnswer::take(AnswerLine& line) {
  if (GpuAnswer::takes(line.kind())) {
    gpus_.take(line);
    return;
  }
  if (line.kind() != "facts") {
    line.refuse_kind();
  }
  const std::string_view key = line.word();
  if (!repeats(key) && !seen_.emplace(key).second) {
    line.refuse("a key stands twice");
  }
  if (!take_machine(key, line) && !take_disk(key, line) && !take_python(key, line) &&
      !take_login(key, line, facts) && !take_launch(key, line) && !take_leases(key, line)) {
    line.refuse("a key is not known");
  }
  line.end();
}

void FactsAnswer::check() {
  for (const std::string_view key : needed_) {
    if (!seen_.contains(key)) {
      throw Error("the server's answer is not understood", fmt::format("nothing about '{}' in it", key))
          .mended_by(Remedy::tell_more);
    }
  }
  facts.gpus = gpus_.facts();
  for (const GpuTool& tool : facts.gpus.tools) {
    if (tool.vendor == GpuVendor::nvidia && facts.driver.empty()) {
      facts.driver = visible_line(tool.driver_version);
    }
  }
}

}  // namespace remote::servers
