#include "cli/completion/completion.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <set>
#include <utility>

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <fmt/format.h>
#include <remote/history.hpp>

#include "base/strings.hpp"
#include "cli/help.hpp"
#include "cli/options.hpp"
#include "cli/show/jobs.hpp"
#include "cli/show/launches.hpp"
#include "cli/topics.hpp"
#include "cli/words.hpp"

// `remote completion SHELL` prints the script (remote.bash …). On each TAB, it runs the hidden command
//   remote __complete line WORD…     prints the completions of the last word: a line that says whether words,
//                                    files or folders follow, then a line per word with its description,
//                                    separated by a tab
//   remote __complete servers|jobs|launches   prints the names, one per line; launches: those in configs.yaml

namespace remote::cli {
namespace {

// Extracts the choices from a type name such as "TEXT:{auto,always,never}".
std::vector<Completion::Word> choices(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find('{');
  const std::size_t end = type.find('}', begin == std::string::npos ? 0 : begin);
  if (begin == std::string::npos || end == std::string::npos) {
    return {};
  }
  std::vector<Completion::Word> words;
  for (const std::string& text : split(type.substr(begin + 1, end - begin - 1), ',')) {
    words.push_back({text, ""});
  }
  return words;
}

// The sources of option values.
struct Sources {
  const std::map<const CLI::Option*, NameKind>& completers;
  const Names& names;
  const std::set<const CLI::App*>& with_command;
};

// Completions of `start`, the value of an option or positional. `before`: the text before it in the same
// word: "--server=".
Completion complete_value(const CLI::Option& option, const std::string& start, const std::string& before,
                          const Sources& sources) {
  Completion completion;
  const std::string type = option.get_type_name();
  const auto completer = sources.completers.find(&option);
  std::vector<Completion::Word> words = choices(option);
  if (words.empty() && completer != sources.completers.end()) {
    words = sources.names(completer->second);
  }
  for (const Completion::Word& word : words) {
    if (word.text.starts_with(start) && !(word.minor && start.empty())) {
      completion.words.push_back({before + word.text, word.description});
    }
  }
  if (completer != sources.completers.end() || !words.empty()) {
    return completion;
  }
  if (before.empty() && (type.starts_with("DIR") || type.starts_with("FOLDER"))) {
    completion.kind = Completion::Kind::folders;
  } else if (before.empty() && type.starts_with("FILE")) {
    completion.kind = Completion::Kind::files;
  }
  return completion;
}

void add_options(Completion& completion, const CLI::App* app, const std::string& start) {
  for (; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      // --help of the parent commands does not describe this one.
      const bool seen = std::any_of(completion.words.begin(), completion.words.end(),
                                    [&](const auto& word) { return option->check_name(word.text); });
      if (option->get_group().empty() || seen) {
        continue;
      }
      bool long_one = false;
      for (const std::string& name : option->get_lnames()) {
        if (("--" + name).starts_with(start)) {
          completion.words.push_back({"--" + name, option->get_description()});
          long_one = true;
        }
      }
      for (const std::string& name : option->get_snames()) {
        if (!long_one && ("-" + name).starts_with(start)) {
          completion.words.push_back({"-" + name, option->get_description()});
        }
      }
    }
  }
}

// The parser's position at the cursor.
struct Position {
  const CLI::App* command = nullptr;
  const CLI::Option* option = nullptr;  // an option that expects a value next
  std::size_t values_left = 0;
  std::size_t positionals = 0;
  bool only_positionals = false;  // after "--"
};

const CLI::Option* next_positional(const Position& at) {
  std::size_t index = at.positionals;
  for (const CLI::Option* option : at.command->get_options()) {
    if (!option->get_positional()) {
      continue;
    }
    const auto takes = static_cast<std::size_t>(std::max(1, option->get_items_expected_max()));
    if (index < takes) {
      return option;
    }
    index -= takes;
  }
  return nullptr;
}

// Whether this is the name of a launch, which is placed before the options and is not a command.
bool is_launch_name(const Position& at, const std::string& word, const Sources& sources) {
  const CLI::Option* positional = next_positional(at);
  const auto completer = sources.completers.find(positional);
  if (completer == sources.completers.end() || completer->second != NameKind::defined) {
    return false;
  }
  const std::vector<Completion::Word> names = sources.names(NameKind::defined);
  return std::ranges::find(names, word, &Completion::Word::text) != names.end();
}

void take(Position& at, const std::string& word, const Sources& sources) {
  if (at.values_left > 0) {
    --at.values_left;
  } else if (!at.only_positionals && word == "--") {
    at.only_positionals = true;
  } else if (!at.only_positionals && word.size() > 1 && word[0] == '-') {
    const std::size_t equals = word.find('=');
    at.option = find_option(at.command, word.substr(0, equals));
    if (at.option != nullptr) {
      const int wanted = at.option->get_items_expected_min() - (equals == std::string::npos ? 0 : 1);
      at.values_left = static_cast<std::size_t>(std::max(0, wanted));
    }
  } else {
    for (const CLI::App* sub : shown_commands(*at.command)) {
      if (at.positionals == 0 && sub->check_name(word)) {
        at.command = sub;
        return;
      }
    }
    // All further words belong to another program.
    at.only_positionals = at.only_positionals ||
                          (sources.with_command.contains(at.command) && !is_launch_name(at, word, sources));
    ++at.positionals;
  }
}

std::string summary(const std::string& state, const std::string& servers, const std::string& command) {
  return fmt::format("{} on {}: {}", state, servers, ui::shorten(command, 60));
}

// Unfinished ones first, each newest first.
std::vector<Batch> likely_first(std::vector<Batch> batches) {
  std::ranges::stable_sort(batches, std::greater(),
                           [](const Batch& batch) { return std::pair(!is_over(batch), batch.front().key); });
  return batches;
}

// Keys and names of launches. `past`: including those whose jobs have been removed.
std::vector<Completion::Word> launch_words(Project& project, bool past) {
  std::vector<Completion::Word> words;
  std::set<std::string> named;
  std::set<JobId> there;
  for (const Batch& batch :
       past ? std::vector<Batch>() : likely_first(by_launch(project.jobs({.ask = false})))) {
    if (batch.front().launch) {
      there.insert(*batch.front().launch);
      words.push_back({std::to_string(batch.front().key),
                       summary(state_text(batch), server_names(batch), batch.front().command)});
    }
  }
  for (const LaunchSummary& one : History(project.folder()).list()) {
    const std::string what =
        summary(std::string(to_string(one.state)), server_names(one.servers), one.command);
    if (past) {
      words.push_back({std::to_string(one.first_key), what});
    }
    if ((past || there.contains(one.id)) && !one.name.empty() && named.insert(one.name).second) {
      words.push_back({one.name, what});  // the newest launch with this name
    }
  }
  if (!words.empty()) {
    words.push_back({"last", "the newest launch"});
  }
  return words;
}

// Launches by the key of their first job, and single jobs; then the names of launches, and the keys of other
// ranks.
std::vector<Completion::Word> job_words(Project& project) {
  const std::vector<Batch> batches = likely_first(by_launch(project.jobs({.ask = false})));
  std::vector<Completion::Word> words;
  std::vector<Completion::Word> ranks;
  for (const Batch& batch : batches) {
    const Job& first = batch.front();
    words.push_back(
        {std::to_string(first.key), summary(state_text(batch), server_names(batch), first.command)});
    for (const Job& job : batch) {
      if (job.id != first.id) {
        ranks.push_back({std::to_string(job.key),
                         summary(std::string(to_string(job.state)), job.server, job.command), true});
      }
    }
  }
  for (Completion::Word& word : launch_words(project, false)) {
    if (parse_number<int>(word.text) == std::nullopt) {
      words.push_back(std::move(word));
    }
  }
  std::ranges::move(ranks, std::back_inserter(words));
  return words;
}

std::vector<Completion::Word> tag_words(Project& project) {
  std::set<std::string> tags;
  for (const Job& job : project.jobs({.ask = false})) {
    tags.insert(job.tags.begin(), job.tags.end());
  }
  std::vector<Completion::Word> words;
  std::ranges::transform(tags, std::back_inserter(words), [](const std::string& tag) {
    return Completion::Word{tag, ""};
  });
  return words;
}

// The arguments of `remote help`.
std::vector<Completion::Word> help_words(const CLI::App& root) {
  std::vector<Completion::Word> words;
  for (const CLI::App* sub : shown_commands(root)) {
    words.push_back({sub->get_name(), sub->get_description()});
  }
  for (const Topic& topic : all_topics()) {
    words.push_back({std::string(topic.name), std::string(topic.about)});
  }
  return words;
}

// The project's names; empty outside a project, or if its files cannot be read, because completion should not
// print errors. Only reads files, and never contacts a server.
std::vector<Completion::Word> names_of(Context& context, NameKind kind) {
  std::vector<Completion::Word> names;
  if (kind == NameKind::signals) {
    for (const char* name : {"TERM", "INT", "HUP", "KILL", "QUIT", "USR1", "USR2"}) {
      names.push_back({name, ""});
    }
    return names;
  }
  context.on_event = [](const Event&) {};
  try {
    Project& project = context.project();
    if (kind == NameKind::defined) {
      for (const std::string& name : project.launch_names()) {
        names.push_back({name, ui::shorten(project.launch_defaults(name).command.value_or(""), 60)});
      }
      return names;
    }
    if (kind == NameKind::launches || kind == NameKind::past) {
      return launch_words(project, kind == NameKind::past);
    }
    if (kind == NameKind::jobs) {
      return job_words(project);
    }
    if (kind == NameKind::tags) {
      return tag_words(project);
    }
    for (const ServerInfo& server : project.servers()) {
      names.push_back({server.name, server.hostname});
    }
  } catch (const Error&) {
    // no completions then
  }
  return names;
}

std::string print(const Completion& completion) {
  constexpr std::array heads{":words\n", ":files\n", ":folders\n"};  // in the order of the kinds
  std::string out = heads.at(static_cast<std::size_t>(completion.kind));
  for (const Completion::Word& word : completion.words) {
    if (visible_line(word.text) == word.text) {  // skip names that contain control characters
      out += word.text + "\t" + visible_line(word.description) + "\n";
    }
  }
  return out;
}

void answer(Context& context, const CLI::App& root, std::vector<std::string> words) {
  const std::string what = words.empty() ? "" : words.front();
  const auto names = [&](NameKind kind) {
    return kind == NameKind::help ? help_words(root) : names_of(context, kind);
  };
  static const std::map<std::string_view, NameKind> kinds{
      {"servers", NameKind::servers}, {"jobs", NameKind::jobs}, {"launches", NameKind::defined}};
  if (const auto kind = kinds.find(what); kind != kinds.end()) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const Completion::Word& name : names(kind->second)) {
      all.push_back(name.text);
      context.terminal.out(context.options.json ? "" : name.text + "\n");
    }
    if (context.options.json) {  // for Project.launches() in Python
      context.print(all);
    }
    return;
  }
  if (what != "line") {
    throw Error::usage("__complete", "takes servers, jobs, launches, or line and words");
  }
  words.erase(words.begin());
  if (std::string project = project_on_line(words); !project.empty()) {
    context.options.project = std::move(project);
  }
  context.terminal.out(print(complete(root, words, context.completers, names, context.with_command)));
}

}  // namespace

Completion complete(const CLI::App& root, const std::vector<std::string>& words,
                    const std::map<const CLI::Option*, NameKind>& completers, const Names& names,
                    const std::set<const CLI::App*>& with_command) {
  const Sources sources{completers, names, with_command};
  Position at;
  at.command = &root;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    take(at, words[i], sources);
  }
  const std::string start = words.empty() ? "" : words.back();
  if (at.values_left > 0) {
    return complete_value(*at.option, start, "", sources);
  }
  Completion completion;
  if (!at.only_positionals && start.starts_with('-')) {
    const std::size_t equals = start.find('=');
    if (equals == std::string::npos) {
      add_options(completion, at.command, start);
      return completion;
    }
    const CLI::Option* option = find_option(at.command, start.substr(0, equals));
    if (option == nullptr || option->get_items_expected_min() == 0) {
      return completion;
    }
    return complete_value(*option, start.substr(equals + 1), start.substr(0, equals + 1), sources);
  }
  if (at.only_positionals && with_command.contains(at.command)) {
    completion.kind = Completion::Kind::files;  // the command, or its arguments
    return completion;
  }
  if (const CLI::Option* positional = next_positional(at)) {
    completion = complete_value(*positional, start, "", sources);
    if (!completion.words.empty() || completion.kind != Completion::Kind::words) {
      return completion;
    }
  }
  if (at.positionals == 0) {
    for (const CLI::App* sub : shown_commands(*at.command)) {
      if (sub->get_name().starts_with(start)) {
        completion.words.push_back({sub->get_name(), sub->get_description()});
      }
    }
  }
  if (completion.words.empty() && at.only_positionals) {
    completion.kind = Completion::Kind::files;
  } else if (completion.words.empty() && with_command.contains(at.command) && !start.empty()) {
    completion.kind = Completion::Kind::files;
  } else if (completion.words.empty() && start.empty()) {
    add_options(completion, at.command, "-");
  }
  return completion;
}

std::string project_on_line(const std::vector<std::string>& words) {
  std::string raw;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "--project" && i + 2 < words.size()) {
      raw = words[i + 1];
    } else if (words[i].starts_with("--project=")) {
      raw = words[i].substr(10);
    }
  }
  std::string plain;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] == '\\' && i + 1 < raw.size()) {
      plain += raw[++i];
    } else if (raw[i] != '"' && raw[i] != '\'') {
      plain += raw[i];
    }
  }
  return plain;
}

void add_completion(CLI::App& command, Context& context) {
  auto shell = std::make_shared<std::string>();
  command.add_option("shell", *shell, "The shell")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command.callback([shell, &context] { context.terminal.out(completion_script("remote." + *shell)); });

  CLI::App& app = *command.get_parent();
  CLI::App* complete = app.add_subcommand("__complete", "")->group("");
  complete->prefix_command();    // take the words of the line unchanged,
  complete->fallthrough(false);  // including those that look like global options
  complete->set_help_flag();     // or like --help
  complete->callback([complete, &app, &context] { answer(context, app, complete->remaining()); });
}

}  // namespace remote::cli
