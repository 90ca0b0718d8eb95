// `remote run --cmd C`: runs C in the project's environment on one, some or all servers, and shows its output
// as it is written.

#include <algorithm>
#include <csignal>
#include <map>
#include <set>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/command.hpp"
#include "base/json.hpp"
#include "base/simple_commands.hpp"
#include "base/strings.hpp"
#include "cli/commands/launch_options.hpp"
#include "cli/failure_hints.hpp"
#include "cli/keyboard.hpp"
#include "cli/options.hpp"
#include "cli/show/error_json.hpp"
#include "cli/show/launches.hpp"
#include "cli/show/output.hpp"
#include "cli/show/waiting.hpp"

namespace remote::cli {
namespace {

struct RunArguments {
  RunRequest request;
  CommandOption command;
  EnvOptions env;
  WorkdirOption workdir;
  bool tty = false;
  bool no_tty = false;
  bool silent = false;
};

// JSON is a single value, so all output is held in memory: output beyond this limit is an error.
constexpr std::size_t most_json_output = std::size_t{64} << 20U;

// The output of one server's command, for JSON.
struct Printed {
  std::string out;
  std::string err;

  void take(OutputStream stream, std::string_view data) {
    if (out.size() + err.size() + data.size() > most_json_output) {
      throw Error("too much output",
                  fmt::format("--json holds at most {} MB of output per server", most_json_output >> 20U),
                  "run it without --json: then the output is passed on as it arrives");
    }
    (stream == OutputStream::out ? out : err).append(data);
  }
};

nlohmann::json outcome_json(const ServerRun& run, const Printed& printed) {
  nlohmann::json entry = {{"server", run.server},
                          {"exit_code", nullptr},
                          {"signal", nullptr},
                          {"stdout", run.error ? "" : printed.out},
                          {"stderr", run.error ? "" : printed.err}};
  put_error(entry, run.error);
  if (run.status && run.status->code()) {
    entry["exit_code"] = *run.status->code();
  } else if (run.status) {
    entry["signal"] = signal_name(*run.status->signal());
  }
  return entry;
}

std::vector<OutputScreen> screens_for(Context& context, const std::vector<std::string>& names) {
  constexpr ui::Style styles[] = {ui::Style::cyan, ui::Style::green, ui::Style::yellow, ui::Style::magenta,
                                  ui::Style::blue};
  std::size_t width = 0;
  for (const std::string& name : names) {
    width = std::max(width, name.size());
  }
  std::vector<OutputScreen> screens;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (context.stream) {
      screens.emplace_back(context.terminal, *context.stream, OutputSource{names[i]});
      continue;
    }
    screens.emplace_back(
        context.terminal,
        names.size() == 1
            ? ""
            : context.terminal.paint_out(styles[i % 5], fmt::format("{:<{}} |", names[i], width)) + " ");
  }
  return screens;
}

// Reports how it ended on several servers; returns the exit code.
int conclude(Context& context, const std::vector<ServerRun>& runs,
             const std::vector<std::string>& ends_of_output) {
  std::map<std::string, std::vector<std::string>> ends;  // by result: the servers
  for (const ServerRun& run : runs) {
    if (!run.error && !run.status->success()) {
      ends[run.status->describe()].push_back(run.server);
    }
  }
  const std::vector<Error> errors = errors_of(runs);
  context.show(errors);
  std::size_t failed = errors.size();
  for (const auto& [end, servers] : ends) {
    failed += servers.size();
    if (runs.size() > 1) {
      context.terminal.notice(some_of(servers) + ": " + end);
    }
  }
  std::set<std::string> hints;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].error && !runs[i].status->success()) {
      hints.insert(hint_for_output(ends_of_output[i]));
    }
  }
  for (const std::string& hint : hints) {
    if (!hint.empty()) {
      context.terminal.notice(fmt::format(" hint: {}", hint));
    }
  }
  if (runs.size() == 1 && runs.front().status) {
    return runs.front().status->shell_code();
  }
  if (failed > 0 && runs.size() > 1) {
    context.terminal.notice(fmt::format("failed on {} of {} servers", failed, runs.size()));
  }
  return failed == 0 ? 0 : 1;
}

// Whether the command gets a terminal: if requested, or by default if this program is used interactively.
bool wants_terminal(Context& context, const RunArguments& arguments, std::size_t servers) {
  if (arguments.tty && context.options.json) {
    throw Error::usage("run --tty", "it does not work with --json: a terminal has one stream for all output",
                       "leave one of the two out");
  }
  if (arguments.tty && servers != 1) {
    throw Error::usage("run --tty", fmt::format("{} servers cannot share a terminal", servers),
                       "name one with --server");
  }
  return arguments.tty || (servers == 1 && !arguments.no_tty && !arguments.silent && !context.options.json &&
                           context.terminal.has_keyboard() && context.terminal.stdout_is_terminal());
}

// Whether the command takes its program or data from stdin: "bash -s", "python3 -", "cat".
bool reads_stdin(const std::string& command) {
  const std::vector<std::string> words = shell_words(command);
  const std::string name = words.empty() ? "" : words[0].substr(words[0].rfind('/') + 1);
  const bool is_shell = has_name(" sh bash dash zsh ", name);
  return ((is_shell || is_python(name) || name == "cat") && words.size() == 1) ||
         (words.size() > 1 && ((is_shell && words[1] == "-s") || words.back() == "-"));
}

// `run` reads no stdin, so that a loop over lines can call it.
void refuse_script_on_stdin(Context& context, const RunArguments& arguments, const std::string& command) {
  if (!arguments.tty && !context.terminal.stdin_is_terminal() && reads_stdin(command) &&
      context.terminal.stdin_input(std::chrono::milliseconds(0)) == ui::Terminal::Input::some) {
    throw Error::usage(
        fmt::format("remote run: '{}' would not get the input", visible_line(command, 60)),
        "`run` does not send its standard input to the servers",
        "give the text as the command, remote run --cmd \"$(cat FILE)\", or send the file with "
        "`remote rsync`");
  }
}

int run_on_servers(Context& context, const RunArguments& arguments) {
  RunRequest request = arguments.request;
  request.command = arguments.command.required(context, "run", "such as: remote run nvidia-smi");
  refuse_script_on_stdin(context, arguments, request.command);
  request.env = arguments.env.collect(context);
  arguments.workdir.choose(context, request.env);
  const std::vector<std::string> names = context.project().server_names(request.servers);
  std::vector<OutputScreen> screens = screens_for(context, names);
  std::vector<Printed> printed(names.size());
  std::vector<std::string> ends(names.size());
  std::optional<Waiting> waiting;
  const auto begin_waiting = [&] { waiting.emplace(context.terminal, "for " + server_names(names)); };
  char last = '\n';
  request.on_output = [&](std::size_t server, OutputStream stream, std::string_view data) {
    last = data.empty() ? last : data.back();
    append_end(ends[server], data);
    if (context.options.json && !context.stream) {
      printed[server].take(stream, data);
    } else if (!arguments.silent) {
      waiting.reset();  // otherwise the output would be printed into its row
      screens[server].take(stream, data);
    }
  };
  request.on_ended = [&](std::size_t server, const ServerRun&) { screens[server].finish(); };
  context.when_interrupted =
      fmt::format("interrupted: the command is ended on {}; its background processes may keep running",
                  server_names(names));
  std::vector<ServerRun> runs;
  if (wants_terminal(context, arguments, names.size())) {
    context.terminal.set_cancel(context.cancel);  // a terminal that blocks must not delay the end
    begin_waiting();
    Keyboard keyboard(context);
    request.terminal = keyboard.side();
    runs = context.project().run(request);
    if (!runs.front().error) {
      keyboard.finish();
      if (runs.front().status->shell_code() == 128 + SIGINT && last != '\n') {
        context.terminal.break_line();  // the terminal has just printed "^C"
      }
    }
  } else {
    begin_waiting();
    runs = context.project().run(request);
  }
  waiting.reset();
  const int code = conclude(context, runs, ends);
  if (context.options.json) {
    nlohmann::json all = nlohmann::json::array();
    for (std::size_t i = 0; i < runs.size(); ++i) {
      all.push_back(outcome_json(runs[i], printed[i]));
      if (context.stream) {  // already reported line by line
        all.back().erase("stdout");
        all.back().erase("stderr");
      }
    }
    context.print(all);
  }
  return code;
}

}  // namespace

void add_run(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, run_on_servers);
  arguments.command.add(command, context);
  add_server_option(command, context, arguments.request.servers);
  arguments.env.add(command);
  arguments.workdir.add(command);
  CLI::Option* tty = command.add_flag(
      "--tty", arguments.tty, "Give the command a terminal (default: on one server, from a terminal)");
  command.add_flag("--no-tty", arguments.no_tty, "Give the command no terminal")->excludes(tty);
  command.add_flag("--silent", arguments.silent, "Do not show the output");
}

}  // namespace remote::cli
