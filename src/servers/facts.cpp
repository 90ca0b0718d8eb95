#include "servers/facts.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/strings.hpp"
#include "servers/logout.hpp"
#include "servers/python_env.hpp"

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
  const auto value = parse_number<double>(word);
  if (!value || !(*value >= 0) || *value > 1e6) {
    line.refuse("a number is wrong");
  }
  return *value;
}

std::string version(AnswerLine& line) {
  return line.name("._-+");
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
  static constexpr std::string_view keys[] = {"limit", "has",  "there",   "writable",     "disk",
                                              "path",  "rate", "package", "distribution", "infiniband"};
  return std::ranges::find(keys, key) != std::end(keys);
}

// Keys with one text each.
std::string* text_of(ServerFacts& facts, std::string_view key) {
  const std::pair<std::string_view, std::string*> table[] = {{"host", &facts.host},
                                                             {"os", &facts.os},
                                                             {"kernel", &facts.kernel},
                                                             {"user", &facts.user},
                                                             {"cpu", &facts.cpu}};
  const auto* found = std::ranges::find(table, key, &std::pair<std::string_view, std::string*>::first);
  return found == std::end(table) ? nullptr : found->second;
}

std::string* version_of(ServerFacts& facts, std::string_view key) {
  const std::pair<std::string_view, std::string*> table[] = {
      {"torch", &facts.torch}, {"cuda", &facts.cuda}, {"hip", &facts.hip}, {"driver", &facts.driver}};
  const auto* found = std::ranges::find(table, key, &std::pair<std::string_view, std::string*>::first);
  return found == std::end(table) ? nullptr : found->second;
}

void take_machine(std::string_view key, AnswerLine& line, ServerFacts& facts) {
  constexpr int most = 1 << 20;
  if (key == "cores") {
    facts.sockets = line.number(0, most);
    facts.cores = line.number(0, most);
    facts.threads = line.number(0, most);
  } else if (key == "usable") {
    facts.usable_threads = line.number(0, most);
  } else if (key == "uid") {
    facts.uid = line.number<std::uint32_t>(0);
  } else if (key == "numa") {
    facts.numa_nodes = line.number(0, most);
  } else if (key == "memory") {
    facts.memory = line.number<std::uint64_t>(0, most_bytes / 1024) * 1024;
    facts.memory_available = line.number<std::uint64_t>(0, most_bytes / 1024) * 1024;
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
  } else {
    line.refuse("a key is not known");
  }
}

bool take_login(std::string_view key, AnswerLine& line, ServerFacts& facts) {
  if (key == "linger") {
    facts.linger = line.choice<bool>(line.word(), {{"yes", true}}, "a word is wrong");
    return true;
  }
  LogoutRules rules = logout_rules(facts);
  if (!rules.take(key, line)) {
    return false;
  }
  facts.in_session = rules.in_session;
  facts.kill_user_processes = rules.kill_user_processes;
  facts.kill_excluded = std::move(rules.excluded);
  facts.kill_only = std::move(rules.only);
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

}  // namespace

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

void FactsAnswer::take_disk(AnswerLine& line) {
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
  if (key == "package" || key == "distribution") {
    take_package(line.rest(), key == "distribution");
  } else if (key == "clock") {
    clock = line.number<std::int64_t>(0, std::int64_t{1} << 40);
  } else if (std::string* place = text_of(facts, key)) {
    *place = text(line);
  } else if (std::string* number = version_of(facts, key)) {
    *number = version(line);
  } else if (key == "python") {
    facts.python = version(line);
    facts.python_program = text(line);
    if (facts.python == "none") {
      facts.python.clear();
    }
  } else if (key == "limit") {
    take_limit(line, facts.limits);
  } else if (key == "has") {
    facts.programs.insert(line.name());
  } else if (key == "infiniband") {
    InfinibandPort& port = port_of(line, facts);
    port.layer = line.name();
    port.state = text(line);
  } else if (key == "rate") {
    InfinibandPort& port = port_of(line, facts);
    port.rate = text(line);
  } else if (key == "there") {
    there_.insert(line.name());
  } else if (key == "writable") {
    writable_.insert(line.name());
  } else if (key == "disk") {
    take_disk(line);
  } else if (key == "path") {
    DiskFacts& one = disk(line);
    one.path = text(line);
  } else if (!take_login(key, line, facts)) {
    take_machine(key, line, facts);
  }
  line.end();
}

void FactsAnswer::check() const {
  for (const std::string_view key : {"clock", "python", "user"}) {
    if (!seen_.contains(key)) {
      throw Error("the server's answer is not understood", fmt::format("nothing about '{}' in it", key))
          .mended_by(Remedy::tell_more);
    }
  }
}

Action<FactsAnswer> facts_action(const config::Config& config, const config::Server& server,
                                 const FactsPlaces& places) {
  Action<FactsAnswer> action;
  action.what = "facts";
  action.script.set_path("project", config.project_path_on(server))
      .set_path("env", environment_folder(config, server))
      .set("activate", activation(config, server))
      .set("root", places.root)
      .set("shm", places.shm)
      .add("room.sh")
      .add("python.sh")
      .add("logind.sh")
      .add("facts.sh");
  add_gpus(action.script, GpuDetail::full);
  action.script.call("end_facts");
  action.timeout = std::chrono::seconds(60);
  action.watchful = true;
  return action;
}

std::int64_t wall_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

double clock_difference(std::int64_t server_seconds, std::int64_t asked_ms, std::int64_t answered_ms) {
  // It was read in whole seconds: the moment lies within this one.
  const std::int64_t first = server_seconds * 1000;
  const std::int64_t last = first + 999;
  if (first > answered_ms) {
    return static_cast<double>(first - answered_ms) / 1000;
  }
  return last < asked_ms ? static_cast<double>(last - asked_ms) / 1000 : 0;
}

ServerFacts facts_of(ssh::Connection& connection, const config::Config& config, const config::Server& server,
                     const Cancel& cancel) {
  const std::int64_t asked = wall_ms();
  FactsAnswer answer = run_action(connection, facts_action(config, server), cancel);
  answer.facts.gpus = answer.gpu_facts();
  for (const GpuTool& tool : answer.facts.gpus.tools) {
    if (tool.vendor == GpuVendor::nvidia && answer.facts.driver.empty()) {
      answer.facts.driver = visible_line(tool.driver_version);
    }
  }
  answer.facts.clock_ahead = clock_difference(answer.clock, asked, wall_ms());
  return std::move(answer.facts);
}

}  // namespace remote::servers
