#include "cli/options.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <ctime>

#include <CLI/App.hpp>
#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/command.hpp"
#include "base/first_script.hpp"
#include "base/paths.hpp"
#include "base/shell_quote.hpp"
#include "base/simple_commands.hpp"
#include "base/strings.hpp"
#include "cli/line_meaning.hpp"
#include "cli/other_tools.hpp"
#include "cli/word_list.hpp"
#include "cli/words.hpp"

namespace remote::cli {
namespace {

// A repeatable option for names of this kind.
CLI::Option* add_names(CLI::App& command, Context& context, const std::string& option,
                       std::vector<std::string>& names, NameKind kind, const std::string& type,
                       const std::string& help) {
  CLI::Option* added = command.add_option(option, names, help)->type_name(type)->allow_extra_args(false);
  context.completers[added] = kind;
  return added;
}

}  // namespace

CLI::Option* add_server_option(CLI::App& command, Context& context, std::vector<std::string>& globs) {
  return add_names(command, context, "--server", globs, NameKind::servers, "NAME",
                   "Server: a name, a glob or a,b; repeatable (default: all)");
}

void EnvOptions::add(CLI::App& command) {
  // allow_extra_args(false): each use takes exactly two words, and CLI11 does not read a value in brackets as
  // a list.
  command.add_option("--env", words, "Environment variable of the command; repeatable")
      ->type_name("NAME VALUE")
      ->allow_extra_args(false);
  command.add_option("-e", assignments, "Same as --env, in one word; NAME alone copies the local value")
      ->type_name("NAME[=VALUE]")
      ->allow_extra_args(false);
}

Env EnvOptions::collect() const {
  if (const auto dashes = std::ranges::find(words, "--", &Env::value_type::second); dashes != words.end()) {
    throw Error::usage("--env " + dashes->first, "it has no value: '--' ends the options",
                       "write --env NAME VALUE; -e NAME copies the value from here");
  }
  Env all = words;
  for (const std::string& assignment : assignments) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos) {
      const char* value = std::getenv(assignment.c_str());
      if (value == nullptr) {
        throw Error::usage("-e " + assignment, "there is no such variable here, and no '=' in it",
                           "write -e NAME=VALUE, or set the variable");
      }
      all.emplace_back(assignment, value);
      continue;
    }
    all.emplace_back(assignment.substr(0, equals), assignment.substr(equals + 1));
  }
  for (const auto& [name, value] : all) {
    check_variable(name);
  }
  return all;
}

namespace {

// {"A=1", "B=2"} for "A=1,B=2", which sets only A; empty if the value does not look like more variables.
std::vector<std::string> split_assignments(const std::string& assignment) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t comma = assignment.find(','); comma != std::string::npos;
       comma = assignment.find(',', comma + 1)) {
    const std::size_t equals = std::min(assignment.find('=', comma), assignment.size());
    const std::string name = assignment.substr(comma + 1, equals - comma - 1);
    const bool is_capital = std::ranges::all_of(
        name, [](unsigned char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; });
    if (equals < assignment.size() && is_capital && is_assignment(name + "=")) {
      parts.push_back(assignment.substr(begin, comma - begin));
      begin = comma + 1;
    }
  }
  if (!parts.empty()) {
    parts.push_back(assignment.substr(begin));
  }
  return parts;
}

// "-e A=1,B=2" sets only A.
void warn_of_several(Context& context, const std::string& assignment) {
  const std::vector<std::string> parts = split_assignments(assignment);
  if (parts.empty()) {
    return;
  }
  const std::string name = assignment.substr(0, assignment.find('='));
  const bool has_secret = std::ranges::any_of(parts, [](const std::string& part) {
    const std::size_t equals = part.find('=');
    const std::string value = part.substr(equals + 1);
    return mask_value(part.substr(0, equals), value) != value;
  });
  std::vector<std::string> options;
  for (const std::string& part : parts) {
    options.insert(options.end(), {"-e", part});
  }
  std::vector<std::string> line;
  for (const std::string& word : context.typed_words) {
    if (word == assignment && !line.empty() && has_name(" -e --env ", line.back())) {
      line.pop_back();
      line.insert(line.end(), options.begin(), options.end());
    } else {
      line.push_back(word);
    }
  }
  context.terminal.warning(
      fmt::format("the value of {} is '{}': each variable needs its own -e: {}", name,
                  has_secret ? "***" : visible_line(assignment.substr(name.size() + 1), 60),
                  line == context.typed_words ? "-e A=1 -e B=2" : write_line(std::move(line))));
}

}  // namespace

Env EnvOptions::collect(Context& context) const {
  Env all = collect();
  for (const std::string& assignment : assignments) {
    warn_of_several(context, assignment);
  }
  const auto expandable = [](const std::string& value) {
    const std::size_t at = value.find('$');
    return at != std::string::npos && at + 1 < value.size() &&
           (std::isalpha(static_cast<unsigned char>(value[at + 1])) != 0 || value[at + 1] == '_' ||
            value[at + 1] == '{' || value[at + 1] == '(');
  };
  const auto found = std::ranges::find_if(all, [&](const auto& pair) { return expandable(pair.second); });
  if (found != all.end()) {
    context.terminal.notice(fmt::format(
        "{} is set to the text with its '$', which no shell expands (in --cmd the server's shell does)",
        found->first));
  }
  return all;
}

void CommandOption::add(CLI::App& app, Context& context, const std::string& help, const std::string& names) {
  app.add_option(names, line, help + "; or as words: -- WORD…")->type_name("C");
  context.with_command.insert(&app);
  command = &app;
}

namespace {

// Whether a file with this name exists neither in the current folder nor in the project. Also false if
// unknown, because of --workdir.
bool is_missing(Context& context, const CLI::App& command, const std::string& file) {
  const CLI::Option* workdir = command.get_option_no_throw("--workdir");
  if (workdir != nullptr && workdir->count() > 0) {
    return false;
  }
  try {
    return !is_there(current_folder() / file) && !is_there(context.folder() / file);
  } catch (const Error&) {
    return false;  // reported when the command needs the project
  }
}

// Warns about a script without Python in front of it. `is_line`: the command is a line for the shell.
void warn_of_script(Context& context, const CLI::App& app, const std::string& typed, bool is_line) {
  if (trim(typed).empty()) {
    return;
  }
  const std::string& name = app.get_name();
  const bool gets_python = name != "launch" && name != "job-run" && name != "run";
  const std::string command = gets_python ? with_python(typed) : typed;
  const bool is_started = skip_starter(shell_words(command), 0) > 0;  // "nice -n 5 train.py"
  const std::string right = is_line || is_started || script_alone(command) ? insert_python(command) : command;
  if (right == command) {
    return;
  }
  const std::string file = script_alone(command) ? command.substr(0, command.find(' ')) : "";
  context.terminal.warning(
      !file.empty() && is_missing(context, app, file)
          ? fmt::format("there is no {0} here; a server starts {0} only if its PATH has it",
                        visible_line(file, 60))
          : fmt::format("no shell finds a Python script by its name alone: write {}",
                        visible_line(is_line ? "--cmd " + quote_for_typing(right) : "-- " + right, 200)));
}

// The command line as typed, with additional options, and with another command.
std::string typed_line(const Context& context, const std::vector<std::string>& options,
                       const std::vector<std::string>& command) {
  const CommandWords& typed = *context.command_words;
  const std::size_t count = typed.words.size() + (typed.marked ? 1 : 0);
  std::vector<std::string> line(context.typed_words.begin(),
                                context.typed_words.end() - static_cast<std::ptrdiff_t>(count));
  line.insert(line.end(), options.begin(), options.end());
  const bool is_line = !typed.marked && command.size() == 1 && command.front().find(' ') != std::string::npos;
  line.emplace_back(is_line ? "--cmd" : "--");
  line.insert(line.end(), command.begin(), command.end());
  return write_line(std::move(line));
}

// Warns about options of this command that follow the program, because they are passed to the program. After
// "--", only warns about those that hardly any program has.
void warn_of_options_behind(Context& context, const CLI::App& command, const CommandWords& typed) {
  std::vector<std::string> names;
  std::vector<std::string> options;
  std::vector<std::string> program{typed.words.front()};
  for (std::size_t i = 1; i < typed.words.size(); ++i) {
    const std::string& word = typed.words[i];
    std::string name = word.substr(0, word.find('='));
    std::ranges::replace(name, '_', '-');
    const CLI::Option* own =
        name.size() > 2 && name.starts_with("--") ? command.get_option_no_throw(name) : nullptr;
    const bool is_rare = name == "--nproc-per-node" || name == "--param";
    if (own == nullptr || (typed.marked && !is_rare)) {
      program.push_back(word);
      continue;
    }
    if (std::ranges::find(names, name) == names.end()) {
      names.push_back(name);
    }
    options.push_back(word);
    const std::size_t values = word.find('=') == std::string::npos ? count_values(*own) : 0;
    for (std::size_t left = values; left > 0 && i + 1 < typed.words.size(); --left) {
      options.push_back(typed.words[++i]);
    }
  }
  if (names.empty()) {
    return;
  }
  const std::string script = script_of(with_python(shell_join(typed.words)));
  const std::string shown = visible_line(script.empty() ? typed.words.front() : script, 60);
  context.terminal.warning(
      fmt::format("{0} behind {1} {2} given to {1}; put options of `remote {3}` before the command: {4}",
                  join(names, ", "), shown, names.size() == 1 ? "is" : "are", command.get_name(),
                  typed_line(context, options, program)));
}

// Throws Error (usage) for a variable instead of the program.
void check_assignments(const Context& context, const std::string& name,
                       const std::vector<std::string>& words) {
  std::vector<std::string> options;
  std::size_t count = 0;
  bool has_parameter = false;
  for (; count + 1 < words.size() && is_assignment(words[count]); ++count) {
    const bool is_parameter = name == "sweep" && words[count].find(',') != std::string::npos;
    has_parameter = has_parameter || is_parameter;
    options.insert(options.end(), {is_parameter ? "--param" : "-e", words[count]});
  }
  if (count == 0) {
    return;
  }
  const std::vector<std::string> rest{words.begin() + static_cast<std::ptrdiff_t>(count), words.end()};
  if (rest.size() == 1 && is_assignment(rest.front())) {
    throw Error::usage(fmt::format("remote {}: '{}' is not a program", name, visible_line(rest.front(), 60)),
                       "", "-e sets a variable, and the program follows");
  }
  throw Error::usage(
      fmt::format("remote {}: '{}' is not a program", name, visible_line(words.front(), 60)), "",
      fmt::format("{}: {}", has_parameter ? "--param gives a parameter its values" : "-e sets a variable",
                  typed_line(context, options, without_mark(rest))));
}

// Throws Error (usage) for a sweep without a parameter whose program has a list of values: "--lr 0.1,0.2".
void check_parameters(const Context& context, const CLI::App& command, const CommandWords& typed) {
  if (command.count("--param") > 0 || command.count("--file") > 0) {
    return;
  }
  std::vector<std::string> options;
  std::vector<std::string> program = typed.words;
  for (std::size_t i = 1; i < program.size(); ++i) {
    const std::size_t equals = std::min(program[i].find('='), program[i].size());
    const std::string option = program[i].substr(0, equals);
    const bool is_attached = equals < program[i].size();
    if (!option.starts_with("--") || command.get_option_no_throw(option) != nullptr ||
        (!is_attached && i + 1 == program.size())) {
      continue;
    }
    std::string name = option.substr(2);
    std::ranges::replace(name, '-', '_');
    const std::string value = is_attached ? program[i].substr(equals + 1) : program[i + 1];
    if (is_assignment(name + "=") && value.find(',') != std::string::npos && !value.starts_with('-')) {
      options.insert(options.end(), {"--param", name + "=" + value});
      program[is_attached ? i : i + 1] = (is_attached ? option + "=" : "") + "{" + name + "}";
    }
  }
  if (!options.empty()) {
    throw Error::usage("remote sweep: there are no points", "no parameter is given",
                       "write " + typed_line(context, options, program));
  }
}

// The servers that a word names, "a,b" or "root@a"; empty if one of them is unknown.
std::vector<std::string> servers_in(Context& context, const std::string& word) {
  std::vector<std::string> servers;
  try {
    servers = context.project().server_names();
  } catch (const Error&) {  // reported when the command needs the project
  }
  std::vector<std::string> named;
  for (const std::string& part : split(word.ends_with(':') ? word.substr(0, word.size() - 1) : word, ',')) {
    if (server_in(part, servers).empty()) {
      return {};
    }
    named.push_back(server_in(part, servers));
  }
  return named;
}

// Whether a word is the path of a program: by its form, such as "./a.out", or because the file is here, as
// "tools/a.sh".
bool is_path(Context& context, const CLI::App& command, const std::string& word) {
  constexpr std::string_view starts[] = {"/", "./", "../", "~/"};
  if (std::ranges::any_of(starts, [&](std::string_view start) { return word.starts_with(start); })) {
    return true;
  }
  if (word.find_first_of("./") == std::string::npos) {
    return false;
  }
  const CLI::Option* workdir = command.get_option_no_throw("--workdir");
  const std::string sub = workdir != nullptr && workdir->count() > 0 ? workdir->as<std::string>() : "";
  try {
    return is_there(current_folder() / word) || is_there(context.folder() / word) ||
           is_there(context.folder() / sub / word);
  } catch (const Error&) {
    return true;  // reported when the command needs the project
  }
}

// Rejects words that were probably meant as an option or as the name of a launch. Otherwise they would become
// part of a command.
void check_first_word(Context& context, const CLI::App& command, const std::vector<std::string>& words) {
  const std::string& first = words.front();
  const std::string& name = command.get_name();
  const std::string what =
      fmt::format("remote {}: '{}' is in the place of the command", name, visible_line(first, 60));
  const std::string itself =
      fmt::format("a command of this name goes after --: remote {} -- {} …", name, visible_line(first, 60));
  const std::vector<std::string> named = servers_in(context, first);
  const std::vector<std::string> rest = without_mark({words.begin() + 1, words.end()});
  if (!named.empty()) {
    const bool may_have = name != "job-run" || (named.size() == 1 && command.count("--server") == 0);
    std::string line =
        may_have && !rest.empty() ? "write " + typed_line(context, {"--server", join(named, ",")}, rest) : "";
    if (rest.empty() && named.size() == 1) {
      line = hint_for_other_tool({"ssh", named.front()}, named, words_before(context.typed_words, name)) +
             " for a shell there";
    }
    throw Error::usage(what, "it is a server's name",
                       fmt::format("{}; {}", line.empty() ? "--server names a server" : line, itself));
  }
  if (first.ends_with(".yaml") || first.ends_with(".yml")) {
    throw Error::usage(what, "settings are not a program",
                       "the settings of a launch are `launch:` in configs.yaml: `remote help configs`");
  }
  if (name != "run" && !is_path(context, command, first) && std::ranges::find(words, "--") != words.end()) {
    throw Error::usage(what, "the command seems to begin after --", "leave the word out; " + itself);
  }
}

// Warns about a shell operator as a separate word, because it is passed to the program.
void warn_of_operators(Context& context, const std::vector<std::string>& words) {
  const auto is_operator = [](const std::string& word) { return has_name(" && || | & 2>&1 ", word); };
  const auto found = std::ranges::find_if(words, is_operator);
  if (found == words.end()) {
    return;
  }
  std::vector<std::string> line;
  for (const std::string& word : words) {
    line.push_back(is_operator(word) ? word : shell_quote(word));
  }
  context.terminal.warning(
      fmt::format("'{}' is given to {} as an argument; a line for the shell is one word: {}", *found,
                  visible_line(words.front(), 60),
                  visible_line("--cmd " + quote_for_typing(insert_python(join(line, " "))), 200)));
}

// A job ends with its command line, which does not wait for a program in the background.
void warn_of_background(Context& context, const std::string& name, const std::string& line) {
  if (goes_into_background(line)) {
    context.terminal.warning(
        name == "run" ? "the command goes into the background: its output and exit status are lost; "
                        "`remote job-run` starts what outlives the connection, without `&`, nohup or tmux"
                      : "the command goes into the background: its exit status is lost; a job outlives the "
                        "connection without `&`, nohup or tmux");
  }
}

}  // namespace

std::optional<std::string> CommandOption::given(Context& context, const std::string& name) const {
  if (line && context.command_words) {
    const std::string hint = quotes_hint(*command, context.typed_words);
    throw Error::usage(name, "both --cmd and a command after the options are given",
                       hint.empty() ? "keep one of them" : hint);
  }
  if (line && trim(*line).empty()) {
    throw Error::usage(name, "--cmd is empty", "give the command");
  }
  if (!context.command_words) {
    if (const std::string flag = find_flag_behind_cmd(*command, context.typed_words); !flag.empty()) {
      // The whole typed line may contain secrets.
      context.terminal.warning(
          fmt::format("{} is taken as an option of `remote` itself; for the program, "
                      "write --cmd {}",
                      flag, shell_quote(line.value_or("") + " " + flag)));
    }
    warn_of_script(context, *command, line.value_or(""), true);
    warn_of_background(context, command->get_name(), line.value_or(""));
    return line;
  }
  const std::vector<std::string>& words = context.command_words->words;
  if (words.empty() || trim(words.front()).empty()) {
    throw Error::usage(name, "the command is empty", "give it after --, or as --cmd 'LINE'");
  }
  const bool marked = context.command_words->marked;
  check_assignments(context, name, words);
  if (!marked) {
    check_first_word(context, *command, words);
  }
  if (name == "sweep") {
    check_parameters(context, *command, *context.command_words);
  }
  warn_of_options_behind(context, *command, *context.command_words);
  warn_of_operators(context, words);
  if ((marked || words.size() > 1) && words.front().find_first_of(" \t\n;|&$<>`") != std::string::npos) {
    context.terminal.warning(fmt::format(
        "'{}' is taken as the name of one program; {}", visible_line(words.front(), 60),
        words.size() == 1 ? "a line for the shell goes to --cmd, without the --"
                          : "a line for the shell goes to --cmd, and options go before the command"));
  }
  const bool is_line = words.size() == 1 && !marked;
  std::string whole = is_line ? words.front() : shell_join(words);
  warn_of_script(context, *this->command, whole, is_line);
  warn_of_background(context, command->get_name(), whole);
  return whole;
}

std::string CommandOption::required(Context& context, const std::string& name,
                                    const std::string& hint) const {
  if (auto typed = given(context, name)) {
    return std::move(*typed);
  }
  throw Error::usage("remote " + name + ": --cmd is required", "", hint);
}

std::optional<std::chrono::seconds> parse_span(const std::string& text) {
  constexpr std::pair<char, std::chrono::seconds> units[] = {{'s', std::chrono::seconds(1)},
                                                             {'m', std::chrono::minutes(1)},
                                                             {'h', std::chrono::hours(1)},
                                                             {'d', std::chrono::hours(24)},
                                                             {'w', std::chrono::hours(24 * 7)}};
  for (const auto& [letter, unit] : units) {
    const auto count =
        text.ends_with(letter) ? parse_number<int>(text.substr(0, text.size() - 1)) : std::nullopt;
    if (count && *count >= 0) {
      return *count * unit;
    }
  }
  return std::nullopt;
}

Instant parse_since(const std::string& text) {
  if (const auto age = parse_span(text)) {
    return now_seconds() - *age;
  }
  if (const auto day = parse_utc(text + "T00:00:00Z")) {
    const std::time_t midnight = day->time_since_epoch().count();
    std::tm local{};
    ::gmtime_r(&midnight, &local);
    local.tm_isdst = -1;  // use the daylight saving time of that day in the user's time zone
    return Instant(std::chrono::seconds(std::mktime(&local)));
  }
  throw Error::usage("--since '" + visible_line(text) + "' is not a time", "",
                     "give an age such as 12h, 7d or 2w, or a day such as 2026-11-21");
}

void add_switch(CLI::App& command, const std::string& names, std::optional<bool>& value,
                const std::string& help) {
  command.add_flag_function(
      names, [&value](std::int64_t count) { value = count > 0; }, help);
}

void add_new_tag_option(CLI::App& command, std::vector<std::string>& tags, const std::string& help) {
  command.add_option("--tag", tags, help)->type_name("T")->allow_extra_args(false);
}

CLI::Option* add_launch_word(CLI::App& command, Context& context, std::string& launch,
                             const std::string& help) {
  CLI::Option* option = command.add_option("launch", launch, help)->type_name("KEY");
  context.completers[option] = NameKind::past;
  return option;
}

void JobOptions::add(CLI::App& command, Context& context, const std::string& tag_help) {
  add_names(command, context, "--job", keys, NameKind::jobs, "KEY",
            "Job: its key, the start of its id, or last; repeatable");
  add_names(command, context, "--launch", launches, NameKind::launches, "KEY|last",
            "All jobs of this launch; repeatable (KEY of any of its jobs, or its name)");
  add_names(command, context, "--tag", tags, NameKind::tags, "T", tag_help);
}

void JobOptions::add_words(CLI::App& command, Context& context) {
  context.completers[command.add_option("keys", words, "Same as --job; 45-48 is a whole launch")
                         ->type_name("KEY")] = NameKind::jobs;
}

JobSelection JobOptions::selection() const {
  JobSelection selection{.names = {}, .launches = launches, .tags = tags};
  for (const auto* names : {&words, &keys}) {
    for (const std::string& name : *names) {
      const std::size_t dash = name.find_first_not_of("0123456789");  // "45-48", from job-list
      const bool launch = dash != 0 && dash != std::string::npos && name[dash] == '-';
      (launch ? selection.launches : selection.names).push_back(name);
    }
  }
  return selection;
}

}  // namespace remote::cli
