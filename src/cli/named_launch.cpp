#include "cli/named_launch.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/command.hpp"
#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "cli/show/plan.hpp"
#include "config/config.hpp"
#include "ui/table.hpp"

namespace remote::cli {
namespace {

// The keys in display order, with their default values.
constexpr std::string_view keys =
    "cmd nproc_per_node=auto servers=all launcher=ranks rdzv nnodes max_restarts init_method=env init_dir "
    "on_failure=kill restarts restart_on no_restart_exit min_servers hang_after on_hang gpus cpus "
    "memory wait follow=false rsync=false check=true frozen=false";

std::vector<std::string> options_of(const std::string& key) {
  if (key == "servers") {
    return {"--server", "--host", "--hostfile", "--include", "--exclude"};
  }
  std::string name = "--" + key;
  std::ranges::replace(name, '_', '-');
  return {name};
}

// The value of a key on the command line; nullopt: not given.
std::optional<std::string> given_value(const CLI::App& command, const Context& context,
                                       const std::string& key) {
  if (key == "cmd" && context.command_words) {
    const auto& [words, marked] = *context.command_words;
    return words.size() == 1 && !marked ? words.front() : shell_join(words);
  }
  for (const std::string& name : options_of(key)) {
    const CLI::Option* option = command.get_option_no_throw(name);
    if (option != nullptr && option->count() > 0) {
      return join(option->results(), ", ");
    }
  }
  return std::nullopt;
}

// By key, with secrets masked.
std::vector<std::pair<std::string, LaunchSetting>> used_settings(const CLI::App& command,
                                                                 const Context& context, const Env& given,
                                                                 const LaunchDefaults& usual, bool python) {
  std::map<std::string, LaunchSetting> left = usual.settings;
  std::vector<std::pair<std::string, LaunchSetting>> used;
  for (const std::string& word : split(keys, ' ')) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string key = word.substr(0, equals);
    const auto from_file = left.extract(key);
    if (const auto value = given_value(command, context, key)) {
      used.push_back({key, {*value, "command line"}});
    } else if (!from_file.empty()) {
      used.emplace_back(key, from_file.mapped());
    } else if (equals < word.size() && command.get_option_no_throw(options_of(key).front()) != nullptr) {
      const bool one = key == "nproc_per_node" && !python;
      const bool file = key == "init_method" && usual.init_dir;
      used.push_back({key, {one ? "1" : file ? "file" : word.substr(equals + 1), "default"}});
    }
  }
  for (const auto& [name, value] : given) {
    left.insert_or_assign("env " + name, LaunchSetting{value, "command line"});
  }
  used.insert(used.end(), left.begin(), left.end());
  for (auto& [key, setting] : used) {
    setting.value = key == "cmd"              ? mask_command(setting.value)
                    : key.starts_with("env ") ? mask_value(key.substr(4), setting.value)
                                              : setting.value;
  }
  return used;
}

}  // namespace

bool is_launch(Context& context, const std::vector<std::string>& words, const std::string& name) {
  const auto end = std::ranges::find(words, "--");
  for (auto word = words.begin(); word != end; ++word) {
    if (*word == "--project" && word + 1 != end) {
      context.options.project = word[1];
    } else if (word->starts_with("--project=")) {
      context.options.project = word->substr(10);
    }
  }
  try {
    const std::vector<std::string> names = config::launch_names(context.folder());
    return std::ranges::find(names, name) != names.end();
  } catch (const Error&) {
    return false;  // the command reports this
  }
}

LaunchDefaults launch_defaults_of(Context& context, const std::string& command, const std::string& launch) {
  const auto& words = context.command_words;
  const std::string word = words && !words->marked && !words->words.empty() ? words->words.front() : "";
  if (!launch.empty() && !word.empty()) {
    throw Error::usage(fmt::format("remote {}: '{}' follows the launch's name", command, visible_line(word)),
                       "", "another command for it goes after --, or to --cmd");
  }
  const bool could_be = word.find_first_of("./ =") == std::string::npos;
  const std::vector<std::string> names =
      could_be ? context.project().launch_names() : std::vector<std::string>();
  const std::string near = could_be ? did_you_mean(word, names) : "";
  const bool command_follows =
      words && std::ranges::find(words->words, std::string("--")) != words->words.end();
  if (!word.empty() && (!near.empty() || (command_follows && !names.empty()))) {
    throw Error::usage(fmt::format("configs.yaml has no launch '{}'", visible_line(word)), "",
                       (near.empty() ? "it has " + join(names, ", ") + "." : near) +
                           " A command of this name goes after --");
  }
  return context.project().launch_defaults(launch);
}

void show_plan(Context& context, const Plan& plan, const CLI::App& command, const Env& given,
               const LaunchDefaults& usual, bool python) {
  nlohmann::ordered_json json = plan_json(plan);
  ui::Table table({"SETTING", "VALUE", "FROM"});
  for (const auto& [key, setting] : used_settings(command, context, given, usual, python)) {
    json["settings"].push_back({{"key", key}, {"value", setting.value}, {"from", setting.from}});
    table.add({key, setting.value, setting.from});
  }
  if (context.options.json) {
    context.print(json);
  } else {
    context.terminal.out(plan_text(plan) + "\n" + table.text(context.terminal));
  }
}

}  // namespace remote::cli
