// `launch:` and `launches:` in configs.yaml: the defaults for launches, which the command line overrides.

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "base/decimal.hpp"
#include "base/strings.hpp"
#include "config/section.hpp"
#include "config/validate.hpp"

namespace remote::config {
namespace {

// The value of a key, parsed by `parse`. `right`: the valid values, for error messages.
template <typename Value>
std::optional<Value> read_parsed(const Section& section, const char* key,
                                 std::optional<Value> (*parse)(std::string_view), const char* right) {
  const auto found = section.text(key);
  if (!found) {
    return std::nullopt;
  }
  const std::optional<Value> value = parse(found->value);
  if (!value) {
    throw section.error(found->mark,
                        fmt::format("'{}' must be {}, not '{}'", key, right, printable(found->value)));
  }
  return value;
}

// Minutes, as for --hang-after.
std::optional<std::chrono::seconds> parse_minutes(std::string_view text) {
  constexpr double most = 100000;
  const auto minutes = parse_decimal(text);
  return minutes && *minutes >= 0 && *minutes <= most
             ? std::optional(std::chrono::seconds(std::llround(std::ceil(*minutes * 60))))
             : std::nullopt;
}

std::vector<std::string> read_globs(const Section& section, const std::vector<Server>& servers) {
  std::vector<std::string> names;
  std::ranges::transform(servers, std::back_inserter(names), &Server::name);
  std::vector<std::string> globs;
  for (const auto& found : section.texts("servers")) {
    for (const std::string& glob : split_names({found.value})) {
      if (std::ranges::none_of(names, [&](const std::string& name) { return glob_match(glob, name); })) {
        const std::string near = did_you_mean(glob, names);
        throw section.error(found.mark, "'servers' names '" + printable(glob) + "', which is not a server",
                            near.empty() ? "there are " + join(names, ", ") : near);
      }
      globs.push_back(glob);
    }
  }
  return globs;
}

// A key without a value, or with an empty text, counts as absent.
bool is_absent(const YamlNode& value) {
  return value.kind == YamlNode::Kind::null || (value.kind == YamlNode::Kind::scalar && value.text.empty());
}

// The entries of `own`, followed by those of `base` with other keys.
NodePtr inherit(const YamlNode& own, const YamlNode& base, bool keep_absent) {
  auto all = std::make_shared<YamlNode>();
  all->kind = YamlNode::Kind::map;
  all->mark = own.mark;
  std::set<std::string_view> keys;
  for (const YamlNode* from : {&own, &base}) {
    for (const YamlNode::Entry& entry : from->entries) {
      if ((keep_absent || !is_absent(*entry.value)) && keys.insert(entry.key).second) {
        all->entries.push_back(entry);
      }
    }
  }
  return all;
}

// Records the keys of a section that are not recorded yet.
void note_settings(const YamlNode& node, const std::string& section,
                   std::map<std::string, LaunchSetting>& all) {
  const auto note = [&](const std::string& name, const YamlNode::Entry& entry) {
    std::string value = entry.value->text;
    for (const NodePtr& item : entry.value->items) {
      value += (value.empty() ? "" : ", ") + item->text;
    }
    all.try_emplace(
        name, LaunchSetting{std::move(value), fmt::format("configs.yaml:{} {}", entry.mark.line, section)});
  };
  const std::vector<std::string>& known = known_keys(Level::launch);
  for (const YamlNode::Entry& entry : node.entries) {
    if (is_absent(*entry.value) || std::ranges::find(known, entry.key) == known.end()) {
      continue;
    }
    for (const YamlNode::Entry& variable : entry.value->entries) {
      note(entry.key + " " + variable.key, variable);
    }
    if (entry.value->kind != YamlNode::Kind::map) {
      note(entry.key, entry);
    }
  }
}

}  // namespace

LaunchDefaults read_launch(const YamlNode& node, const std::string& what, const std::vector<Server>& servers,
                           const std::string& file, Warnings& warnings) {
  const Section section(node, Level::launch, what, file, warnings);
  LaunchDefaults usual;
  const auto take = [&](const char* key, std::optional<std::string>& target) {
    if (const auto found = section.text(key)) {
      target = found->value;
    }
  };
  take("cmd", usual.command);
  usual.nproc =
      read_parsed(section, "nproc_per_node", parse_ranks_per_server, "a whole number from 1 up, or auto");
  usual.launcher = read_parsed(section, "launcher", parse_launcher, "ranks, torchrun or mpi");
  usual.torchrun.rendezvous = read_parsed(section, "rdzv", parse_rendezvous, "static or c10d");
  usual.torchrun.nodes =
      read_parsed(section, "nnodes", parse_node_range, "MIN:MAX, such as 1:4, or a number");
  usual.torchrun.max_restarts = section.number("max_restarts", 0, 1000000);
  if (const auto found = section.text("on_failure")) {
    if (found->value != "kill" && found->value != "leave") {
      throw section.error(found->mark,
                          "'on_failure' must be kill or leave, not '" + printable(found->value) + "'");
    }
    usual.end_others = found->value == "kill";
  }
  usual.init_method = read_parsed(section, "init_method", parse_init_method, "env, tcp or file");
  take("init_dir", usual.init_dir);
  usual.env = section.variables("env");
  usual.servers = read_globs(section, servers);
  usual.follow = section.boolean("follow");
  usual.rsync = section.boolean("rsync");
  usual.check = section.boolean("check");
  usual.pull = section.boolean("pull");
  usual.frozen = section.boolean("frozen");
  usual.restarts = section.number("restarts", 0, 1000);
  usual.min_servers = section.number("min_servers", 1, 100000);
  usual.gpus = section.number("gpus", 0, 1024);
  usual.cpus = section.number("cpus", 0, 100000);
  usual.wait = section.boolean("wait");
  usual.memory = read_parsed(section, "memory", parse_size, "a size such as 64G or 500M");
  for (const auto& found : section.texts("restart_on")) {
    for (const std::string& word : split_names({found.value})) {
      auto cause = parse_restart_cause(word);
      cause = cause == RestartCause::lifeline ? std::nullopt : cause;
      if (!cause && word != "any") {
        throw section.error(found.mark, "'restart_on' takes exit, signal, oom, lost, hang or any, not '" +
                                            printable(word) + "'");
      }
      if (cause) {
        usual.restart_on.push_back(*cause);
      }
    }
  }
  usual.hang_after = read_parsed(section, "hang_after", parse_minutes, "a number of minutes");
  usual.on_hang = read_parsed(section, "on_hang", parse_on_hang, "leave, kill or restart");
  for (const auto& found : section.texts("no_restart_exit")) {
    for (const std::string& word : split_names({found.value})) {
      const auto code = parse_number<int>(word);
      if (!code || *code < 1 || *code > 255) {
        throw section.error(
            found.mark, "'no_restart_exit' takes exit codes from 1 to 255, not '" + printable(word) + "'");
      }
      usual.no_restart_exit.push_back(*code);
    }
  }
  note_settings(node, "launch", usual.settings);
  return usual;
}

std::vector<YamlNode::Entry> read_launches(const YamlNode& node, const std::vector<Server>& servers,
                                           const std::string& file) {
  if (node.kind != YamlNode::Kind::map) {
    throw config_error(file, node.mark, "'launches' must be a map of names to launches",
                       "write launches: {full: {cmd: train.py}}");
  }
  for (const YamlNode::Entry& entry : node.entries) {
    if (const auto problem = launch_name_problem(entry.key)) {
      throw config_error(file, entry.mark, "a launch cannot have the name '" + printable(entry.key) + "'",
                         *problem);
    }
    Warnings strict(file, true);
    read_launch(*entry.value, "launch '" + entry.key + "'", servers, file, strict);
  }
  return node.entries;
}

std::vector<std::string> launch_names(const Config& config) {
  std::vector<std::string> names;
  std::ranges::transform(config.launches, std::back_inserter(names), &YamlNode::Entry::key);
  return names;
}

LaunchDefaults launch_settings(const Config& config, const std::string& name) {
  if (name.empty()) {
    return config.launch;
  }
  const auto found = std::ranges::find(config.launches, name, &YamlNode::Entry::key);
  if (found == config.launches.end()) {
    const std::vector<std::string> names = launch_names(config);
    const std::string near = did_you_mean(name, names);
    throw Error::usage(fmt::format("{} has no launch '{}'", config.file.string(), printable(name)),
                       names.empty() ? "it has no 'launches'" : "there are " + join(names, ", "), near);
  }
  const YamlNode nothing;
  const YamlNode& own = *found->value;
  const YamlNode& base = config.launch_node ? *config.launch_node : nothing;
  YamlNode all = *inherit(own, base, false);
  const auto variables = std::ranges::find(all.entries, "env", &YamlNode::Entry::key);
  if (const auto* usual = base.find("env"); variables != all.entries.end() && usual != nullptr) {
    variables->value = inherit(*variables->value, *usual->value, true);
  }
  const std::string file = config.file.string();
  Warnings told(file);  // from reading `launch:` again, so they were already reported
  LaunchDefaults usual = read_launch(all, "launch '" + name + "'", config.servers, file, told);
  usual.settings.clear();
  note_settings(own, "launches." + name, usual.settings);
  note_settings(base, "launch", usual.settings);
  return usual;
}

}  // namespace remote::config
