#include "cli/cli.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <remote/error.hpp>
#include <remote/log.hpp>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include "base/error_of.hpp"
#include "base/files.hpp"
#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "cli/commands.hpp"
#include "cli/commands/status.hpp"
#include "cli/guide_words.hpp"
#include "cli/help.hpp"
#include "cli/manual.hpp"
#include "cli/named_launch.hpp"
#include "cli/words.hpp"
#include "config/config.hpp"
#include "ui/silence.hpp"

namespace remote::cli {

namespace {

// The handler needs something that outlives main's locals; set once, before the handler is installed.
Cancel* signal_target() {
  static Cancel target;
  return &target;
}

extern "C" void on_signal(int number) {
  const int saved_errno = errno;
  Cancel* target = signal_target();
  if (target->cancelled() && number == SIGINT) {
    ui::restore_terminal();
    ::_exit(130);
  }
  target->cancel();
  errno = saved_errno;
}

// A token that SIGINT, SIGTERM and SIGHUP (the terminal is closed) cancel. A second SIGINT ends the process
// at once.
Cancel cancel_on_signals() {
  Cancel token = *signal_target();
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  struct sigaction before {};
  if (::sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) {  // nohup
    ::sigaction(SIGHUP, &action, nullptr);
  }
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigemptyset(&ignore.sa_mask);
  ::sigaction(SIGPIPE, &ignore, nullptr);  // a reader of stdout that is gone is an error of write(2)
  return token;
}

class TerminalSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit TerminalSink(ui::Terminal& terminal) : terminal_(terminal) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    terminal_.err({line.data(), line.size()});
  }
  void flush_() override {}

 private:
  ui::Terminal& terminal_;
};

// The library's log on stderr, with the time of each line, as long as the object lives. `verbosity`: how
// often -v was given; 0: no log.
class Logging {
 public:
  Logging(ui::Terminal& terminal, int verbosity) {
    if (verbosity == 0) {
      return;
    }
    terminal.set_logging();
    const auto logger = std::make_shared<spdlog::logger>("remote", std::make_shared<TerminalSink>(terminal));
    logger->set_pattern("%H:%M:%S.%e %v");
    logger->set_level(spdlog::level::debug);
    set_log(verbosity == 1 ? LogLevel::info : LogLevel::debug,
            [logger](LogLevel level, std::string_view server, std::string_view text) {
              logger->log(level == LogLevel::info ? spdlog::level::info : spdlog::level::debug, "{}{}{}",
                          server, server.empty() ? "" : ": ", text);
            });
  }
  ~Logging() { set_log(LogLevel::off, nullptr); }
  Logging(const Logging&) = delete;
  Logging& operator=(const Logging&) = delete;
};

void add_global_options(CLI::App& app, Context& context) {
  app.add_option("--project", context.options.project,
                 "Project folder (default: this folder or one above it)")
      ->type_name("DIR");
  app.add_option("--color", context.options.color, "Colors (default: auto)")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  app.add_flag("-v,--verbose", context.options.verbose, "Log to stderr (-vv: more)");
  app.add_flag("--quiet", context.options.quiet, "Print only data and errors");
  app.add_flag("--json", context.options.json, "Print data as one JSON value");
  app.add_flag("--jsonl", context.options.jsonl, "Print events as JSON, one per line");
  app.add_flag("--strict", context.options.strict, "Treat an unknown key in configs.yaml as an error");
}

void apply_global_options(Context& context) {
  context.terminal.set_quiet(context.options.quiet);
  context.options.json = context.options.json || context.options.jsonl;
  if (context.options.color == "always") {
    context.terminal.set_color(ui::Color::always);
  } else if (context.options.color == "never") {
    context.terminal.set_color(ui::Color::never);
  }
}

// The innermost subcommand that was named.
const CLI::App& named_command(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
  }
  return *command;
}

std::string full_name(const CLI::App& command) {
  return command.get_parent() != nullptr ? full_name(*command.get_parent()) + " " + command.get_name()
                                         : command.get_name();
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        names.push_back("--" + name);
      }
    }
  }
  return names;
}

std::vector<std::string> command_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* sub : shown_commands(command)) {
    names.push_back(sub->get_name());
  }
  return names;
}

// A word that nothing took.
std::optional<std::string> unknown_word(const CLI::App& app, bool option) {
  for (const std::string& word : app.remaining(true)) {
    if (word.starts_with("-") == option) {
      return word;
    }
  }
  return std::nullopt;
}

bool is_server(Context& context, const std::string& name) {
  try {
    const std::vector<std::string> servers = context.project().server_names();
    return std::ranges::find(servers, name) != servers.end();
  } catch (const Error&) {
    return false;  // what is wrong with the command line comes first
  }
}

void add_commands(CLI::App& app, Context& context) {
  app.require_subcommand(0, 1);
  app.fallthrough();  // global options are also accepted after the subcommand
  add_global_options(app, context);
  for (const Command& command : all_commands()) {
    command.add(*app.add_subcommand(std::string(command.name), std::string(command.about)), context);
  }
}

// Whether the parser accepts this command line.
bool is_accepted(const std::vector<std::string>& words) {
  Context context{Environment{}};
  context.only_parses = true;
  CLI::App app("", "remote");
  add_commands(app, context);
  try {
    const CommandLine line = read_command_line(app, context.with_command, words);
    app.parse(std::vector<std::string>(line.words.rbegin(), line.words.rend()));
    return true;
  } catch (const CLI::ParseError&) {
    return false;
  }
}

// The line that does what another program calls by this word, or that shows how; "" for none.
std::string line_for_other_word(Context& context, const std::string& word,
                                const std::vector<std::string>& words) {
  const std::string_view meant = command_for(word);
  if (meant.empty()) {
    return "";
  }
  const auto at = std::ranges::find(words, word);
  std::vector<std::string> rest(at == words.end() ? at : at + 1, words.end());
  if (meant == "run" || meant == "shell") {  // "exec -it SERVER -- COMMAND", "ssh SERVER COMMAND"
    while (!rest.empty() && (rest.front() == "-it" || rest.front() == "-i" || rest.front() == "-t")) {
      rest.erase(rest.begin());
    }
    if (rest.size() > 1 && is_server(context, rest.front())) {
      rest.erase(rest.begin() + 1, rest.begin() + (rest[1] == "--" && rest.size() > 2 ? 2 : 1));
      rest.insert(rest.begin(), {"remote", "run", "--server"});
      rest.insert(rest.begin() + 4, "--");
      return shell_join(rest);
    }
  }
  rest.insert(rest.begin(), std::string(meant));
  rest.insert(rest.begin(), words.begin(), at);
  if (!is_accepted(rest)) {
    rest = {std::string(meant), "--help"};
  }
  rest.insert(rest.begin(), "remote");
  return shell_join(rest);
}

// The word in place of the command's name, if it is not one; "" otherwise.
std::string unknown_command(const CLI::App& app, const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const CLI::Option* option = words[i].starts_with('-') ? app.get_option_no_throw(words[i]) : nullptr;
    if (option != nullptr) {
      i += static_cast<std::size_t>(std::max(0, option->get_items_expected_min()));
    } else if (words[i].starts_with('-')) {
      return "";  // an option before its command
    } else {
      return find_command(words[i]) == nullptr ? words[i] : "";
    }
  }
  return "";
}

// If the option is one of the command's, but before its name: the command line with the name first. ""
// otherwise.
std::string line_with_options_behind(const CLI::App& command, const std::vector<std::string>& words,
                                     const std::string& unknown) {
  const auto name = std::ranges::find(words, command.get_name());
  const bool stands_before = std::find(words.begin(), name, unknown) != name && name != words.end();
  if (!stands_before || find_option(&command, unknown.substr(0, unknown.find('='))) == nullptr) {
    return "";
  }
  std::vector<std::string> all{"remote", *name};
  all.insert(all.end(), words.begin(), name);
  all.insert(all.end(), name + 1, words.end());
  return shell_join(all);
}

// What the parser of the command line found wrong, for a person: names the command, and what was probably
// meant.
Error usage_error(Context& context, const CLI::App& app, const CLI::ParseError& error,
                  const std::vector<std::string>& words) {
  const std::string first = unknown_command(app, words);
  const CLI::App& command =
      first.empty() ? named_command(app) : app;  // "scontrol show job 1" is not our show
  const std::string name = full_name(command);
  const std::string help = fmt::format("see `{} --help`", name);
  const auto refused = [&](const std::string& what, const std::string& near) {
    return Error::usage(name + " has no " + what, "", near.empty() ? help : near + " " + help);
  };
  const auto subcommands = command_names(command);
  if (auto unknown = unknown_word(app, false); unknown && !subcommands.empty()) {
    unknown = first.empty() ? unknown : first;
    if (const std::string_view hint = hint_for_other_word(*unknown, words); !hint.empty()) {
      return refused("command '" + *unknown + "'", std::string(hint) + ";");
    }
    const std::string line = &command == &app ? line_for_other_word(context, *unknown, words) : "";
    if (!line.empty()) {
      return refused("command '" + *unknown + "'", fmt::format("use `{}`;", line));
    }
    return refused("command '" + *unknown + "'", did_you_mean(*unknown, subcommands));
  }
  if (const auto unknown = unknown_word(app, true)) {
    // "-np 2" is read as letters: the word is what was typed.
    const auto typed = std::ranges::find_if(words, [&](const std::string& word) {
      return word == *unknown ||
             (word.starts_with('-') && !word.starts_with("--") && word.ends_with(unknown->substr(1)));
    });
    const std::string option = typed == words.end() ? *unknown : *typed;
    if (const std::string right = quoted_line(command, words);
        !right.empty() && typed > std::ranges::find(words, "--cmd")) {
      return refused("option " + option,
                     fmt::format("put the whole line in quotes: `{}`;", visible_line(right, 300)));
    }
    if (const std::string right = line_with_options_behind(command, words, *unknown); !right.empty()) {
      return Error::usage(fmt::format("{} comes before the command", option), "",
                          fmt::format("write `{}`", visible_line(right, 300)));
    }
    if (const std::string hint = hint_for_guides_option(command.get_name(), option); !hint.empty()) {
      return refused("option " + option, hint + ";");
    }
    return refused("option " + *unknown,
                   did_you_mean(unknown->substr(0, unknown->find('=')), option_names(command)));
  }
  if (const auto unknown = unknown_word(app, false)) {
    const bool of_servers = command.get_option_no_throw("--server") != nullptr;
    // Where words are something else, this may not be the one that was meant as a server.
    const bool words_too = std::ranges::any_of(command.get_options(), &CLI::Option::get_positional);
    const std::string server = words_too || !is_server(context, *unknown) ? "NAME" : *unknown;
    return Error::usage(
        fmt::format("{} takes no '{}'", name, *unknown), "",
        command.get_name() == "status"  ? fmt::format("use `remote job-list {}`; {}", *unknown, help)
        : command.get_name() == "shell" ? "to run one command, write: remote run --server S -- COMMAND"
        : of_servers                    ? fmt::format("a server is named by --server {}; {}", server, help)
                                        : fmt::format("a value with blanks needs quotes; {}", help));
  }
  if (!subcommands.empty() && error.get_name() == "RequiredError") {
    return Error::usage(fmt::format("{} needs a command", name), join(subcommands, ", "), help);
  }
  return Error::usage(fmt::format("{}: {}", name, error.what()), "", help);
}

// The command that was named, and what it is for a program: "sandbox up".
std::string command_of(const CLI::App& app) {
  const std::string name = full_name(named_command(app));
  const std::size_t blank = name.find(' ');
  return blank == std::string::npos ? "status" : name.substr(blank + 1);
}

// --jsonl, also where the rest of the command line is wrong.
void begin_stream(const CLI::App& app, Context& context) {
  if (context.options.jsonl && !context.stream) {
    context.stream.emplace(context.terminal);
    context.stream->begin(command_of(app));
  }
}

// -h right behind `--cmd WORD` belongs to that command, which lacks its quotes: "--cmd df -h".
void check_quotes(const CLI::App& app, const std::vector<std::string>& words) {
  const auto option = std::ranges::find(words, "--cmd");
  const bool is_cut = words.end() - option > 2 && *(option + 2) == "-h";
  const auto name =
      std::ranges::find_if(words, [&](const std::string& word) { return find_command(word) != nullptr; });
  const CLI::App* command = nullptr;
  if (is_cut && name < option) {
    const auto found = app.get_subcommands([&](const CLI::App* sub) { return sub->check_name(*name); });
    command = found.empty() ? nullptr : found.front();
  }
  const std::string right = command != nullptr ? quoted_line(*command, words) : "";
  if (!right.empty()) {
    throw Error::usage(fmt::format("remote {}: --cmd takes one word", *name), "",
                       fmt::format("put the whole line in quotes: `{}`", visible_line(right, 300)));
  }
}

int parse_and_run(CLI::App& app, Context& context, const std::vector<std::string>& words) {
  try {
    context.typed_words = words;
    check_quotes(app, words);
    const CommandLine line =
        read_command_line(app, context.with_command, words,
                          [&](const std::string& word) { return is_launch(context, words, word); });
    context.command_words = line.command;
    app.parse(
        std::vector<std::string>(line.words.rbegin(), line.words.rend()));  // CLI11 takes them from the back
    if (!app.get_subcommands().empty()) {
      return context.exit_code;
    }
    if (context.options.project || config::nearest_project(current_folder())) {
      return show_status(context);
    }
    return show_no_project(context);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      std::ostringstream text;  // --help and --version
      app.exit(error, text);
      context.terminal.out(text.str());
      return 0;
    }
    context.options.jsonl = context.options.jsonl || std::ranges::find(words, "--jsonl") != words.end();
    begin_stream(app, context);
    context.show(usage_error(context, app, error, words));
    return 2;
  }
}

// The last event, also after Ctrl-C: a reader that takes nothing loses it.
void end_stream(Context& context, int code) {
  context.terminal.set_cancel(Cancel());
  try {
    context.stream->end(code);
  } catch (const Error&) {
    // stdout is gone: nobody reads the stream any more
  }
}

int run_guarded(CLI::App& app, Context& context, const std::vector<std::string>& words) {
  try {
    return parse_and_run(app, context, words);
  } catch (const Interrupted&) {
    context.show_interrupted();
    return 130;
  } catch (const Error& error) {
    context.show(error);
    return error.kind() == ErrorKind::usage ? 2 : 1;
  } catch (const std::system_error& error) {  // a thread that the machine does not allow
    context.show(error_of(error));
    return 1;
  } catch (const std::exception& error) {
    context.show(Error("internal error", error.what(), "this is a bug of remote: please report it"));
    return 1;
  }
}

}  // namespace

int run(const std::vector<std::string>& words, Environment environment) {
  Context context(std::move(environment));
  CLI::App app("Run distributed PyTorch on plain SSH servers.", "remote");
  app.set_version_flag("--version", "remote " REMOTE_VERSION);
  // The commands take it over.
  const std::size_t width = help_width(context);
  app.formatter_fn([width](const CLI::App* command, const std::string& name, CLI::AppFormatMode) {
    return help_text(*command, name, width);
  });
  add_commands(app, context);
  add_manual(app);
  std::optional<Logging> logging;
  app.parse_complete_callback([&] {
    apply_global_options(context);
    begin_stream(app, context);
    logging.emplace(context.terminal, context.options.verbose);
  });
  const int code = run_guarded(app, context, words);
  if (context.stream) {
    end_stream(context, code);
  }
  return code;
}

int run(int argc, char** argv) {
  try {
    Environment environment;
    environment.cancel = cancel_on_signals();
    return run({argv + 1, argv + argc}, std::move(environment));
  } catch (const Error& error) {
    // So few files may be open (ulimit -n) that there is no terminal to say it on.
    std::cerr << "error: " << error.message() << "\n hint: " << error.hint() << '\n';
    return 1;
  }
}

}  // namespace remote::cli
